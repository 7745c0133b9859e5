package gate

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
	"github.com/packhof/packhof/sbom/inspect"
)

// advance takes a case as far as it goes without people.
func (g *Gate) advance(ctx context.Context, by Actor, id CaseID, observe func(Progress)) error {
	for {
		r, err := rowOf(ctx, g.db.read, id)
		if err != nil {
			return err
		}
		switch {
		case r.State == Verified:
			err = g.inspect(ctx, by, r, observe)
		case r.State == Inspected, r.State == CheckFailed && !r.admitted:
			err = g.decideByPolicy(ctx, by, r, observe)
			if err == nil {
				return g.refusalOf(ctx, id)
			}
		default:
			return g.refusalOf(ctx, id)
		}
		if err != nil {
			return err
		}
	}
}

// refusalOf is what stands against a case, as an error; nil where it goes on
// or waits for people.
func (g *Gate) refusalOf(ctx context.Context, id CaseID) error {
	r, err := rowOf(ctx, g.db.read, id)
	if err != nil {
		return err
	}
	switch r.State {
	case Blocked, Rejected, Expired, CheckFailed, Damaged, NotGenuine:
		return r.problem.Err()
	}
	return nil
}

// inspect looks into every file and keeps what it found.
func (g *Gate) inspect(ctx context.Context, by Actor, r *row, observe func(Progress)) error {
	b, err := g.bundleOf(ctx, g.db.read, r.ID)
	if err != nil {
		return err
	}
	if observe != nil {
		observe(Progress{Case: r.ID, Phase: "inspect"})
	}
	reports, err := facts.Inspect(ctx, b, g.openForInspection, inspect.Limits{})
	if err != nil {
		return err
	}
	text, err := json.Marshal(reports, json.Deterministic(true))
	if err != nil {
		return err
	}
	return g.step(ctx, "inspected", func(t *tx) error {
		if err := t.move(ctx, r, Inspected, nil); err != nil {
			return err
		}
		if _, err := t.ExecContext(ctx, `UPDATE cases SET inspection = ? WHERE id = ?`, string(text), r.ID); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: by.Name(), Type: "case.inspected", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Detail: fmt.Sprintf("%d files looked into", len(reports))})
	})
}

