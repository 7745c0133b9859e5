package gate

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
)

// advance takes a case as far as it goes without people. The error is what
// stands against it then.
func (g *Gate) advance(ctx context.Context, by Actor, id CaseID, observe func(Progress)) error {
	for {
		r, err := rowOf(ctx, g.db.read, id)
		if err != nil {
			return err
		}
		switch r.State {
		case Verified:
			err = g.inspect(ctx, by, r, observe)
		case Inspected, CheckFailed:
			if err := g.decideByPolicy(ctx, by, r, observe); err != nil {
				return g.standsAgainst(ctx, by, r, err)
			}
			return g.refusalOf(ctx, id)
		default:
			return g.refusalOf(ctx, id)
		}
		if err != nil {
			return g.standsAgainst(ctx, by, r, err)
		}
	}
}

// standsAgainst records what keeps a case from going on: where trust or time
// have turned against it, that is its end, unless names of it are published.
func (g *Gate) standsAgainst(ctx context.Context, by Actor, r *row, failure error) error {
	why := asProblem(failure)
	if ctx.Err() != nil || why.Code == "case/busy" {
		return failure
	}
	err := g.step(ctx, "stands-against", func(t *tx) error {
		now, err := rowOf(ctx, t, r.ID)
		if err != nil {
			return err
		}
		live, err := isLive(ctx, t, r.ID)
		if err != nil {
			return err
		}
		to, end := refusalState(failure)
		switch {
		case live:
			to = PartlyLoaded
		case !end:
			to = now.State
		case to == NotGenuine:
			to = Blocked // it was genuine: whom the gate trusts has changed
		}
		if err := t.move(ctx, now, to, why); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: by.Name(), Type: "case.stopped", Outcome: outcomeFailed, Case: r.ID, Bundle: r.label(), Detail: why.What, Data: why})
	})
	return errors.Join(failure, err)
}

// refusalOf is what stands against a case, as an error; nil where it goes on
// or waits for people.
func (g *Gate) refusalOf(ctx context.Context, id CaseID) error {
	r, err := rowOf(ctx, g.db.read, id)
	if err != nil {
		return err
	}
	switch r.State {
	case Received, Verified, Inspected, Awaiting, Approved, Loading, Loaded, PartlyLoaded:
		return nil
	}
	return r.refusal()
}

// inspect looks into every file and keeps what it found.
func (g *Gate) inspect(ctx context.Context, by Actor, r *row, observe func(Progress)) error {
	v, err := g.bundleOf(ctx, g.db.read, r.ID)
	if err != nil {
		return err
	}
	if observe != nil {
		observe(Progress{Case: r.ID, Phase: "inspect"})
	}
	reports, err := facts.Inspect(ctx, v.bundle, g.openForInspection, facts.Limits())
	if err != nil {
		return err
	}
	return g.step(ctx, "inspected", func(t *tx) error {
		if err := t.move(ctx, r, Inspected, nil); err != nil {
			return err
		}
		return t.keepReports(ctx, by, r, reports)
	})
}

