package gate

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

// MaxReason is how long the reason of a decision may be, in bytes.
const MaxReason = 4000

// Review gives what is to be decided on, and what was. As long as a decision
// can follow, it says what holds now: where that is not what was judged, the
// case is judged again, and approvals of before no longer count.
func (g *Gate) Review(ctx context.Context, by Actor, id CaseID) (*ReviewPage, error) {
	if err := by.needs(MayRead); err != nil {
		return nil, err
	}
	r, err := g.upToDate(ctx, by, id)
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
		err := s.Scan(&d.Actor, &d.Choice, &d.Reason, &d.Bound, &at)
		d.At, d.Counts = fromSeconds(at), d.Bound == r.reviewDigest
		return d, err
	}, `SELECT actor, choice, reason, review, at FROM decision WHERE case_id = ? ORDER BY at, actor`, r.ID)
	return append([]Decision{}, list...), err
}

// Decide records what somebody decided about the review with this digest, the
// one that was on their page. Approving binds to it: the case is judged again
// before, so that it is what holds now, and when bundle, policy, findings or
// plan change, the approval is void. Nobody decides about what they
// brought in, and everybody counts once. What is not judged yet has the empty
// review, and can be rejected; so can a case whose row cannot be right, with
// which nothing else is done.
func (g *Gate) Decide(ctx context.Context, by Actor, id CaseID, choice Choice, review, reason string) (*Case, error) {
	if err := by.needs(MayDecide); err != nil {
		return nil, err
	}
	reason = strings.TrimSpace(reason)
	if err := CheckReason(reason); err != nil {
		return nil, err
	}
	if choice == Approve {
		if err := g.stillSays(ctx, by, id, review); err != nil {
			return nil, err
		}
	}
	err := g.step(ctx, "decide", func(t *tx) error {
		r, err := rowOf(ctx, t, id)
		if choice == Reject && isRowDamaged(err) {
			return t.rejectBroken(ctx, by, r, review, reason, err)
		}
		if err != nil {
			return err
		}
		if err := t.mayDecide(ctx, by, r, choice, review, reason); err != nil {
			return err
		}
		if err := t.change(ctx, caseSubject(id)); err != nil {
			return err
		}
		if choice == Reject {
			return t.reject(ctx, by, r, reason)
		}
		return t.approve(ctx, by, r, reason)
	})
	if err != nil {
		return nil, err
	}
	return g.Case(ctx, by, id)
}

func (t *tx) mayDecide(ctx context.Context, by Actor, r *row, choice Choice, review, reason string) error {
	if err := t.isOpen(ctx, r, choice); err != nil {
		return err
	}
	if err := t.isOfOthers(ctx, by, r); err != nil {
		return err
	}
	return r.fitsChoice(choice, review, reason)
}

// isOfOthers refuses whoever brought something of the case in.
func (t *tx) isOfOthers(ctx context.Context, by Actor, r *row) error {
	brought, err := exists(ctx, t, `SELECT 1 FROM receiver WHERE case_id = ? AND person = ?`, r.ID, by.person())
	if err != nil || !brought {
		return err
	}
	return problem.New("case/own", "%s brought this bundle in and cannot decide about it", by.Name()).
		With("submitter:  " + strings.ToValidUTF8(r.Submitter, "?")).Hint("somebody else has to decide")
}

// fitsChoice holds what somebody saw, and says why, against the case.
func (r *row) fitsChoice(choice Choice, review, reason string) error {
	switch {
	case review != r.reviewDigest:
		return problem.New("case/review-changed", "what case %d is about has changed since it was looked at", r.ID).
			With("seen:  "+review, "now:   "+r.reviewDigest).Hint("look at it again and decide then")
	case reason == "" && (choice == Reject || r.Verdict == policy.Review):
		return problem.New("case/reason", "a reason is needed to reject, and to approve what has findings for review").Hint("say why, in a sentence")
	}
	return nil
}

// isOpen tells whether there is anything to decide: an approval where one is
// lacking, a rejection as long as nothing of the case can be pulled.
func (t *tx) isOpen(ctx context.Context, r *row, choice Choice) error {
	live, err := isLive(ctx, t, r.ID)
	if err != nil {
		return err
	}
	waits := problem.New("case/not-waiting", "case %d waits for no such decision: it is %s", r.ID, r.State).Hint("packhof-gate show %d", r.ID)
	switch choice {
	case Reject:
		if live {
			return isPulled(r.ID)
		}
		if r.State.Final() || r.State == Loading {
			return waits
		}
		return nil
	case Approve:
		count, err := approvalsOf(ctx, t, r)
		if err != nil {
			return err
		}
		waiting := r.State == Awaiting || (r.State == Approved || r.State == PartlyLoaded) && count < r.Needed
		if !waiting || r.Verdict.Blocks() {
			return waits
		}
		return nil
	}
	return problem.New("case/choice", "%.20q is neither approve nor reject", choice)
}

func isPulled(id CaseID) error {
	return problem.New("case/live", "something of case %d can be pulled already", id).Hint("bring a bundle that replaces it")
}

// isLive tells whether names of a case are published somewhere.
func isLive(ctx context.Context, q queryer, id CaseID) (bool, error) {
	return exists(ctx, q, `SELECT 1 FROM load WHERE case_id = ? AND state <> 'put' LIMIT 1`, id)
}

