package gate_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

// overtaken is a gate with a case that waits, and the later serial 2 of its
// channel, which is let through by let.
func overtaken(t *testing.T, let func(l *lab, id gate.CaseID)) (l *lab, waits, later gate.CaseID) {
	l, f, waits, _ := waiting(t, 1)
	later = l.mustReceive(l.next(f, 2)).ID
	let(l, later)
	return l, waits, later
}

func (l *lab) letThrough(id gate.CaseID) {
	l.t.Helper()
	l.approve(id)
	l.mustRelease(id)
}

// TestAnApprovalBindsWhatHoldsNow: another serial of the channel was loaded
// while a case waited. Its review says so, and what is approved then is
// released.
func TestAnApprovalBindsWhatHoldsNow(t *testing.T) {
	l, waits, later := overtaken(t, (*lab).letThrough)
	review := mustReview(l, waits).Review
	if got := review.Later; got == nil || *got != (gate.ReviewLater{Case: later, Epoch: 1, Serial: 2}) {
		t.Errorf("what is loaded already: %+v", got)
	}
	if plan := review.Artifacts[0].Plan[0]; !plan.Kept || review.Artifacts[0].Change != "unchanged" {
		t.Errorf("the review is the one of before: %+v, %s", plan, review.Artifacts[0].Change)
	}
	l.letThrough(waits)
	if got := mustReview(l, later).Review.Later; got != nil {
		t.Errorf("the latest one is overtaken by %+v", got)
	}
}

// TestWhatWasReadBeforeIsNotApproved: somebody read the review, then another
// serial was loaded. The decision finds that, without anybody looking again.
func TestWhatWasReadBeforeIsNotApproved(t *testing.T) {
	var read string
	l, waits, _ := overtaken(t, func(l *lab, id gate.CaseID) {
		read = mustReview(l, 1).Digest
		l.letThrough(id)
	})
	anna := l.anna()
	if _, err := l.gate.Decide(t.Context(), anna, waits, gate.Approve, read, "known"); problem.CodeOf(err) != "case/review-changed" {
		t.Fatalf("approved what is no longer so: %v", err)
	}
	if c, err := l.gate.Case(t.Context(), anna, waits); err != nil || c.State != gate.Awaiting || c.Approvals != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	l.letThrough(waits)
}

// TestADryRunSaysWhatTheReleaseSays of an approval that no longer holds, and
// changes nothing; looking at the case then asks for a decision again.
func TestADryRunSaysWhatTheReleaseSays(t *testing.T) {
	l, waits, _ := overtaken(t, func(l *lab, id gate.CaseID) {
		l.approve(1)
		if _, err := l.gate.Plan(l.t.Context(), operator, 1); err != nil {
			l.t.Fatalf("while it holds: %v", err)
		}
		l.letThrough(id)
	})
	if _, err := l.gate.Plan(t.Context(), operator, waits); problem.CodeOf(err) != "case/changed" {
		t.Fatalf("the plan: %v", err)
	}
	if c, err := l.gate.Case(t.Context(), operator, waits); err != nil || c.State != gate.Approved {
		t.Fatalf("planning changed the case: %+v, %v", c, err)
	}
	page := mustReview(l, waits)
	if len(page.Decisions) != 1 || page.Decisions[0].Counts || page.Decisions[0].Bound == page.Digest {
		t.Errorf("the approval of before: %+v", page.Decisions)
	}
	if _, err := l.gate.Plan(t.Context(), operator, waits); err != nil {
		t.Errorf("planned before anybody approved: %v", err)
	}
	l.letThrough(waits)
	if _, err := l.gate.Plan(t.Context(), operator, waits); err != nil {
		t.Errorf("of what is loaded: %v", err)
	}
}

// TestADryRunOfWhatCannotBeReleased is refused as the release is.
func TestADryRunOfWhatCannotBeReleased(t *testing.T) {
	for code, against := range map[string]func(*lab, *testkit.Forged, gate.CaseID, string){
		"bundle/revoked": func(l *lab, f *testkit.Forged, id gate.CaseID, _ string) {
			l.approve(id)
			if _, err := l.gate.UpdateTrust(l.t.Context(), gate.Console("root"), revoke(l.t, f, "plant-7")); err != nil {
				l.t.Fatal(err)
			}
		},
		"case/rejected": func(l *lab, _ *testkit.Forged, id gate.CaseID, digest string) {
			if _, err := l.gate.Decide(l.t.Context(), l.anna(), id, gate.Reject, digest, "not ordered"); err != nil {
				l.t.Fatal(err)
			}
		},
		"destination/none": func(l *lab, _ *testkit.Forged, id gate.CaseID, _ string) {
			l.approve(id)
			l.accepts = []bundle.Kind{bundle.Image}
			l.restart()
		},
	} {
		t.Run(code, func(t *testing.T) {
			l, f, id, digest := waiting(t, 1)
			against(l, f, id, digest)
			if _, err := l.gate.Plan(t.Context(), operator, id); problem.CodeOf(err) != code {
				t.Errorf("the plan: %v", err)
			}
			if _, err := l.gate.Release(t.Context(), operator, id, nil); problem.CodeOf(err) != code {
				t.Errorf("the release: %v", err)
			}
		})
	}
}

// counting is a judge that counts.
type counting struct {
	gate.Judge
	asked *atomic.Int64
}

func (c counting) Evaluate(ctx context.Context, in *policy.Input) (*policy.Decision, error) {
	c.asked.Add(1)
	return c.Judge.Evaluate(ctx, in)
}

// TestLookingCostsNoJudging while nothing has changed, and once when something
// has.
func TestLookingCostsNoJudging(t *testing.T) {
	var asked atomic.Int64
	l, waits, _ := overtaken(t, func(l *lab, id gate.CaseID) {
		l.judge = counting{library{shared(l.t)}, &asked}
		l.restart()
		for range 3 {
			mustReview(l, 1)
		}
		if n := asked.Load(); n != 0 {
			l.t.Errorf("the judge was asked %d times, though nothing has changed", n)
		}
		l.letThrough(id)
		asked.Store(0)
	})
	for range 3 {
		mustReview(l, waits)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the judge was asked %d times for one change", n)
	}
}

// TestARevokedCaseCanBeLookedAt as it was judged: its release says what stands
// against it.
func TestARevokedCaseCanBeLookedAt(t *testing.T) {
	l, f, id, digest := waiting(t, 1)
	if _, err := l.gate.UpdateTrust(t.Context(), gate.Console("root"), revoke(t, f, "plant-7")); err != nil {
		t.Fatal(err)
	}
	if got := mustReview(l, id).Digest; got != digest {
		t.Errorf("review %s, was %s", got, digest)
	}
	if _, err := l.gate.Decide(t.Context(), l.anna(), id, gate.Approve, digest, "known"); problem.CodeOf(err) != "bundle/revoked" {
		t.Errorf("approved: %v", err)
	}
}
