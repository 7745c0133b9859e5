package testkit

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// insides is what nobody but us can make sense of: types of Go, addresses,
// what is left of a crash.
var insides = regexp.MustCompile(`\bGo [a-z]+\.[A-Z]\w*|\bunmarshal\b|%!|0x[0-9a-f]{6,}|goroutine|sql:`)

// CheckFailure makes sure that a program ended with this exit code and this
// stable code, and said so in words for people.
func (o Outcome) CheckFailure(t testing.TB, exit int, code string) {
	t.Helper()
	if o.Exit != exit || !strings.Contains(o.Stderr, fmt.Sprintf("code: %s   exit %d ", code, exit)) {
		t.Errorf("exit %d, want exit %d and code %s:\n%s", o.Exit, exit, code, o.Stderr)
	}
	if inside := insides.FindString(o.Stderr); inside != "" {
		t.Errorf("%q is not for people:\n%s", inside, o.Stderr)
	}
}

// Steady replaces what differs from run to run: the folder of the lab,
// addresses, times, and what more is given as pairs of a regular expression and
// its replacement. Digests and keys become numbers in the order in which they
// turn up, so that it still shows which of them are the same.
func (l *Lab) Steady(text string, more ...[2]string) string {
	text = strings.ReplaceAll(text, l.Dir, "$LAB")
	for _, r := range append([][2]string{
		{`127\.0\.0\.1:\d+`, "$$HOST"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "<time>"},
		{`\d{4}-\d\d-\d\d`, "<date>"},
	}, more...) {
		text = regexp.MustCompile(r[0]).ReplaceAllString(text, r[1])
	}
	var seen []string
	return hexForm.ReplaceAllStringFunc(text, func(hex string) string {
		if !slices.Contains(seen, hex) {
			seen = append(seen, hex)
		}
		return fmt.Sprintf("<hex %d>", slices.Index(seen, hex)+1)
	})
}

var hexForm = regexp.MustCompile(`\b([0-9a-f]{64}|[0-9a-f]{16}|[0-9a-f]{12}|[0-9a-f]{4}( [0-9a-f]{4}){15})\b`)

// Golden is a txtar file with what each of many tests has to say, or, when it
// is to be updated, will have. Tests may use it at the same time.
type Golden struct {
	path   string
	update bool
	want   map[string]string

	mu  sync.Mutex
	got map[string]string
}

// ReadGolden reads the file.
func ReadGolden(t testing.TB, path string, update bool) *Golden {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil && !update {
		t.Fatal(err)
	}
	g := &Golden{path: path, update: update, want: map[string]string{}, got: map[string]string{}}
	if err == nil {
		for _, f := range archive.Files {
			g.want[f.Name] = string(f.Data)
		}
	}
	return g
}

// Check holds what a test said against its section.
func (g *Golden) Check(t testing.TB, name, said string) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, twice := g.got[name]; twice {
		t.Errorf("two tests are called %q", name)
	}
	g.got[name] = said
	if want := g.want[name]; !g.update && want != said {
		t.Errorf("stderr (-want +got), if it is right run  go test -run TestFailures -update\n%s", cmp.Diff(want, said))
	}
}

// Finish comes after all checks. names are those of all tests, in the order of
// the file; it may not have sections besides. A test that was skipped keeps
// its section. The comment heads a file that is written.
func (g *Golden) Finish(t testing.TB, comment string, names []string) {
	t.Helper()
	if !g.update {
		for name := range g.want {
			if !slices.Contains(names, name) {
				t.Errorf("%s has a section %q, which is no test", g.path, name)
			}
		}
		return
	}
	archive := &txtar.Archive{Comment: []byte(comment + "\n\n")}
	for _, name := range names {
		said, ok := g.got[name]
		if !ok {
			said = g.want[name]
		}
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(said)})
	}
	if err := os.WriteFile(g.path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}
