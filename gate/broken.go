package gate

import (
	"context"

	"github.com/packhof/packhof/internal/problem"
)

// broken is how a row that cannot be right is shown: somebody may have rejected
// it, and nothing else can become of it.
func broken(r *row) Summary {
	if r.ended {
		return Summary{ID: r.ID, State: Rejected}
	}
	return Summary{ID: r.ID, State: Unreadable}
}

// brokenCase tells of a case whose rows cannot be right what is wrong with them,
// and what the audit log says of it.
func (g *Gate) brokenCase(ctx context.Context, r *row, why error) (*Case, error) {
	c := &Case{Summary: broken(r), Problem: asProblem(why), Loads: []Load{}}
	var err error
	c.History, _, err = g.history(ctx, r.ID)
	return c, err
}

// rejectBroken ends a case whose row cannot be right, which is all that can be
// done with it: the row stays as it is but for state and problem. Nobody vouches
// for what it was; the leaf says what it is from now on, and what was wrong.
func (t *tx) rejectBroken(ctx context.Context, by Actor, r *row, review, reason string, trouble error) error {
	live, err := isLive(ctx, t, r.ID)
	switch {
	case err != nil:
		return err
	case live:
		return isPulled(r.ID)
	case r.ended:
		return problem.New("case/not-waiting", "case %d waits for no such decision: it is %s", r.ID, Rejected).Hint("packhof-gate show %d", r.ID)
	}
	if err := t.isOfOthers(ctx, by, r); err != nil {
		return err
	}
	seen := &row{Summary: Summary{ID: r.ID}} // nothing of it was shown but that it is broken
	if err := seen.fitsChoice(Reject, review, reason); err != nil {
		return err
	}
	t.changed = append(t.changed, caseSubject(r.ID)) // without holding it against the log
	if err := t.recordDecision(ctx, by, seen, Reject, reason); err != nil {
		return err
	}
	why := asProblem(problem.New("case/rejected", "%s rejected the bundle", by.Name()).With("reason:  "+reason, "row:     "+trouble.Error()))
	text, err := jsonText(why)
	if err != nil {
		return err
	}
	// Rows of one manifest that were refused become live ones here: the name
	// of the manifest is left to the genuine one.
	if _, err := t.ExecContext(ctx, `UPDATE cases SET state = ?, problem = ?, changed = ?,
		manifest = CASE WHEN EXISTS (SELECT 1 FROM cases o WHERE o.manifest = cases.manifest AND o.id <> cases.id AND o.state <> ?) THEN manifest || ' of case ' || id ELSE manifest END
		WHERE id = ?`, Rejected, text, seconds(t.now), NotGenuine, r.ID); err != nil {
		return err
	}
	return t.log(ctx, leaf{Actor: by.Name(), Type: "case.rejected", Outcome: outcomeOK, Case: r.ID, Detail: reason, Data: map[string]string{"row": trouble.Error()}})
}
