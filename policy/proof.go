package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"
)

// A rule is proved by tests whose names begin with these: what it finds, and
// what it lets pass.
const (
	firesPrefix  = "test_fires"
	passesPrefix = "test_passes"
)

// testTime bounds one test.
const testTime = 5 * time.Second

// TestResult is how one test of a rule ended.
type TestResult struct {
	Rule    string        `json:"rule"`
	Name    string        `json:"name"`
	File    string        `json:"file"`
	Line    int           `json:"line"`
	Passed  bool          `json:"passed"`
	Message string        `json:"message"` // an error, if it was one
	Took    time.Duration `json:"-"`
}

// Test runs all tests of a policy, as "opa test" would, with the functions
// that rules may use and no others. The results are sorted by file and line.
func Test(ctx context.Context, s Source) ([]TestResult, error) {
	modules, err := s.parseAll()
	if err != nil {
		return nil, err
	}
	return runTests(ctx, s, modules)
}

// CheckTests says whether the tests of a policy prove its rules: every test
// passes; every rule has one that fires and one that passes; and these really
// look at the rule: they fail once it finds nothing, or always something.
// Otherwise the error is an *Error with code policy/untested.
func CheckTests(ctx context.Context, s Source) error {
	if _, err := Compile(ctx, s); err != nil {
		return err
	}
	results, err := Test(ctx, s)
	if err != nil {
		return err
	}
	for _, r := range results {
		if !r.Passed {
			return fault(codeUntested, "a test of rule %s fails: %s", r.Rule, r.Name).
				with(fmt.Sprintf("at:  %s:%d", r.File, r.Line)).with(lines(r.Message)...)
		}
	}
	for _, mutant := range []struct{ prefix, findings, means string }{
		{firesPrefix, "findings contains json.unmarshal(`0`) if { false }", "that fires; one must fail when the rule finds nothing"},
		{passesPrefix, "findings contains json.unmarshal(`" + `{"artifact": "", "level": "deny", "params": {}}` + "`)", "that passes; one must fail when the rule always finds something"},
	} {
		if err := s.checkMutant(ctx, mutant.prefix, mutant.findings, mutant.means); err != nil {
			return err
		}
	}
	return nil
}

func lines(message string) []string {
	if message == "" {
		return nil
	}
	return []string{message}
}

// checkMutant replaces what all rules find at once, which is as good as one
// after the other: the tests of a rule look at that rule.
func (s Source) checkMutant(ctx context.Context, prefix, findings, means string) error {
	modules, err := s.parseAll()
	if err != nil {
		return err
	}
	var rules []string
	for file, m := range modules {
		id, isTest, _ := ruleOf(file)
		if isTest {
			continue
		}
		rules = append(rules, id)
		if err := replaceFindings(m, findings); err != nil {
			return err
		}
	}
	results, err := runTests(ctx, s, modules)
	if err != nil {
		return err
	}
	slices.Sort(rules)
	for _, id := range rules {
		proved := slices.ContainsFunc(results, func(r TestResult) bool {
			return r.Rule == id && !r.Passed && r.Message == "" && strings.HasPrefix(r.Name, prefix)
		})
		if !proved {
			return fault(codeUntested, "rule %s has no test %s", id, means).
				hint("write " + prefix + "_… in " + id + "_test.rego")
		}
	}
	return nil
}

// replaceFindings leaves the helpers in place. The text that replaces must give
// a value of any type, or tests that look into findings would not compile.
func replaceFindings(m *ast.Module, findings string) error {
	body, err := ast.ParseModuleWithOpts("findings", m.Package.String()+"\n\n"+findings, ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		return fmt.Errorf("replacing findings: %w", err)
	}
	m.Rules = slices.DeleteFunc(m.Rules, func(r *ast.Rule) bool { return ruleHead(r) == "findings" })
	for _, r := range body.Rules {
		r.Module = m
		m.Rules = append(m.Rules, r)
	}
	return nil
}

func (s Source) parseAll() (map[string]*ast.Module, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	modules := map[string]*ast.Module{}
	for _, file := range slices.Sorted(maps.Keys(s.Modules)) {
		id, _, _ := ruleOf(file)
		m, err := parse(id, file, s.Modules[file])
		if err != nil {
			return nil, err
		}
		modules[file] = m
	}
	return modules, nil
}

func runTests(ctx context.Context, s Source, modules map[string]*ast.Module) ([]TestResult, error) {
	compiler := ast.NewCompiler().WithCapabilities(capabilities()).WithDefaultRegoVersion(ast.RegoV1)
	store := s.store()
	runner := tester.NewRunner().SetCompiler(compiler).SetStore(store).
		RaiseBuiltinErrors(true).SetParallel(1).SetTimeout(testTime).SetModules(modules)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("tests of the policy: %w", err)
	}
	defer store.Abort(ctx, txn)
	ended, err := runner.RunTests(ctx, txn)
	if err != nil {
		return nil, uncompilable(err)
	}
	var results []TestResult
	for r := range ended {
		results = append(results, testResult(r))
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("tests of the policy: %w", context.Cause(ctx))
	}
	slices.SortFunc(results, func(a, b TestResult) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return results, nil
}

func testResult(r *tester.Result) TestResult {
	id, _, _ := ruleOf(r.Location.File)
	t := TestResult{Rule: id, Name: r.Name, File: r.Location.File, Line: r.Location.Row, Passed: r.Pass() && !r.Skip, Took: r.Duration}
	if r.Error != nil {
		t.Message = Visible(r.Error.Error())
	}
	return t
}
