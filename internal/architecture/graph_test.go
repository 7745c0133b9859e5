package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Our own packages are named by their folder with a dot in front, "./mirror/oci",
// so that they are never taken for one of the standard library; all others by
// their import path.
const module = "github.com/packhof/packhof"

// node is one package as it ships, without its tests.
type node struct {
	name    string
	program bool
	imports []string // direct
}

// graph holds our packages and everything below them, by name.
type graph map[string]node

// ours returns our packages in the order of their names.
func (g graph) ours() []node {
	var nodes []node
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if isOurs(name) {
			nodes = append(nodes, g[name])
		}
	}
	return nodes
}

// way returns the shortest chain of imports from a package to one that is
// wanted, without the start and with the end; nil if there is none.
func (g graph) way(from string, wanted func(name string) bool) []string {
	cameFrom := map[string]string{from: ""}
	for ahead := []string{from}; len(ahead) > 0; ahead = ahead[1:] {
		for _, next := range g[ahead[0]].imports {
			if _, seen := cameFrom[next]; seen {
				continue
			}
			cameFrom[next] = ahead[0]
			if wanted(next) {
				return chain(cameFrom, next)
			}
			ahead = append(ahead, next)
		}
	}
	return nil
}

// chain walks back from the end of a way to its start.
func chain(cameFrom map[string]string, end string) (way []string) {
	for at := end; cameFrom[at] != ""; at = cameFrom[at] {
		way = append(way, at)
	}
	slices.Reverse(way)
	return way
}

func isOurs(name string) bool { return strings.HasPrefix(name, "./") }

// isStandard goes by the rule that the go command itself follows: nobody else's
// import path begins with a word without a dot.
func isStandard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !isOurs(name) && !strings.Contains(first, ".")
}

// load asks the go command once for all tests.
var load = sync.OnceValues(func() (graph, error) {
	if err := touchSources("../.."); err != nil {
		return nil, err
	}
	command := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Imports", "./cmd/...", "./...")
	command.Dir = "../.."
	// Flags of whoever runs the tests could point to other modules.
	command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, complaints.Bytes())
	}
	return parse(out)
})

// touchSources reads every folder of the tree. What the go command reads is
// unknown to the cache of test results; with the folders, whose entries carry
// sizes and times, a change of any file makes the tests run again.
func touchSources(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("walk the tree: %w", err)
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "build") {
			return filepath.SkipDir
		}
		return nil
	})
}

func parse(listing []byte) (graph, error) {
	g := graph{}
	for decoder := json.NewDecoder(bytes.NewReader(listing)); ; {
		var p struct {
			ImportPath, Name string
			Imports          []string
		}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return g, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		name := short(p.ImportPath)
		g[name] = node{name: name, program: p.Name == "main", imports: shortAll(p.Imports)}
	}
}

func short(path string) string {
	if rest, ok := strings.CutPrefix(path, module); ok && (rest == "" || rest[0] == '/') {
		return "." + rest
	}
	return path
}

func shortAll(paths []string) []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = short(path)
	}
	return names
}

func loaded(t *testing.T) graph {
	t.Helper()
	g, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// matches compares a package with a pattern: "a/b" is that package, "a/..." is
// a and all below it, "a/*" is what lies one step below a.
func matches(pattern, name string) bool {
	if above, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == above || strings.HasPrefix(name, above+"/")
	}
	if above, ok := strings.CutSuffix(pattern, "/*"); ok {
		below, ok := strings.CutPrefix(name, above+"/")
		return ok && !strings.Contains(below, "/")
	}
	return name == pattern
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}
