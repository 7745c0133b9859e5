package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// Limits of what rules may find.
const (
	maxFindings  = 20_000
	maxParams    = 16
	maxParamText = 4 << 10 // bytes
)

// Evaluate judges an input. An error means that the input is not one, see
// DecodeInput; everything that goes wrong while judging, the context's end
// included, is an error in the decision, whose verdict then is Failed.
func (p *Policy) Evaluate(ctx context.Context, in *Input) (*Decision, error) {
	digest, err := in.Digest()
	if err != nil {
		return nil, err
	}
	value := in.value()
	in = in.outline() // large facts are in memory once while rules look at them
	d := &Decision{PolicyDigest: p.digest, InputDigest: digest}
	checked := map[string]bool{}
	for _, r := range p.rules {
		// What a rule that failed should have looked at is not without a
		// decision: the decision is the error.
		for _, digest := range r.due(in) {
			checked[digest] = true
		}
		findings, err := p.evaluateRule(ctx, r, in, value)
		if err != nil {
			d.Errors = append(d.Errors, Failure{Rule: r.ID, Message: Visible(err.Error())})
			continue
		}
		d.Findings = append(d.Findings, findings...)
	}
	d.Errors = append(d.Errors, floor(p.rules, in, checked)...)
	if len(d.Findings) > maxFindings {
		d.Errors = append(d.Errors, Failure{Message: fmt.Sprintf("the rules found %d things, more than the %d allowed", len(d.Findings), maxFindings)})
		d.Findings = nil
	}
	d.conclude()
	return d, nil
}

// outline is what has to be known of an input beside its value.
func (in *Input) outline() *Input {
	o := &Input{}
	for _, a := range in.Artifacts {
		o.Artifacts = append(o.Artifacts, Artifact{Kind: a.Kind, Name: a.Name, Digest: a.Digest})
	}
	return o
}

// floor is what no rule can switch off. That every artifact says of its SBOM
// whether it is there is held by the input's own check.
func floor(rules []Rule, in *Input, checked map[string]bool) []Failure {
	var failures []Failure
	if len(rules) == 0 {
		failures = append(failures, Failure{Message: "there are no rules"})
	}
	for _, a := range in.Artifacts {
		if !checked[a.Digest] {
			failures = append(failures, Failure{Message: fmt.Sprintf("artifact without a decision: no rule looked at %s %s, %s", a.Kind, Visible(a.Name), a.Digest)})
		}
	}
	return failures
}

func (p *Policy) evaluateRule(ctx context.Context, r Rule, in *Input, value ast.Value) ([]Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("not judged: %w", context.Cause(ctx))
	}
	query := p.ready[r.ID]
	results, err := query.Eval(ctx, rego.EvalParsedInput(value))
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, fmt.Errorf("it gave %d results instead of one", len(results))
	}
	checked, err := readChecked(results[0].Bindings["checked"])
	if err != nil {
		return nil, err
	}
	if due := r.due(in); !slices.Equal(due, checked) {
		return nil, fmt.Errorf("it must look at %d artifacts of the kinds it names and says that it looked at %d%s", len(due), len(checked), firstDifference(due, checked))
	}
	return readFindings(r, in, results[0].Bindings["findings"])
}

func firstDifference(due, checked []string) string {
	for _, digest := range due {
		if !slices.Contains(checked, digest) {
			return ": not at " + nameOf(digest)
		}
	}
	for _, digest := range checked {
		if !slices.Contains(due, digest) {
			return ": also at " + nameOf(digest)
		}
	}
	return ""
}

func nameOf(digest string) string {
	if digest == "" {
		return "the bundle"
	}
	return fmt.Sprintf("%.80q", digest)
}

func readChecked(v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("checked is %T, not a set", v)
	}
	digests := make([]string, 0, len(list))
	for _, one := range list {
		digest, ok := one.(string)
		if !ok {
			return nil, fmt.Errorf("checked has a %T, not a digest", one)
		}
		digests = append(digests, digest)
	}
	slices.Sort(digests)
	return digests, nil
}

func readFindings(r Rule, in *Input, v any) ([]Finding, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("findings is %T, not a set", v)
	}
	if len(list) > maxFindings {
		return nil, fmt.Errorf("it found %d things, more than the %d allowed", len(list), maxFindings)
	}
	due := map[string]bool{}
	for _, digest := range r.due(in) {
		due[digest] = true
	}
	needed, _ := placeholders(r.English.Message) // describe has checked it
	findings := make([]Finding, 0, len(list))
	for _, one := range list {
		f, err := readFinding(r.ID, one)
		if err != nil {
			return nil, err
		}
		if !due[f.Artifact] {
			return nil, fmt.Errorf("a finding is about %s, which is of no kind that the rule names", nameOf(f.Artifact))
		}
		for _, name := range needed {
			if _, ok := f.Params[name]; !ok {
				return nil, fmt.Errorf("a finding lacks the parameter %s, which the message needs", name)
			}
		}
		findings = append(findings, f)
	}
	return findings, nil
}

// readFinding is strict: a finding with a misspelt member must not count as
// one without it.
func readFinding(rule string, v any) (Finding, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return Finding{}, fmt.Errorf("a finding is %T, not an object", v)
	}
	artifact, isText := object["artifact"].(string)
	level, isLevel := object["level"].(string)
	params, isObject := object["params"].(map[string]any)
	if !isText || !isLevel || !isObject || len(object) != 3 {
		return Finding{}, fmt.Errorf("a finding has artifact, level and params, and nothing else, got %q", slices.Sorted(maps.Keys(object)))
	}
	f := Finding{Rule: rule, Artifact: artifact, Level: Level(level), Params: map[string]any{}}
	for name, value := range params {
		plain, err := plainParam(value)
		if err != nil {
			return Finding{}, fmt.Errorf("parameter %s: %w", name, err)
		}
		f.Params[name] = plain
	}
	return f, f.check()
}
