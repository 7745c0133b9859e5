package gate

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

const maxReason = 4000 // bytes

// Review gives what is to be decided on, and what was.
func (g *Gate) Review(ctx context.Context, by Actor, id CaseID) (*ReviewPage, error) {
	if err := by.needs(MayRead); err != nil {
		return nil, err
	}
	r, err := rowOf(ctx, g.db.read, id)
	if err != nil {
		return nil, err
	}
	if len(r.review) == 0 {
		return nil, problem.New("case/no-review", "case %d has not been judged: it is %s", id, r.State).Hint("packhof-gate show %d", id)
	}
	page := &ReviewPage{Digest: r.reviewDigest, JSON: r.review}
	if err := json.Unmarshal(r.review, &page.Review); err != nil {
		return nil, err
	}
	page.Decisions, err = decisionsOf(ctx, g.db.read, r)
	return page, err
}

func decisionsOf(ctx context.Context, q queryer, r *row) ([]Decision, error) {
	list, err := rowsOf(ctx, q, func(s scanner) (Decision, error) {
		var d Decision
		var at int64
		err := s.Scan(&d.Actor, &d.Choice, &d.Reason, &d.Review, &at)
		d.At, d.Counts = fromSeconds(at), d.Review == r.reviewDigest
		return d, err
	}, `SELECT actor, choice, reason, review, at FROM decision WHERE case_id = ? ORDER BY at, actor`, r.ID)
	return append([]Decision{}, list...), err
}

// Decide records what somebody decided about the review with this digest, the
// one that was on their page. Approving binds to it: when bundle, policy,
// findings or plan change, the approval is void. Nobody decides about what they
// submitted, and everybody counts once.
func (g *Gate) Decide(ctx context.Context, by Actor, id CaseID, choice Choice, review, reason string) (*Case, error) {
	if err := by.needs(MayDecide); err != nil {
		return nil, err
	}
	reason = strings.TrimSpace(reason)
	if len(reason) > maxReason || !utf8.ValidString(reason) {
		return nil, problem.New("case/reason", "a reason has up to %d bytes of text", maxReason)
	}
	err := g.step(ctx, "decide", func(t *tx) error {
		r, err := rowOf(ctx, t, id)
		if err != nil {
			return err
		}
		if err := mayDecide(by, r, choice, review, reason); err != nil {
			return err
		}
		return t.recordDecision(ctx, by, r, choice, reason)
	})
	if err != nil {
		return nil, err
	}
	return g.Case(ctx, by, id)
}

func mayDecide(by Actor, r *row, choice Choice, review, reason string) error {
	submitter := strings.TrimPrefix(r.Submitter, osPrefix)
	switch {
	case choice != Approve && choice != Reject:
		return problem.New("case/choice", "%.20q is neither approve nor reject", choice)
	case r.State != Awaiting && !(choice == Reject && r.State == Approved):
		return problem.New("case/not-waiting", "case %d waits for no decision: it is %s", r.ID, r.State).Hint("packhof-gate show %d", r.ID)
	case by.person() == submitter:
		return problem.New("case/own", "%s brought this bundle in and cannot decide about it", by.Name()).
			With("submitter:  " + r.Submitter).Hint("somebody else has to decide")
	case review != r.reviewDigest:
		return problem.New("case/review-changed", "what case %d is about has changed since it was looked at", r.ID).
			With("seen:  "+review, "now:   "+r.reviewDigest).Hint("look at it again and decide then")
	case reason == "" && (choice == Reject || r.Verdict == policy.Review):
		return problem.New("case/reason", "a reason is needed to reject, and to approve what has findings for review").Hint("say why, in a sentence")
	}
	return nil
}

func (t *tx) recordDecision(ctx context.Context, by Actor, r *row, choice Choice, reason string) error {
	did, err := exists(ctx, t, `SELECT 1 FROM decision WHERE case_id = ? AND person = ? AND review = ?`, r.ID, by.person(), r.reviewDigest)
	if err != nil {
		return err
	}
	if did && choice == Approve {
		return problem.New("case/decided-already", "%s has approved case %d already", by.Name(), r.ID).Hint("somebody else has to decide as well")
	}
	if _, err := t.ExecContext(ctx, `INSERT INTO decision (case_id, person, actor, choice, reason, review, at) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET choice = excluded.choice, reason = excluded.reason, at = excluded.at`,
		r.ID, by.person(), by.Name(), choice, reason, r.reviewDigest, seconds(t.now)); err != nil {
		return err
	}
	kind := "case.approved"
	if choice == Reject {
		kind = "case.rejected"
	}
	data := map[string]string{"review": r.reviewDigest, "policy": r.decision.PolicyDigest}
	if err := t.log(ctx, leaf{Actor: by.Name(), Type: kind, Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Detail: reason, Data: data}); err != nil {
		return err
	}
	if choice == Reject {
		why := problem.New("case/rejected", "%s rejected the bundle", by.Name()).With("reason:  " + reason)
		return t.move(ctx, r, Rejected, asProblem(why))
	}
	count, err := approvalsOf(ctx, t, r)
	if err != nil || count < r.Needed {
		return err
	}
	return t.move(ctx, r, Approved, nil)
}

// approvalsOf counts the people whose approval holds: of this very review, by
// an account that still has a role that may decide.
func approvalsOf(ctx context.Context, q queryer, r *row) (int, error) {
	roles, err := rowsOf(ctx, q, func(s scanner) (string, error) {
		var roles string
		return roles, s.Scan(&roles)
	}, `SELECT a.roles FROM decision d JOIN account a ON a.name = d.person WHERE d.case_id = ? AND d.review = ? AND d.choice = 'approve'`, r.ID, r.reviewDigest)
	count := 0
	for _, text := range roles {
		if (Actor{account: true, name: "x", roles: parseRoles(text)}).May(MayDecide) {
			count++
		}
	}
	return count, err
}

// notYet says why a case cannot be released, nil if it can.
func (g *Gate) notYet(ctx context.Context, q queryer, r *row) error {
	switch r.State {
	case Approved, Loading, PartlyLoaded, Loaded:
	case CheckFailed:
		if !r.admitted {
			return r.problem.Err()
		}
	case Awaiting:
		count, err := approvalsOf(ctx, q, r)
		if err != nil {
			return err
		}
		return problem.New("case/waiting", "case %d waits for approval", r.ID).
			With(fmt.Sprintf("approvals:  %d of %d", count, r.Needed)).Hint("packhof-gate approve %d --as NAME", r.ID)
	case Blocked, Rejected, Expired, NotGenuine, Damaged:
		return r.problem.Err()
	default:
		return problem.New("case/unfinished", "case %d is not judged yet: it is %s", r.ID, r.State).Hint("receive its bundle again, so that it goes on")
	}
	count, err := approvalsOf(ctx, q, r)
	if err != nil {
		return err
	}
	if count < r.Needed {
		return problem.New("case/waiting", "case %d lacks approvals that hold", r.ID).
			With(fmt.Sprintf("approvals:  %d of %d", count, r.Needed)).Hint("packhof-gate approve %d --as NAME", r.ID)
	}
	return nil
}
