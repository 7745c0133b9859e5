package policy

import (
	"cmp"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"slices"
)

// Verdict is what a policy says about a bundle.
type Verdict string

const (
	Allow  Verdict = "allow"
	Review Verdict = "review" // a person must decide
	Deny   Verdict = "deny"
	Failed Verdict = "error" // nothing was decided; blocks like deny
)

// Blocks tells whether nothing may be let through, whoever approves.
func (v Verdict) Blocks() bool { return v != Allow && v != Review }

// Level is how much a finding weighs.
type Level string

const (
	LevelDeny   Level = "deny"
	LevelReview Level = "review"
	LevelWarn   Level = "warn"
	LevelInfo   Level = "info"
)

func levels() []Level { return []Level{LevelDeny, LevelReview, LevelWarn, LevelInfo} }

// Finding is one statement of a rule about one artifact.
type Finding struct {
	Rule     string         `json:"rule"`
	Artifact string         `json:"artifact"` // its digest; "" for the bundle
	Level    Level          `json:"level"`
	Params   map[string]any `json:"params"` // string, float64 or bool
}

// Failure says why nothing was decided.
type Failure struct {
	Rule    string `json:"rule"` // "" if it is not about one rule
	Message string `json:"message"`
}

// Decision is what judging an input came to. The same policy and input always
// give the same decision, byte for byte.
type Decision struct {
	Verdict      Verdict   `json:"verdict"`
	Findings     []Finding `json:"findings"` // heaviest first, then by rule, artifact and parameters
	Errors       []Failure `json:"errors"`
	PolicyDigest string    `json:"policyDigest"` // of what judged; "" if it never came to that
	InputDigest  string    `json:"inputDigest"`  // of the canonical input; "" if there was none
}

// FailedDecision is a decision that nothing was decided, and why.
func FailedDecision(policyDigest, inputDigest string, first Failure, more ...Failure) *Decision {
	d := &Decision{PolicyDigest: policyDigest, InputDigest: inputDigest}
	for _, f := range append([]Failure{first}, more...) {
		d.Errors = append(d.Errors, Failure{Rule: f.Rule, Message: Visible(f.Message)})
	}
	d.conclude()
	return d
}

// conclude sorts, and draws the verdict from findings and errors.
func (d *Decision) conclude() {
	d.Verdict = d.due()
	slices.SortFunc(d.Findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(levels(), a.Level), slices.Index(levels(), b.Level)),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Artifact, b.Artifact),
			cmp.Compare(paramsKey(a.Params), paramsKey(b.Params)),
		)
	})
	slices.SortFunc(d.Errors, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
}

func (d *Decision) due() Verdict {
	has := func(l Level) bool {
		return slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Level == l })
	}
	switch {
	case len(d.Errors) > 0:
		return Failed
	case has(LevelDeny):
		return Deny
	case has(LevelReview):
		return Review
	}
	return Allow
}

func paramsKey(params map[string]any) string {
	b, err := json.Marshal(params, json.Deterministic(true))
	if err != nil {
		return err.Error() // cannot be: readParams lets scalars through only
	}
	return string(b)
}

// FindingsDigest binds an approval to what was found and to what failed.
func (d *Decision) FindingsDigest() (string, error) {
	b, err := json.Marshal(map[string]any{"findings": d.Findings, "errors": d.Errors})
	if err != nil {
		return "", fmt.Errorf("findings: %w", err)
	}
	value := jsontext.Value(b)
	if err := value.Canonicalize(); err != nil {
		return "", fmt.Errorf("findings: %w", err)
	}
	return digestOf(value), nil
}

// MaxDecision bounds a decision's JSON, in bytes.
const MaxDecision = 32 << 20

// Encode gives the canonical bytes (RFC 8785) of a decision.
func (d *Decision) Encode() ([]byte, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	value := jsontext.Value(b)
	if err := value.Canonicalize(); err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	return value, nil
}

// DecodeDecision reads a decision that was written by Encode, about this
// policy and this input. One that contradicts itself is an *Error with code
// policy/invalid-decision: it may come out of a process that went wrong, or
// out of a database that somebody changed.
func DecodeDecision(document []byte, policyDigest, inputDigest string) (*Decision, error) {
	if len(document) > MaxDecision {
		return nil, fault(codeInvalidReply, "the decision has %d bytes, more than the %d allowed", len(document), MaxDecision)
	}
	var d Decision
	if err := json.Unmarshal(document, &d, json.RejectUnknownMembers(true)); err != nil {
		return nil, fault(codeInvalidReply, "the decision is malformed").because(err)
	}
	for _, f := range d.Findings {
		if err := f.check(); err != nil {
			return nil, fault(codeInvalidReply, "the decision is malformed").because(err)
		}
	}
	switch {
	case d.PolicyDigest != policyDigest:
		return nil, fault(codeInvalidReply, "the decision is by another policy").with("want:  "+policyDigest, "got:   "+Visible(d.PolicyDigest))
	case d.InputDigest != inputDigest:
		return nil, fault(codeInvalidReply, "the decision is about other facts").with("want:  "+inputDigest, "got:   "+Visible(d.InputDigest))
	case d.Verdict != d.due():
		return nil, fault(codeInvalidReply, "the verdict does not follow from the findings").with("want:  "+string(d.due()), "got:   "+Visible(string(d.Verdict)))
	}
	canonical, err := d.Encode()
	if err != nil || string(canonical) != string(document) {
		return nil, fault(codeInvalidReply, "the decision is not in canonical form").because(err)
	}
	return &d, nil
}

// check holds what can be told of a finding by itself.
func (f Finding) check() error {
	if f.Rule == "" {
		return fmt.Errorf("a finding is of no rule")
	}
	if !slices.Contains(levels(), f.Level) {
		return fmt.Errorf("a finding of rule %s has level %.40q", f.Rule, f.Level)
	}
	return checkParams(f.Params)
}
