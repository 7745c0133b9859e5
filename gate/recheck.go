package gate

import (
	"context"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

// recheck holds the bundle against the trust, the time and the policy of this
// hour. Where the outcome is another one than was approved, the case goes back
// to be decided anew; where there is no outcome, it stays as it is.
func (g *Gate) recheck(ctx context.Context, by Actor, r *row) (*statement, error) {
	s, decision, err := g.judgedNow(ctx, by, r)
	if err != nil {
		return nil, g.standsAgainst(ctx, by, r, err)
	}
	now, err := g.reviewNow(ctx, r, s, decision)
	if err != nil {
		return nil, err
	}
	if now == r.reviewDigest && !decision.Verdict.Blocks() {
		return s, nil
	}
	approved := r.reviewDigest
	if err := g.bindAnew(ctx, by, r, s, decision); err != nil {
		return nil, err
	}
	if refusal := g.refusalOf(ctx, r.ID); refusal != nil {
		return nil, refusal
	}
	return nil, changedSince(r.ID, approved, now)
}

// judgedNow is what a release checks of a bundle, whatever was approved. It
// writes nothing, as state does.
func (g *Gate) judgedNow(ctx context.Context, by Actor, r *row) (*statement, *policy.Decision, error) {
	s, err := g.state(ctx, by, r)
	if err != nil {
		return nil, nil, err
	}
	m := s.bundle.Manifest()
	for _, err := range []error{g.checkAudience(m), checkExpiry(m, s.floor), checkEpoch(m, s.trust.Root()), checkDocuments(m), g.everyArtifactHasAPlace(m)} {
		if err != nil {
			return nil, nil, err
		}
	}
	decision, err := g.verdict(ctx, s)
	return s, decision, err
}

func changedSince(id CaseID, approved, now string) error {
	return problem.New("case/changed", "something changed since case %d was approved, so the approval no longer holds", id).
		With("approved:  "+approved, "now:       "+now).Hint("look at it again: packhof-gate show %d", id)
}

// everyArtifactHasAPlace refuses to call something loaded that nobody could
// pull.
func (g *Gate) everyArtifactHasAPlace(m *bundle.Manifest) error {
	for _, a := range m.Artifacts {
		if len(g.destinationsOf(a)) == 0 {
			return problem.New("destination/none", "no destination accepts the %s %.200q", a.Kind, a.Name).
				Hint("add %s to what a destination accepts, in gate.yaml", a.Kind)
		}
	}
	return nil
}

// stillGood asks once more, in the last moment before something is written:
// hours may have passed since the case was checked.
func (g *Gate) stillGood(ctx context.Context, q queryer, id CaseID) (good bool, why error) {
	if _, err := g.bundleOf(ctx, q, id); err != nil {
		return false, err
	}
	r, err := rowOf(ctx, q, id)
	if err != nil {
		return false, err
	}
	return g.ready(ctx, q, r, g.wanted(r))
}