// keepReports writes down what an inspection found, and which program looked.
func (t *tx) keepReports(ctx context.Context, by Actor, r *row, reports *facts.Reports) error {
	text, err := json.Marshal(reports, json.Deterministic(true))
	if err != nil {
		return err
	}
	if err := t.change(ctx, caseSubject(r.ID)); err != nil {
		return err
	}
	if _, err := t.ExecContext(ctx, `UPDATE cases SET inspection = ?, inspector = ? WHERE id = ?`, string(text), t.gate.program, r.ID); err != nil {
		return err
	}
	return t.log(ctx, leaf{Actor: by.Name(), Type: "case.inspected", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: counted(reports.Len(), "{n} file looked into", "{n} files looked into")})
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

// reportsOf gives what inspection found. A program of another version looks
// again, once: it may know more.
func (g *Gate) reportsOf(ctx context.Context, by Actor, r *row, b *bundle.Bundle) (reports *facts.Reports, err error) {
	var text []byte
	var inspector string
	if err := g.db.read.QueryRowContext(ctx, `SELECT coalesce(inspection, ''), inspector FROM cases WHERE id = ?`, r.ID).Scan(&text, &inspector); err != nil {
		return nil, err
	}
	if len(text) > 0 && inspector == g.program {
		reports = &facts.Reports{}
		if json.Unmarshal(text, reports) == nil { // otherwise kept in an earlier form
			return reports, nil
		}
	}
	if reports, err = facts.Inspect(ctx, b, g.openForInspection, facts.Limits()); err != nil {
		return nil, err
	}
	return reports, g.step(ctx, "inspected-again", func(t *tx) error { return t.keepReports(ctx, by, r, reports) })
}

// statement is a bundle with all that is to be judged about it.
type statement struct {
	vouched
	input *policy.Input
	surroundings
	proven provenBlobs
}

// state states the facts about a bundle that is in the store, from rows that
// the audit log vouches for. It writes nothing but what a program of another
// version finds in files that were inspected before.
func (g *Gate) state(ctx context.Context, by Actor, r *row) (*statement, error) {
	q := g.db.read
	for _, s := range []subject{caseSubject(r.ID), channelSubject(r.Channel)} {
		if err := g.sealed(ctx, q, s); err != nil {
			return nil, err
		}
	}
	v, err := g.bundleOf(ctx, q, r.ID)
	if err != nil {
		return nil, err
	}
	s := &statement{vouched: v, proven: provenBlobs{store: g.store, files: map[bundle.Digest]fileIdentity{}}}
	reports, err := g.reportsOf(ctx, by, r, v.bundle)
	if err != nil {
		return nil, err
	}
	if s.surroundings, err = surroundingsOf(ctx, q, r.ID, v.bundle.Manifest()); err != nil {
		return nil, err
	}
	s.input, err = facts.State(ctx, facts.Subject{
		Bundle: v.bundle, Root: v.trust.Root(), Time: facts.Time{Floor: v.floor, Wall: g.clock()}, Held: s.held, Gap: s.gap,
		Destinations: g.destinationsOf, Inspection: reports,
	})
	return s, err
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
	s, err := g.state(ctx, by, r)
	if err != nil {
		return err
	}
	decision, err := g.judge.Evaluate(ctx, s.input)
	if err != nil {
		return err
	}
	return g.step(ctx, "decided", func(t *tx) error { return g.writeDecision(ctx, t, by, r, s, decision) })
}

// writeDecision is the step from facts to a verdict. Approvals that were given
// for the very review that it writes still count.
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
	count := func(l policy.Level) (n int) {
		for _, f := range decision.Findings {
			if f.Level == l {
				n++
			}
		}
		return n
	}
	if err := t.change(ctx, caseSubject(r.ID)); err != nil {
		return err
	}
	if _, err := t.ExecContext(ctx, `UPDATE cases SET verdict = ?, decision = ?, review = ?, review_digest = ?, needed = ?, deny = ?, review_findings = ?, warn = ? WHERE id = ?`,
		decision.Verdict, text, string(document), reviewDigest(document), review.Needed,
		count(policy.LevelDeny), count(policy.LevelReview), count(policy.LevelWarn), r.ID); err != nil {
		return err
	}
	r.reviewDigest, r.Needed, r.Verdict = reviewDigest(document), review.Needed, decision.Verdict
	live, err := isLive(ctx, t, r.ID)
	if err != nil {
		return err
	}
	to, why := stateFor(decision, review.Needed, live, r.ID, s.bundle.Manifest())
	if err := t.move(ctx, r, to, why); err != nil {
		return err
	}
	if err := t.settle(ctx, r); err != nil {
		return err
	}
	detail := counted(len(decision.Findings), "{verdict}, {n} finding, policy {policy}", "{verdict}, {n} findings, policy {policy}", "verdict", decision.Verdict, "policy", decision.PolicyDigest)
	return t.log(ctx, leaf{Actor: by.Name(), Type: "case.judged", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: detail,
		Data: map[string]string{"policy": decision.PolicyDigest, "input": decision.InputDigest, "review": r.reviewDigest}})
}

func reviewDigest(document []byte) string { return digestOf(document).String() }

// stateFor is where a verdict leads. What is live stays partly loaded: its
// names stand until something replaces them.
func stateFor(d *policy.Decision, needed int, live bool, id CaseID, m *bundle.Manifest) (to State, why *Problem) {
	switch {
	case d.Verdict == policy.Deny:
		to, why = Blocked, asProblem(denied(d, id, m))
	case d.Verdict.Blocks():
		to, why = CheckFailed, asProblem(notDecided(d))
	case needed == 0:
		to = Approved
	default:
		to = Awaiting
	}
	if live {
		to = PartlyLoaded
	}
	return to, why
}

// needed is how many people have to approve a verdict.
func (g *Gate) needed(v policy.Verdict) int {
	if v == policy.Allow {
		return g.approvals.Allow
	}
	return g.approvals.Review
}

func denied(d *policy.Decision, id CaseID, m *bundle.Manifest) error {
	var evidence []string
	for _, f := range d.Findings {
		if f.Level == policy.LevelDeny && len(evidence) < maxEvidence {
			evidence = append(evidence, "finding:  "+findingText(f, m))
		}
	}
	return problem.New("policy/denied", "the policy does not let this bundle in").With(evidence...).
		Hint("packhof-gate show %d  tells more; the sender has to leave out or replace what is named", id)
}

func notDecided(d *policy.Decision) error {
	var evidence []string
	for _, e := range d.Errors {
		if len(evidence) < maxEvidence {
			who := "rule " + e.Rule
			if e.Rule == "" {
				who = "judge"
			}
			evidence = append(evidence, who+":  "+e.Message)
		}
	}
	return problem.New("policy/error", "the policy reached no verdict, so nothing is let in").With(evidence...).
		Hint("mend what is named; then receive the bundle again")
}

const maxEvidence = 20

// findingText names a rule and what it is about.
func findingText(f policy.Finding, m *bundle.Manifest) string {
	for _, a := range m.Artifacts {
		if a.Root.Digest.String() == f.Artifact {
			return fmt.Sprintf("%s, %s %s %s", f.Rule, a.Kind, a.Name, a.Version)
		}
	}
	return f.Rule
}
