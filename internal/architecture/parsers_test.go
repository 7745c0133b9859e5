package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fuzzed are the parsers of bytes, text and requests that others wrote, with the
// target that fuzzes each, of its own package.
var fuzzed = map[string]string{
	"bundle.Open":                "FuzzOpen",
	"bundle.OpenReceipt":         "FuzzReceipt",
	"bundle.ParseChunkList":      "FuzzChunkList",
	"bundle.ParseEnrolment":      "FuzzEnrolment",
	"bundle.ParseManifestUnsafe": "FuzzManifest",
	"bundle.ParseOCI":            "FuzzParseOCI",
	"bundle.ParsePackIndex":      "FuzzPackIndex",
	"bundle.ParseVolumeSizes":    "FuzzVolumeSizes",
	"bundle.ParseWant":           "FuzzWant",
	"bundle.decodeLoose":         "FuzzManifest",
	"bundle.decodeStrict":        "FuzzManifest",
	"bundle.listEntries":         "FuzzContainer",
	"bundle.parseHeader":         "FuzzContainer",
	"bundle.parse":               "FuzzPackIndex",
	"bundle.parseIndexHead":      "FuzzPackIndex",
	"bundle.parseManifest":       "FuzzManifest",
	"bundle.parsePath":           "FuzzPackIndex",
	"bundle.parseVolume":         "FuzzVolumeJSON",
	"bundle.parseVolumeSize":     "FuzzVolumeSizes",
	"bundle.remembered":          "FuzzJournal",
	"bundle.sumsOf":              "FuzzSums",

	"signing.ParseBundle":      "FuzzParseBundle",
	"signing.ParseFingerprint": "FuzzParseFingerprint",
	"signing.ParseKeyID":       "FuzzParseKeyID",
	"signing.ParsePrivateKey":  "FuzzParsePrivateKey",
	"signing.ParsePublicKey":   "FuzzParsePublicKey",
	"signing.ParseRevocations": "FuzzParseRevocations",
	"signing.ParseRoot":        "FuzzParseRoot",
	"signing.decodeRoot":       "FuzzParseRoot",
	"signing.decodeStrict":     "FuzzParseRoot",
	"signing.parseHint":        "FuzzParseBundle",
	"signing.parseTime":        "FuzzParseRoot",

	"policy.DecodeDecision":      "FuzzDecodeDecision",
	"policy.DecodeInput":         "FuzzDecodeInput",
	"policy.ParseConfig":         "FuzzParseConfig",
	"policy/judge.decodeProof":   "FuzzProof",
	"policy/judge.decodeRequest": "FuzzServe",

	"gate.parseAnchor":            "FuzzAnchor",
	"gate/depot.parseDigest":      "FuzzDigest",
	"gate/depot.parseOCIPath":     "FuzzOCIPath",
	"gate/depot.parsePage":        "FuzzPage",
	"gate/registry.parseFallback": "FuzzFallback",
	"gate/s3.parseSums":           "FuzzSums",
}

// notFuzzed are functions that are called like parsers and read nothing foreign.
var notFuzzed = map[string]string{
	"gate.parse":          "rows of the gate's own database",
	"gate.parseRoles":     "rows of the gate's own database",
	"gate/registry.parse": "hands on to bundle.ParseOCI",
	"policy.parse":        "rules of the plant, read by the compiler of OPA",
	"policy.parseAll":     "rules of the plant, read by the compiler of OPA",
}

var parserName = regexp.MustCompile(`^(?i:parse|decode)`)

// foreign are the folders in which everything that is called like a parser must
// be fuzzed: it reads what came over the gap, or from clients.
var foreign = regexp.MustCompile(`^(bundle|signing|policy|gate)[./]`)

// TestEveryParserIsFuzzed: a parser that is new, a target that is gone, and a
// target without a corpus, wherever in the tree it is, fail.
func TestEveryParserIsFuzzed(t *testing.T) {
	seen := functions(t, filepath.Join("..", ".."))
	targets := 0
	for name := range seen {
		pkg, short, _ := strings.Cut(name, ".")
		if strings.HasPrefix(short, "Fuzz") {
			targets++
			mustHaveCorpus(t, pkg, short)
		}
		if !foreign.MatchString(name) {
			continue
		}
		if parserName.MatchString(short) && fuzzed[name] == "" && notFuzzed[name] == "" {
			t.Errorf("%s is called like a parser: name what fuzzes it, or why nothing does", name)
		}
	}
	for name, target := range fuzzed {
		pkg, _, _ := strings.Cut(name, ".")
		if !seen[name] || !seen[pkg+"."+target] {
			t.Errorf("%s is gone, or %s, which fuzzes it", name, target)
		}
	}
	for name := range notFuzzed {
		if !seen[name] {
			t.Errorf("%s is gone", name)
		}
	}
	if targets < 50 {
		t.Errorf("only %d targets were found", targets)
	}
}

// mustHaveCorpus wants entries of a target that are committed, or can be.
func mustHaveCorpus(t *testing.T, pkg, target string) {
	t.Helper()
	corpus, err := os.ReadDir(filepath.Join("..", "..", filepath.FromSlash(pkg), "testdata", "fuzz", target))
	if err != nil || len(corpus) == 0 {
		t.Errorf("%s of %s has no corpus below testdata/fuzz: %v", target, pkg, err)
	}
}

// functions are those of a tree that could parse, and what fuzzes, by package.
func functions(t *testing.T, root string) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		within, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || within == "build") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		return eachFunction(path, func(name string) {
			seen[filepath.ToSlash(filepath.Dir(within))+"."+name] = true
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// eachFunction calls found with the name of every function that a file declares
// and that could parse: tests of it only where they fuzz.
func eachFunction(path string, found func(name string)) error {
	tree, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	isTest := strings.HasSuffix(path, "_test.go")
	for _, decl := range tree.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && isTest == strings.HasPrefix(f.Name.Name, "Fuzz") {
			found(f.Name.Name)
		}
	}
	return nil
}
