//go:build linux

package judge_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

// tested is a policy of one rule, which denies what is called no, and tests
// that prove it; more is one test more.
func tested(more string) policy.Source {
	s := rule("")
	s.Modules["no.rego"] = strings.Replace(s.Modules["no.rego"], "{}} if some a in input.artifacts\n", "{}} if { some a in input.artifacts; a.name == \"no\" }\n", 1)
	s.Modules["no_test.rego"] = `package packhof.rules.no_test

import data.packhof.rules.no

test_fires_no if count(no.findings) == 1 with input as {"artifacts": [{"digest": "d", "name": "no"}]}

test_passes_yes if count(no.findings) == 0 with input as {"artifacts": [{"digest": "d", "name": "yes"}]}
` + more
	return s
}

func evidenceOf(err error) string {
	var told interface{ Evidence() []string }
	if errors.As(err, &told) {
		return strings.Join(told.Evidence(), "\n")
	}
	return ""
}

func TestProve(t *testing.T) {
	got, err := self(t, "judge").Prove(t.Context(), tested(""))
	if err != nil {
		t.Fatal(err, evidenceOf(err))
	}
	want, err := tested("").ProofDigest()
	if err != nil || got != want {
		t.Errorf("proven: %s, want %s, %v", got, want, err)
	}
}

// What the child says of a policy is what policy.CheckTests says.
func TestProveRefusesAsCheckTestsDoes(t *testing.T) {
	for name, s := range map[string]policy.Source{
		"no tests":             rule(""),
		"a test that fails":    tested("\ntest_fires_never if false\n"),
		"one that errs":        tested("\ntest_fires_x if to_number(\"x\") == 1\n"),
		"does not compile":     rule("nonsense"),
		"tests do not compile": tested("nonsense"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := policy.CheckTests(t.Context(), s)
			_, got := self(t, "judge").Prove(t.Context(), s)
			if want == nil || got == nil {
				t.Fatalf("want %v, got %v", want, got)
			}
			if got.Error() != want.Error() || problem.CodeOf(got) != problem.CodeOf(want) || evidenceOf(got) != evidenceOf(want) {
				t.Errorf("want %s: %v\n%s\ngot %s: %v\n%s", problem.CodeOf(want), want, evidenceOf(want), problem.CodeOf(got), got, evidenceOf(got))
			}
		})
	}
}

func TestProofThatCannotBeBelieved(t *testing.T) {
	for role, want := range map[string]string{
		"crash":   "ended with exit code 2",
		"deaf":    "does not count",
		"garbage": "does not count",
		"twice":   "does not count",
		"unasked": "does not count",
		"denying": "for no reason that there is",
		"flood":   "wrote more output",
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			digest, err := self(t, role).Prove(t.Context(), tested(""))
			if err == nil || !strings.Contains(err.Error()+evidenceOf(err), want) {
				t.Errorf("got %q and %v, %s, want %q", digest, err, evidenceOf(err), want)
			}
		})
	}
}

// Tests of a plant's rules are code as its rules are: they end within bounds.
func TestProofEndsWithinBounds(t *testing.T) {
	for name, body := range map[string]string{
		"processor":             "some i in numbers.range(1, 100000); some j in numbers.range(1, 100000); i * j == -1",
		"processor in one call": "count(numbers.range(1, 10000000000)) == 0",
		"memory":                "y := sprintf(\"%01000000d\", [1]); x := [s | some i in numbers.range(1, 5000); s := concat(\"\", [y, format_int(i, 10)])]; count(x) == 0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := self(t, "judge")
			if c.ProofTimeout = 4 * time.Second; name == "memory" { // whose end is not a matter of time
				c.ProofTimeout = time.Minute
			}
			_, err := c.Prove(t.Context(), tested("\ntest_fires_bomb if { "+body+" }\n"))
			if problem.CodeOf(err) != "policy/untested" {
				t.Errorf("got %s, %v\n%s", problem.CodeOf(err), err, evidenceOf(err))
			}
		})
	}
}

func TestProofEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := self(t, "judge").Prove(ctx, tested("")); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

// ownFolder is a plant's folder with one rule and its tests.
func ownFolder(tests string) fstest.MapFS {
	dir := fstest.MapFS{}
	for name, text := range tested(tests).Modules {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return dir
}

func TestLoad(t *testing.T) {
	library, err := policy.Library()
	if err != nil {
		t.Fatal(err)
	}
	nobody := self(t, "judge")
	nobody.Program += "-not-there" // what needs a child fails
	for name, plant := range map[string]fs.FS{
		"no folder": nil, "empty": fstest.MapFS{},
		"parameters": fstest.MapFS{"config.json": &fstest.MapFile{Data: []byte(`{"allowed_sources":["registry.example"]}`)}},
	} {
		got, err := nobody.Load(t.Context(), plant, "")
		if err != nil || got.Own != 0 || got.Proven != "" || len(got.Source.Rules()) != len(library.Rules()) {
			t.Errorf("%s: %d own, proven %q, %v", name, got.Own, got.Proven, err)
		}
	}
	first, err := self(t, "judge").Load(t.Context(), ownFolder(""), "")
	if err != nil || first.Own != 1 || first.Proven == "" {
		t.Fatalf("%d own, proven %q, %v", first.Own, first.Proven, err)
	}
	if _, err := nobody.Load(t.Context(), ownFolder(""), ""); problem.CodeOf(err) != "child/absent" {
		t.Errorf("what was never proven is taken, or not for want of a child: %v", err)
	}
	again, err := nobody.Load(t.Context(), ownFolder(""), first.Proven)
	if err != nil || again.Proven != first.Proven {
		t.Errorf("what was proven is not known: proven %q, %v", again.Proven, err)
	}
	if _, err := nobody.Load(t.Context(), ownFolder("\n# other tests\n"), first.Proven); problem.CodeOf(err) != "child/absent" {
		t.Errorf("other tests are taken for those that were run: %v", err)
	}
	if _, err := self(t, "judge").Load(t.Context(), ownFolder("\ntest_fires_never if false\n"), first.Proven); problem.CodeOf(err) != "policy/untested" {
		t.Errorf("tests that fail: %v", err)
	}
}
