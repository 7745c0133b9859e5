package policy

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The page for authors of rules says all there is to know.
func TestPageIsComplete(t *testing.T) {
	b, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	s := mustLibrary(t)
	var names []string
	for _, r := range mustCompile(t, s).Rules() {
		names = append(names, r.ID)
	}
	for name := range s.Config {
		names = append(names, name)
	}
	names = append(names, inputSchema().names()...)
	operators := []string{"and", "assign", "div", "eq", "equal", "gt", "gte", "internal.member_2", "internal.member_3", "internal.template_string", "lt", "lte", "minus", "mul", "neq", "or", "plus", "rem"}
	for _, name := range builtins() {
		if !slices.Contains(operators, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, name+"`") && !strings.Contains(page, "`"+name) {
			t.Errorf("docs/policy.md does not mention %s", name)
		}
	}
}

// names of all properties.
func (s *schema) names() []string {
	if s.items != nil {
		return s.items.names()
	}
	var all []string
	for _, f := range s.fields {
		all = append(append(all, f.name), f.value.names()...)
	}
	return all
}

// The example of the page is a rule that holds.
func TestPageExampleIsARule(t *testing.T) {
	b, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "```rego\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	s := mustLibrary(t)
	s.Modules["my_rule.rego"] = text
	s.Config["max_image_bytes"] = 1000.0
	d := mustEvaluate(t, mustCompile(t, s), clean(t))
	if len(d.Findings) != 1 || d.Findings[0].Rule != "my_rule" || d.Verdict != Review {
		t.Errorf("%+v", d)
	}
}
