package policy

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

var update = flag.Bool("update", false, "write the files that follow from the code")

// follows compares a file with what the code says, or writes it.
func follows(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is out of date: go test ./policy -update\n%s", path, diff)
	}
}

func TestSchemaFileFollowsFromTheTypes(t *testing.T) {
	want, err := InputSchema()
	if err != nil {
		t.Fatal(err)
	}
	follows(t, "../docs/policy-input.schema.json", want)
}

// The tests of rules and those in Go start from the same input.
func TestFixtureIsAnInput(t *testing.T) {
	s := mustLibrary(t)
	modules := map[string]*ast.Module{}
	m, err := parse("fixtures", "fixtures_test.rego", s.Modules["fixtures_test.rego"])
	if err != nil {
		t.Fatal(err)
	}
	modules["fixtures_test.rego"] = m
	c := ast.NewCompiler().WithCapabilities(capabilities())
	if c.Compile(modules); c.Failed() {
		t.Fatal(c.Errors)
	}
	results, err := rego.New(rego.Query("x := data.packhof.rules.fixtures_test.clean"), rego.Compiler(c)).Eval(t.Context())
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	raw, err := ast.InterfaceToValue(results[0].Bindings["x"])
	if err != nil {
		t.Fatal(err)
	}
	document := jsontext.Value(raw.String())
	if err := document.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeInput(document); err != nil {
		t.Fatal(err, err.(*Error).Evidence())
	}
	if err := document.Indent(); err != nil {
		t.Fatal(err)
	}
	follows(t, "testdata/clean.json", append(document, '\n'))
}

func mustLibrary(t testing.TB) Source {
	t.Helper()
	s, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// clean is an input that the library allows.
func clean(t testing.TB) *Input {
	t.Helper()
	document, err := os.ReadFile("testdata/clean.json")
	if err != nil {
		t.Fatal(err)
	}
	in, err := DecodeInput(document)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func mustCompile(t testing.TB, s Source) *Policy {
	t.Helper()
	p, err := Compile(t.Context(), s)
	if err != nil {
		if e, ok := err.(*Error); ok {
			t.Log(e.Evidence())
		}
		t.Fatal(err)
	}
	return p
}

func mustEvaluate(t testing.TB, p *Policy, in *Input) *Decision {
	t.Helper()
	d, err := p.Evaluate(t.Context(), in)
	if err != nil {
		if e, ok := err.(*Error); ok {
			t.Log(e.Evidence())
		}
		t.Fatal(err)
	}
	return d
}

// head is the metadata of a rule called x about all kinds of artifacts.
const head = `# METADATA
# title: X
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: X
#   message: x
#   message_de: x
#   remedy: x
#   remedy_de: x
package packhof.rules.x
`

const checkAll = "\nchecked contains a.digest if some a in input.artifacts\n"

// one is a policy of the one rule x.
func one(text string) Source {
	return Source{Modules: map[string]string{"x.rego": text}, Config: map[string]any{"list": []any{"a"}, "most": 3.0}}
}

// mutate gives a document without each of its values, with each under another
// name, with one more beside it, and with a value of each other type.
func mutate(t testing.TB, document []byte, visit func(at, how string, mutant []byte)) {
	t.Helper()
	var whole any
	if err := json.Unmarshal(document, &whole); err != nil {
		t.Fatal(err)
	}
	show := func(at, how string) {
		mutant, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		visit(at, how, mutant)
	}
	var walk func(at string, value any)
	retype := func(at string, value any, set func(any)) {
		for _, other := range []any{nil, "x", 1.0, true, []any{}, map[string]any{}} {
			if reflect.TypeOf(other) != reflect.TypeOf(value) {
				set(other)
				show(at, fmt.Sprintf("as %T", other))
			}
		}
		if _, isNumber := value.(float64); isNumber {
			set(1.5)
			show(at, "as a fraction")
		}
		set(value)
		walk(at, value)
	}
	walk = func(at string, value any) {
		switch v := value.(type) {
		case []any:
			for i, one := range v {
				retype(fmt.Sprintf("%s/%d", at, i), one, func(x any) { v[i] = x })
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				one, place := v[name], at+"/"+name
				retype(place, one, func(x any) { v[name] = x })
				delete(v, name)
				show(place, "deleted")
				v[name+"s"] = one
				show(place, "renamed")
				v[name] = one
				show(place, "joined by another")
				delete(v, name+"s")
			}
		}
	}
	walk("", whole)
}
