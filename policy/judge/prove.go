package judge

import (
	"cmp"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"

	"github.com/packhof/packhof/internal/child"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

// proof is a child's answer about the tests of a policy.
type proof struct {
	ProofDigest string   `json:"proofDigest"`
	Refusal     *refusal `json:"refusal,omitzero"` // why the tests prove nothing
}

// refusal is a policy.Error on its way between two processes.
type refusal struct {
	Code     string   `json:"code"` // policy/…
	Text     string   `json:"text"`
	Evidence []string `json:"evidence"`
	Remedy   string   `json:"remedy"`
}

// Bounds of a refusal: what it says may be a plant's own text.
const (
	maxRefusalText  = 4 << 10 // bytes
	maxRefusalLines = 100
)

// Prove has the tests of a policy prove its rules, as policy.CheckTests does,
// and gives the digest of what was proven. An error with a code policy/… is
// about the policy; tests that do not end, or want too much memory, are
// policy/untested.
func (c Child) Prove(ctx context.Context, s policy.Source) (proofDigest string, err error) {
	digest, err := s.ProofDigest()
	if err != nil {
		return "", err
	}
	most := cmp.Or(max(c.ProofTimeout, 0), DefaultProofTimeout)
	ask, err := json.Marshal(request{Task: taskProve, Source: s, PolicyDigest: digest, Milliseconds: workingTime(most).Milliseconds()})
	if err != nil {
		return "", fmt.Errorf("request to the judge: %w", err)
	}
	answer, err := c.run(ctx, ask, most)
	if err != nil {
		return "", unproven(ctx, err)
	}
	return digest, decodeProof(answer, digest)
}

// unproven says why a child gave no answer. A program that is not there, or
// cannot be bounded, says nothing about the policy.
func unproven(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("proving the policy: %w", context.Cause(ctx))
	}
	e, ok := errors.AsType[*child.Error](err)
	if !ok || e.Reason == child.Absent || e.Reason == child.Unstartable || e.Reason == child.Unsupported {
		return err
	}
	return endless(describe(e))
}

func endless(why string) error {
	return problem.New("policy/untested", "the tests of the policy came to no end").With("reason:  " + why).
		Hint("find the rule or test that needs so much with  opa test")
}

func decodeProof(answer []byte, digest string) error {
	var p proof
	if err := json.Unmarshal(answer, &p, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("the judge's proof does not count: %w", err)
	}
	if p.ProofDigest != digest {
		return fmt.Errorf("the judge's proof does not count: it is about %.80q, not %s", p.ProofDigest, digest)
	}
	if p.Refusal == nil {
		return nil
	}
	r := p.Refusal
	if !strings.HasPrefix(r.Code, "policy/") || len(r.Text) > maxRefusalText || len(r.Remedy) > maxRefusalText || len(r.Evidence) > maxRefusalLines {
		return errors.New("the judge's proof does not count: it refuses for no reason that there is")
	}
	refused := problem.New(r.Code, "%s", r.Text).With(r.Evidence...)
	if r.Remedy == "" {
		return refused
	}
	return refused.Hint("%s", r.Remedy)
}

// prove is the child's side.
func (r *request) prove(ctx context.Context) ([]byte, error) {
	digest, err := r.Source.ProofDigest()
	if err != nil {
		return nil, err
	}
	if digest != r.PolicyDigest {
		return nil, fmt.Errorf("asked to prove %.80q with the rules and tests of %s", r.PolicyDigest, digest)
	}
	bounded, stop := r.bounded(ctx)
	defer stop()
	answer := proof{ProofDigest: digest}
	if answer.Refusal, err = refusalOf(bounded, policy.CheckTests(bounded, r.Source)); err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// refusalOf is nil for a policy that is proven. What is no word of the policy
// is an error, unless a bound was the reason.
func refusalOf(ctx context.Context, err error) (*refusal, error) {
	if err == nil {
		return nil, nil
	}
	if ctx.Err() != nil {
		err = endless(context.Cause(ctx).Error())
	}
	var told interface {
		error
		Code() string
		Evidence() []string
		Remedy() string
	}
	if !errors.As(err, &told) {
		return nil, err
	}
	evidence := told.Evidence()
	return &refusal{
		Code: told.Code(), Text: shortened(told.Error()), Evidence: evidence[:min(len(evidence), maxRefusalLines)], Remedy: shortened(told.Remedy()),
	}, nil
}

func shortened(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxRefusalText)], "")
}
