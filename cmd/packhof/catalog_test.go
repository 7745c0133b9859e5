package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/cli"
)

// Every code that the sources can give is in the catalogue, and the catalogue
// has none besides.
func TestCatalogIsComplete(t *testing.T) {
	catalog := map[string]bool{}
	groups := map[string]bool{}
	for _, entry := range cli.Catalog() {
		if catalog[entry.Code] {
			t.Errorf("the catalogue has %s twice", entry.Code)
		}
		catalog[entry.Code] = true
		group, _, _ := strings.Cut(entry.Code, "/")
		groups[group] = true
	}
	used := usedCodes(t, groups)
	for _, code := range slices.Sorted(maps.Keys(used)) {
		if !catalog[code] {
			t.Errorf("%s gives the code %s, which is not in the catalogue", used[code], code)
		}
		delete(catalog, code)
	}
	for _, code := range slices.Sorted(maps.Keys(catalog)) {
		t.Errorf("the catalogue has %s, which nothing gives", code)
	}
}

// codeText is that of a code: a group and a name, or one of the few without a
// group, which only internal/cli gives.
var codeText = regexp.MustCompile(`^([a-z][a-z0-9]*)/[a-z0-9-]+$`)

// usedCodes finds, in all sources but the catalogue itself, the first
// arguments of problem.New, the texts that functions named Code return, and
// whatever else has the form of a code of a known group; each with the place
// of one of its uses.
func usedCodes(t *testing.T, groups map[string]bool) map[string]string {
	t.Helper()
	used := map[string]string{}
	eachSource(t, func(set *token.FileSet, tree *ast.File) {
		found := func(n ast.Expr, isCode bool) {
			text, ok := literal(n)
			group := codeText.FindStringSubmatch(text)
			if ok && text != "" && (isCode || group != nil && groups[group[1]]) {
				used[text] = set.Position(n.Pos()).String()
			}
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				found(n, false)
			case *ast.CallExpr:
				if isProblemNew(n) {
					found(n.Args[0], true)
				}
			case *ast.FuncDecl:
				if n.Name.Name == "Code" || n.Name.Name == "CodeOf" {
					eachReturned(n, func(e ast.Expr) { found(e, true) })
				}
			}
			return true
		})
	})
	return used
}

func eachSource(t *testing.T, do func(set *token.FileSet, tree *ast.File)) {
	t.Helper()
	root := filepath.Join("..", "..")
	skip := []string{"build", "testdata", "testkit", "demo", "bench", "tools", "architecture"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(skip, d.Name()) || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case d.IsDir(), filepath.Ext(path) != ".go", strings.HasSuffix(path, "_test.go"), strings.HasPrefix(d.Name(), "catalog"):
			return nil
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err == nil {
			do(set, tree)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Evidence is for people: a list in it is written out, and never as Go prints
// one.
func TestEvidenceIsForPeople(t *testing.T) {
	eachSource(t, func(set *token.FileSet, tree *ast.File) {
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "With" {
				return true
			}
			for _, arg := range call.Args {
				ast.Inspect(arg, func(n ast.Node) bool {
					if lit, ok := n.(*ast.BasicLit); ok && strings.Contains(lit.Value, "%v") {
						t.Errorf("%s: %s prints whatever it gets", set.Position(lit.Pos()), lit.Value)
					}
					return true
				})
			}
			return true
		})
	})
}

func isProblemNew(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || f.Sel.Name != "New" || len(call.Args) == 0 {
		return false
	}
	pkg, ok := f.X.(*ast.Ident)
	return ok && pkg.Name == "problem"
}

func eachReturned(f *ast.FuncDecl, do func(ast.Expr)) {
	ast.Inspect(f, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok {
			for _, e := range r.Results {
				do(e)
			}
		}
		return true
	})
}

func literal(n ast.Expr) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// Codes without a remedy in the catalogue, and why.
var withoutRemedy = map[string]string{
	"failed":                "what helps depends on what failed",
	"usage":                 own,
	"config/missing":        own,
	"passphrase/none":       own,
	"password/none":         own,
	"cache/manifest-lost":   own,
	"volume/size-malformed": own,
	"volume/too-small":      own,
	"volume/too-many":       own,
	"bundle/revoked":        own,
	"trust/exists":          own,
	"trust/no-channel":      own,
	"trust/no-gate":         own,
	"trust/gate-known":      own,
	"trust/not-a-signer":    own,
	"case/whole":            own,
	"case/not-waiting":      own,
	"account/exists":        own,
	"account/name":          own,
	"account/password":      own,
	"account/roles":         own,
	"freshness/epoch":       own,
	"freshness/older":       own,
	"policy/error":          own,
}

const own = "each of its errors brings a nearer one"

// Whoever meets an error is told what to do: the catalogue knows something for
// each code but those above, and no error of the recorded ones goes without.
func TestEachCodeHasARemedy(t *testing.T) {
	unhinted := unhintedCodes(t)
	for _, entry := range cli.Catalog() {
		why, excused := withoutRemedy[entry.Code]
		switch {
		case entry.Remedy == "" && !excused:
			t.Errorf("%s has no remedy", entry.Code)
		case entry.Remedy != "" && excused:
			t.Errorf("%s has a remedy after all", entry.Code)
		case why == own && unhinted[entry.Code] != "":
			t.Errorf("%s: this error of %s brings no remedy", unhinted[entry.Code], entry.Code)
		}
	}
	for _, path := range []string{goldenFailures, "../packhof-gate/" + goldenFailures} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, said := range strings.Split(string(b), "\n-- ")[1:] {
			name, text, _ := strings.Cut(said, " --\n")
			if strings.Contains(text, "\ncode: ") && !strings.Contains(text, "\nhint: ") {
				t.Errorf("%s: %s: nobody is told what to do:\n%s", path, name, text)
			}
		}
	}
}

// unhintedCodes finds the calls of problem.New that no remedy follows, by code.
func unhintedCodes(t *testing.T) map[string]string {
	t.Helper()
	unhinted := map[string]string{}
	eachSource(t, func(set *token.FileSet, tree *ast.File) {
		hinted := map[*ast.CallExpr]bool{}
		ast.Inspect(tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Hint" {
				ast.Inspect(f.X, func(n ast.Node) bool {
					if made, ok := n.(*ast.CallExpr); ok {
						hinted[made] = true
					}
					return true
				})
			}
			if isProblemNew(call) && !hinted[call] {
				if code, ok := literal(call.Args[0]); ok {
					unhinted[code] = set.Position(call.Pos()).String()
				}
			}
			return true
		})
	})
	return unhinted
}
