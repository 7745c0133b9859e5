package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// Policy is a compiled policy; it never changes and may be used by many at
// once.
type Policy struct {
	digest string
	rules  []Rule
	ready  map[string]rego.PreparedEvalQuery // by rule
}

// Compile parses, checks and compiles the rules of a source; its tests are
// parsed and checked only as far as their names go: CheckTests runs them.
// Errors are *Error, with file and line as evidence.
func Compile(ctx context.Context, s Source) (*Policy, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	digest, err := s.Digest()
	if err != nil {
		return nil, err
	}
	p := &Policy{digest: digest, ready: map[string]rego.PreparedEvalQuery{}}
	modules := map[string]*ast.Module{}
	for _, file := range slices.Sorted(maps.Keys(s.Modules)) {
		id, isTest, _ := ruleOf(file)
		module, err := parse(id, file, s.Modules[file])
		if err != nil {
			return nil, err
		}
		if isTest {
			continue
		}
		rule, err := describe(id, file, module)
		if err != nil {
			return nil, err
		}
		if err := checkContract(id, file, module); err != nil {
			return nil, err
		}
		p.rules = append(p.rules, rule)
		modules[file] = module
	}
	compiler, err := compile(modules, s.Config)
	if err != nil {
		return nil, err
	}
	return p, p.prepare(ctx, compiler, s.store())
}

// Digest names the policy: see Source.Digest.
func (p *Policy) Digest() string { return p.digest }

// Rules are the rules, sorted by id.
func (p *Policy) Rules() []Rule { return slices.Clone(p.rules) }

// Rule finds a rule by id.
func (p *Policy) Rule(id string) (Rule, bool) {
	i := slices.IndexFunc(p.rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return p.rules[i], true
}

func (s Source) store() storage.Store {
	return inmem.NewFromObject(map[string]any{"packhof": map[string]any{"config": maps.Clone(s.Config)}})
}

func (p *Policy) prepare(ctx context.Context, compiler *ast.Compiler, store storage.Store) error {
	for _, r := range p.rules {
		at := "data.packhof.rules." + r.ID
		query, err := rego.New(
			rego.Query("findings := "+at+".findings; checked := "+at+".checked"),
			rego.Compiler(compiler),
			rego.Store(store),
			rego.StrictBuiltinErrors(true),
		).PrepareForEval(ctx)
		if err != nil {
			return fault(codeInvalidRule, "rule %s cannot be prepared", r.ID).because(err)
		}
		p.ready[r.ID] = query
	}
	return nil
}

func parse(id, file, text string) (*ast.Module, error) {
	m, err := ast.ParseModuleWithOpts(file, text, ast.ParserOptions{
		Capabilities: capabilities(), ProcessAnnotation: true, RegoVersion: ast.RegoV1,
	})
	if err != nil {
		e := uncompilable(err)
		if len(e.Evidence()) == 0 {
			e.with("at:  " + file + ":1")
		}
		return nil, e
	}
	want := "data.packhof.rules." + strings.TrimSuffix(file, ".rego")
	if got := m.Package.Path.String(); got != want {
		return nil, invalidRule(id, file, m.Package.Location.Row, "the package is "+strings.TrimPrefix(got, "data.")+"; the file's name asks for "+strings.TrimPrefix(want, "data."))
	}
	return m, nil
}

// compile compiles modules against the schema of the input, so that a rule
// that asks for a fact nobody states does not compile.
func compile(modules map[string]*ast.Module, config map[string]any) (*ast.Compiler, error) {
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, inputSchema().document())
	c := ast.NewCompiler().
		WithCapabilities(capabilities()).
		WithDefaultRegoVersion(ast.RegoV1).
		WithStrict(true).
		WithSchemas(schemas).
		WithUseTypeCheckAnnotations(false)
	if c.Compile(modules); c.Failed() {
		return nil, uncompilable(c.Errors)
	}
	for _, file := range slices.Sorted(maps.Keys(modules)) {
		if err := checkReferences(file, c.Modules[file], config); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// uncompilable keeps the places that OPA names: at most ten.
func uncompilable(err error) *Error {
	e := fault(codeInvalidRule, "the policy does not compile")
	var list ast.Errors
	if !errors.As(err, &list) {
		return e.because(err)
	}
	const most = 10
	for i, one := range list {
		if i == most {
			return e.with(fmt.Sprintf("and %d more", len(list)-most))
		}
		if one.Location == nil {
			e.with(Visible(one.Message))
			continue
		}
		e.with(fmt.Sprintf("at:  %s:%d: %s", one.Location.File, one.Location.Row, Visible(one.Message)))
	}
	return e
}

// checkContract holds what can be seen of a rule's text.
func checkContract(id, file string, m *ast.Module) error {
	for _, name := range []string{"findings", "checked"} {
		defined := slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return r.Head.Ref().String() == name })
		if !defined {
			return invalidRule(id, file, m.Package.Location.Row, "the package does not define "+name)
		}
	}
	for _, r := range m.Rules {
		name := ruleHead(r)
		switch {
		case strings.HasPrefix(name, "test_") || strings.HasPrefix(name, "todo_test_"):
			return invalidRule(id, file, r.Location.Row, "tests stand in "+id+"_test.rego")
		case name == "findings" || name == "checked":
			if r.Head.RuleKind() != ast.MultiValue || len(r.Head.Ref()) != 1 {
				return invalidRule(id, file, r.Location.Row, name+" must be a set, written with contains")
			}
		}
	}
	return checkNoWith(id, file, m)
}

func ruleHead(r *ast.Rule) string {
	return strings.Trim(r.Head.Ref()[0].Value.String(), `"`)
}

// checkNoWith refuses to look at other facts than the stated ones.
func checkNoWith(id, file string, m *ast.Module) error {
	var found *ast.With
	ast.WalkWiths(m, func(w *ast.With) bool {
		found = w
		return true
	})
	if found != nil {
		return invalidRule(id, file, found.Location.Row, "only tests may replace something by with")
	}
	return nil
}

// checkReferences holds what a rule may look at: itself, and parameters that
// exist. Anything else would be undefined, and undefined finds nothing.
func checkReferences(file string, m *ast.Module, config map[string]any) error {
	id, _, _ := ruleOf(file)
	var bad ast.Ref
	ast.WalkRefs(m, func(ref ast.Ref) bool {
		if bad == nil && ref.HasPrefix(ast.DefaultRootRef) && !mayRead(id, ref, config) {
			bad = ref
		}
		return false
	})
	if bad == nil {
		return nil
	}
	line := m.Package.Location.Row
	if at := bad[0].Location; at != nil {
		line = at.Row
	}
	return invalidRule(id, file, line, "it reads "+Visible(bad.String())+"; rules read themselves, and parameters that "+ConfigFile+" has, as data.packhof.config.NAME")
}

func mayRead(id string, ref ast.Ref, config map[string]any) bool {
	path := make([]string, 0, len(ref))
	for _, term := range ref[1:] {
		s, ok := term.Value.(ast.String)
		if !ok {
			break
		}
		path = append(path, string(s))
	}
	if len(path) < 3 || path[0] != "packhof" {
		return false
	}
	switch path[1] {
	case "rules":
		return path[2] == id
	case "config":
		_, known := config[path[2]]
		return known
	}
	return false
}
