package main

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/cli"
)

// What no test can meet here, and why.
var unmet = map[string]string{
	"child/unsupported": "told on systems without the limits of Linux",
}

// Every code of the catalogue is met by some test: its text, or the name of the
// constant or error type that gives it, stands in a test or its data.
func TestEachCodeIsMet(t *testing.T) {
	givers := codeGivers(t)
	tests := testTexts(t)
	for _, entry := range cli.Catalog() {
		met := strings.Contains(tests, entry.Code)
		for _, name := range givers[entry.Code] {
			met = met || regexp.MustCompile(`\b`+name+`\b`).MatchString(tests)
		}
		switch _, excused := unmet[entry.Code]; {
		case !met && !excused:
			t.Errorf("no test meets %s", entry.Code)
		case met && excused:
			t.Errorf("a test meets %s after all", entry.Code)
		}
	}
}

// codeGivers lists for each code the constants and error types that stand for it.
func codeGivers(t *testing.T) map[string][]string {
	t.Helper()
	givers := map[string][]string{}
	add := func(name string, value ast.Expr) {
		if text, ok := literal(value); ok && codeText.MatchString(text) {
			givers[text] = append(givers[text], name)
		}
	}
	eachSource(t, func(_ *token.FileSet, tree *ast.File) {
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					add(n.Names[i].Name, value)
				}
			case *ast.FuncDecl:
				if n.Recv == nil || n.Name.Name != "Code" {
					return true
				}
				ast.Inspect(n.Recv.List[0].Type, func(r ast.Node) bool {
					if id, ok := r.(*ast.Ident); ok {
						eachReturned(n, func(e ast.Expr) { add(id.Name, e) })
					}
					return true
				})
			}
			return true
		})
	})
	return givers
}

// testTexts is all tests and their data, without those that hold lists of codes.
func testTexts(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	lists := []string{"met_test.go", "german_test.go", "catalog_test.go"}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "build" || d.Name() == "fuzz" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case d.IsDir(), slices.Contains(lists, d.Name()):
			return nil
		case !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "/testdata/"):
			return nil
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