func (g *Gate) openForInspection(d bundle.Digest) (facts.ReadAtCloser, int64, error) {
	f, err := g.store.OpenUnsafe(d)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// reportsOf reads what inspection found.
func reportsOf(ctx context.Context, q queryer, id CaseID) (facts.Reports, error) {
	var text []byte
	if err := q.QueryRowContext(ctx, `SELECT coalesce(inspection, '{}') FROM cases WHERE id = ?`, id).Scan(&text); err != nil {
		return nil, err
	}
	var reports facts.Reports
	return reports, json.Unmarshal(text, &reports)
}

// statement is a bundle with all that is to be judged about it.
type statement struct {
	bundle *bundle.Bundle
	input  *policy.Input
	held   []facts.Held
}

// state states the facts about a bundle that is in the store.
func (g *Gate) state(ctx context.Context, q queryer, r *row) (*statement, error) {
	b, err := g.bundleOf(ctx, q, r.ID)
	if err != nil {
		return nil, err
	}
	reports, err := reportsOf(ctx, q, r.ID)
	if err != nil {
		return nil, err
	}
	held, err := heldBy(ctx, q, r.Channel)
	if err != nil {
		return nil, err
	}
	floor, err := floorOf(ctx, q)
	if err != nil {
		return nil, err
	}
	trust, err := needTrust(ctx, q)
	if err != nil {
		return nil, err
	}
	in, err := facts.State(ctx, facts.Subject{
		Bundle: b, Root: trust.Root(), Time: facts.Time{Floor: floor, Wall: g.clock()}, Held: held, Gap: r.missing,
		Destinations: g.destinationsOf, Inspection: reports,
	})
	return &statement{bundle: b, input: in, held: held}, err
}

// destinationsOf names the destinations that accept an artifact.
func (g *Gate) destinationsOf(a bundle.Artifact) []string {
	names := []string{}
	for _, d := range g.destinations {
		if d.accepts(a.Kind) {
			names = append(names, d.Name)
		}
	}
	return names
}

// heldBy is what the channel's last release brought.
func heldBy(ctx context.Context, q queryer, channel string) ([]facts.Held, error) {
	return rowsOf(ctx, q, func(s scanner) (facts.Held, error) {
		var h facts.Held
		var digest digestColumn
		err := s.Scan(&h.Kind, &h.Name, &h.Version, &digest)
		h.Digest = digest.value()
		return h, err
	}, `SELECT kind, name, version, digest FROM holding WHERE channel = ? ORDER BY kind, name, version`, channel)
}

// decideByPolicy has the facts judged and writes what people decide on.
func (g *Gate) decideByPolicy(ctx context.Context, by Actor, r *row, observe func(Progress)) error {
	if observe != nil {
		observe(Progress{Case: r.ID, Phase: "judge"})
	}
	s, err := g.state(ctx, g.db.read, r)
	if err != nil {
		return err
	}
	decision, err := g.judge.Evaluate(ctx, s.input)
	if err != nil {
		return err
	}
	return g.step(ctx, "decided", func(t *tx) error { return g.writeDecision(ctx, t, by, r, s, decision) })
}

// writeDecision is the step from facts to a verdict.
func (g *Gate) writeDecision(ctx context.Context, t *tx, by Actor, r *row, s *statement, decision *policy.Decision) error {
	review, err := g.buildReview(ctx, t, r, s, decision)
	if err != nil {
		return err
	}
	document, err := canonical(review)
	if err != nil {
		return err
	}
	text, err := jsonText(decision)
	if err != nil {
		return err
	}
	if _, err := t.ExecContext(ctx, `UPDATE cases SET verdict = ?, decision = ?, review = ?, review_digest = ?, needed = ? WHERE id = ?`,
		decision.Verdict, text, string(document), reviewDigest(document), review.Needed, r.ID); err != nil {
		return err
	}
	to, why := g.stateFor(decision, review.Needed)
	if err := t.move(ctx, r, to, why); err != nil {
		return err
	}
	detail := fmt.Sprintf("%s, %d findings, policy %s", decision.Verdict, len(decision.Findings), decision.PolicyDigest)
	return t.log(ctx, leaf{Actor: by.Name(), Type: "case.judged", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Detail: detail,
		Data: map[string]string{"policy": decision.PolicyDigest, "input": decision.InputDigest, "review": reviewDigest(document)}})
}

func reviewDigest(document []byte) string { return digestOf(document).String() }

// stateFor is where a verdict leads.
func (g *Gate) stateFor(d *policy.Decision, needed int) (State, *Problem) {
	switch {
	case d.Verdict == policy.Deny:
		return Blocked, asProblem(denied(d))
	case d.Verdict.Blocks():
		return CheckFailed, asProblem(notDecided(d))
	case needed == 0:
		return Approved, nil
	}
	return Awaiting, nil
}

// needed is how many people have to approve a verdict.
func (g *Gate) needed(v policy.Verdict) int {
	if v == policy.Allow {
		return g.approvals.Allow
	}
	return g.approvals.Review
}

func denied(d *policy.Decision) error {
	var evidence []string
	for _, f := range d.Findings {
		if f.Level == policy.LevelDeny && len(evidence) < maxEvidence {
			evidence = append(evidence, "finding:  "+findingText(f))
		}
	}
	return problem.New("policy/denied", "the policy does not let this bundle in").With(evidence...).
		Hint("packhof-gate show  tells more; the sender has to leave out or replace what is named")
}

func notDecided(d *policy.Decision) error {
	var evidence []string
	for _, e := range d.Errors {
		if len(evidence) < maxEvidence {
			evidence = append(evidence, strings.TrimSpace("rule:  "+e.Rule+" "+e.Message))
		}
	}
	return problem.New("policy/error", "the policy reached no verdict, so nothing is let in").With(evidence...).
		Hint("mend the policy; then receive the bundle again")
}

const maxEvidence = 20

func findingText(f policy.Finding) string {
	return strings.TrimSpace(fmt.Sprintf("%s  %s", f.Rule, f.Artifact))
}