func (t *tx) approve(ctx context.Context, by Actor, r *row, reason string) error {
	did, err := exists(ctx, t, `SELECT 1 FROM decision WHERE case_id = ? AND person = ? AND review = ?`, r.ID, by.person(), r.reviewDigest)
	if err != nil {
		return err
	}
	if did {
		return problem.New("case/decided-already", "%s has approved case %d already", by.Name(), r.ID).Hint("somebody else has to decide as well")
	}
	if err := t.recordDecision(ctx, by, r, Approve, reason); err != nil {
		return err
	}
	if err := t.settle(ctx, r); err != nil {
		return err
	}
	return t.logDecision(ctx, by, r, "case.approved", reason)
}

// settle moves a case that waits to approved as soon as enough people have
// approved its review.
func (t *tx) settle(ctx context.Context, r *row) error {
	if r.State != Awaiting {
		return nil
	}
	if r.Verdict.Blocks() {
		return rowDamaged(r.ID, "it is %s, with the verdict %q", r.State, r.Verdict)
	}
	count, err := approvalsOf(ctx, t, r)
	if err != nil || count < t.gate.wanted(r) {
		return err
	}
	return t.move(ctx, r, Approved, nil)
}

func (t *tx) reject(ctx context.Context, by Actor, r *row, reason string) error {
	if err := t.recordDecision(ctx, by, r, Reject, reason); err != nil {
		return err
	}
	why := problem.New("case/rejected", "%s rejected the bundle", by.Name()).With("reason:  " + reason)
	if err := t.move(ctx, r, Rejected, asProblem(why)); err != nil {
		return err
	}
	return t.logDecision(ctx, by, r, "case.rejected", reason)
}

func (t *tx) recordDecision(ctx context.Context, by Actor, r *row, choice Choice, reason string) error {
	_, err := t.ExecContext(ctx, `INSERT INTO decision (case_id, person, actor, choice, reason, review, at) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET choice = excluded.choice, reason = excluded.reason, at = excluded.at`,
		r.ID, by.person(), by.Name(), choice, reason, r.reviewDigest, seconds(t.now))
	return err
}

func (t *tx) logDecision(ctx context.Context, by Actor, r *row, kind, reason string) error {
	data := map[string]string{"review": r.reviewDigest}
	if r.decision != nil {
		data["policy"] = r.decision.PolicyDigest
	}
	return t.log(ctx, leaf{Actor: by.Name(), Type: kind, Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Detail: reason, Data: data})
}

// approvalsOf counts the people whose approval holds: of this very review, by
// an account that still has a role that may decide.
func approvalsOf(ctx context.Context, q queryer, r *row) (int, error) {
	if r.reviewDigest == "" {
		return 0, nil
	}
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

// codeWaiting marks a case that too few people have approved.
const codeWaiting = "case/waiting"

// ready tells whether a case may be loaded, and if not, why: it is never true
// because nothing was found against it. The audit log has to vouch for the rows
// that say so, and for the accounts of those who approved; approvals are what
// has to have approved at least.
func (g *Gate) ready(ctx context.Context, q queryer, r *row, approvals int) (ready bool, why error) {
	if err := g.vouchedFor(ctx, q, r); err != nil {
		return false, err
	}
	switch r.State {
	case Approved, Awaiting, Loading, PartlyLoaded, Loaded:
	case Received, Verified, Inspected:
		return false, problem.New("case/unfinished", "case %d is not judged yet: it is %s", r.ID, r.State).Hint("receive its bundle again, so that it goes on")
	default:
		return false, r.refusal()
	}
	switch r.Verdict {
	case policy.Allow, policy.Review:
	default:
		return false, r.refusal()
	}
	if err := r.fitsReview(); err != nil {
		return false, err
	}
	count, err := approvalsOf(ctx, q, r)
	if err != nil {
		return false, err
	}
	if count < approvals {
		return false, problem.New(codeWaiting, "case %d waits for approval", r.ID).
			With(fmt.Sprintf("approvals:  %d of %d", count, approvals)).Hint("packhof-gate approve %d --as NAME", r.ID)
	}
	return true, nil
}

// vouchedFor asks the audit log about a case and about the accounts of those
// who approved it.
func (g *Gate) vouchedFor(ctx context.Context, q queryer, r *row) error {
	if err := g.sealed(ctx, q, caseSubject(r.ID)); err != nil {
		return err
	}
	people, err := rowsOf(ctx, q, func(s scanner) (string, error) {
		var person string
		return person, s.Scan(&person)
	}, `SELECT DISTINCT person FROM decision WHERE case_id = ? AND review = ? AND choice = 'approve'`, r.ID, r.reviewDigest)
	if err != nil {
		return err
	}
	for _, person := range people {
		if err := g.sealed(ctx, q, accountSubject(person)); err != nil {
			return err
		}
	}
	return nil
}

// wanted is how many people have to have approved a case at this moment: as
// many as its review said, and no less than the configuration says of its
// verdict now.
func (g *Gate) wanted(r *row) int { return max(r.Needed, g.needed(r.Verdict)) }

// fitsReview holds a row against the document that people decided on.
func (r *row) fitsReview() error {
	var said struct {
		Case     CaseID         `json:"case"`
		Manifest bundle.Digest  `json:"manifest"`
		Verdict  policy.Verdict `json:"verdict"`
		Needed   int            `json:"needed"`
	}
	if err := json.Unmarshal(r.review, &said); err != nil {
		return rowDamaged(r.ID, "its review cannot be read: %w", err)
	}
	if said.Case != r.ID || said.Manifest != r.Manifest || said.Verdict != r.Verdict || said.Needed != r.Needed {
		return rowDamaged(r.ID, "it is not what its review is about")
	}
	return nil
}
