package web

import (
	"bytes"
	"slices"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

// actor is the holder of an account, who proves it once: passwords are slow on
// purpose.
func (l *lab) actor(name string) gate.Actor {
	l.t.Helper()
	l.account(name)
	if who, ok := l.actors[name]; ok {
		return who
	}
	who, err := l.gate.Authenticate(l.t.Context(), "test", name, []byte(passwordOf(name)))
	l.must(err)
	l.actors[name] = who
	return who
}

// look gives a case with its decisions, and the digest of its review.
func (l *lab) look(id gate.CaseID) (c *gate.Case, decisions []gate.Decision, digest string) {
	l.t.Helper()
	c, err := l.gate.Case(l.t.Context(), gate.Console("root"), id)
	l.must(err)
	review, err := l.gate.Review(l.t.Context(), gate.Console("root"), id)
	if codeOf(err) == "case/no-review" {
		return c, nil, ""
	}
	l.must(err)
	return c, review.Decisions, review.Digest
}

// approve is the decision of an account on what it sees now.
func (l *lab) approve(account string, id gate.CaseID) {
	l.t.Helper()
	_, _, digest := l.look(id)
	_, err := l.gate.Decide(l.t.Context(), l.actor(account), id, gate.Approve, digest, "agreed")
	l.must(err)
}

// brokenAt is a case whose release failed at a step of the destination.
func (l *lab) brokenAt(step string) {
	l.t.Helper()
	c := l.waiting()
	l.approve(officer, c.ID)
	l.shelf.breakAt(step)
	if _, err := l.gate.Release(l.t.Context(), l.actor(officer), c.ID, nil); codeOf(err) != "destination/unreachable" {
		l.t.Fatalf("the release: %v", err)
	}
	l.shelf.breakAt(breakNone)
}

// damaged is a case whose medium does not hold what was signed.
func (l *lab) damaged() *gate.Case {
	l.t.Helper()
	l.trust()
	f := l.forge(nil)
	at := bytes.Index(f.Volume, testkit.Bytes("data/values.csv", 700))
	if at < 0 {
		l.t.Fatal("the content is not in the volume")
	}
	f.Volume[at] ^= 1
	return l.receive(f)
}

// standings are cases in every state in which something can be decided, or
// could be thought to be. Each is case 1.
func standings() map[string]struct {
	make  func(*lab)
	state gate.State
	want  offers // for the officer
} {
	type row = struct {
		make  func(*lab)
		state gate.State
		want  offers
	}
	return map[string]row{
		"waits":                              {func(l *lab) { l.waiting() }, gate.Awaiting, offers{Approve: true, Reject: true}},
		"approved":                           {func(l *lab) { l.waiting(); l.approve(officer, 1) }, gate.Approved, offers{Reject: true, Release: true}},
		"half of two":                        {halfApproved, gate.Awaiting, offers{Reject: true, Closed: "decision.closed.decided"}},
		"failed before anything was written": {func(l *lab) { l.brokenAt(breakPlan) }, gate.Approved, offers{Reject: true, Release: true}},
		"no names yet":                       {func(l *lab) { l.brokenAt(breakName) }, gate.PartlyLoaded, offers{Reject: true, Release: true}},
		"read back wrong":                    {func(l *lab) { l.brokenAt(breakVerify) }, gate.PartlyLoaded, offers{Live: true, Release: true}},
		"read back wrong, and changed since": {changedWhileLive, gate.PartlyLoaded, offers{Approve: true, Live: true}},
		"damaged":                            {func(l *lab) { l.damaged() }, gate.Damaged, offers{Reject: true}},
		"no verdict": {func(l *lab) {
			l.trust()
			l.judge.broken.Store(true)
			l.receive(l.forge(nil))
		}, gate.CheckFailed, offers{Reject: true}},
		"loaded": {func(l *lab) {
			l.waiting()
			l.approve(officer, 1)
			_, err := l.gate.Release(l.t.Context(), l.actor(officer), 1, nil)
			l.must(err)
		}, gate.Loaded, offers{Live: true}},
		"not genuine": {func(l *lab) { l.trust(); l.receive(l.stranger()) }, gate.NotGenuine, offers{}},
		"brought in":  {func(l *lab) { l.bringIn(officer) }, gate.Awaiting, offers{Closed: "decision.closed.submitter"}},
	}
}

func halfApproved(l *lab) {
	l.reopen(2)
	l.waiting()
	l.approve(officer, 1)
}

// changedWhileLive: more approvals are needed than when it was loaded.
func changedWhileLive(l *lab) {
	l.brokenAt(breakVerify)
	l.reopen(2)
	if _, err := l.gate.Release(l.t.Context(), l.actor(officer), 1, nil); codeOf(err) != "case/changed" {
		l.t.Fatal(err)
	}
}

// reopen starts the gate anew, with another number of approvals.
func (l *lab) reopen(needs int) {
	l.t.Helper()
	l.must(l.gate.Close())
	l.needs = needs
	l.open()
}

func (l *lab) bringIn(user string) {
	l.t.Helper()
	l.trust()
	_, err := l.gate.Receive(l.t.Context(), gate.Console(user), l.write(l.forge(nil)), nil)
	l.must(err)
}

// TestOffersAreWhatTheGateTakes holds the forms of a page to the gate: what is
// offered is taken, what is not is refused.
func TestOffersAreWhatTheGateTakes(t *testing.T) {
	for name, c := range standings() {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			c.make(l)
			who := l.actor(officer)
			found, decisions, digest := l.look(1)
			if found.State != c.state {
				t.Fatalf("it is %s: %+v", found.State, found.Problem)
			}
			got := offersTo(who, found, decisions, true)
			if got != c.want {
				t.Fatalf("offers %+v, want %+v", got, c.want)
			}
			decide := func(choice gate.Choice) error {
				_, err := l.gate.Decide(t.Context(), who, 1, choice, digest, "a reason")
				return err
			}
			if err := decide(gate.Approve); !got.Approve && err == nil {
				t.Error("the gate takes an approval that is not offered")
			} else if got.Approve && !got.Reject && err != nil {
				t.Errorf("the approval that is offered: %v", err)
			}
			if !got.Release && found.State != gate.Loaded && !got.Approve {
				if _, err := l.gate.Release(t.Context(), who, 1, nil); err == nil {
					t.Error("the gate begins a release that is not offered")
				}
			}
			if err := decide(gate.Reject); (err == nil) != got.Reject {
				t.Errorf("a rejection, offered %v: %v", got.Reject, err)
			}
		})
	}
}

// TestOffersDependOnTheRole shows one case to everybody.
func TestOffersDependOnTheRole(t *testing.T) {
	l := newLab(t)
	l.waiting()
	for account, want := range map[string]offers{
		officer: {Approve: true, Reject: true}, reviewer: {Approve: true, Reject: true},
		operator: {Closed: "decision.closed.role"}, auditor: {Closed: "decision.closed.role"},
	} {
		found, decisions, _ := l.look(1)
		if got := offersTo(l.actor(account), found, decisions, true); got != want {
			t.Errorf("%s: %+v, want %+v", account, got, want)
		}
	}
	l.approve(reviewer, 1)
	for account, want := range map[string]offers{
		officer: {Reject: true, Release: true}, reviewer: {Reject: true, Console: true}, operator: {Release: true}, auditor: {Console: true},
	} {
		found, decisions, _ := l.look(1)
		if got := offersTo(l.actor(account), found, decisions, true); got != want {
			t.Errorf("approved, %s: %+v, want %+v", account, got, want)
		}
	}
	found, decisions, _ := l.look(1)
	if got := offersTo(l.actor(operator), found, decisions, false); got != (offers{Console: true}) {
		t.Errorf("nothing runs in the background: %+v", got)
	}
}

func TestWhatTheInboxSaysIsMissing(t *testing.T) {
	l := newLab(t)
	anna, otto := l.actor(officer), l.actor(operator)
	for name, c := range map[string]struct {
		summary gate.Summary
		who     gate.Actor
		next    string
		mine    bool
	}{
		"decision":            {gate.Summary{State: gate.Awaiting, Verdict: policy.Review, Needed: 1}, anna, string(gate.Awaiting), true},
		"somebody's decision": {gate.Summary{State: gate.Awaiting, Verdict: policy.Review, Needed: 1}, otto, string(gate.Awaiting), false},
		"own":                 {gate.Summary{State: gate.Awaiting, Verdict: policy.Review, Needed: 1, Submitter: "os:anna"}, anna, string(gate.Awaiting), false},
		"release":             {gate.Summary{State: gate.Approved, Verdict: policy.Allow, Needed: 1}, anna, string(gate.Approved), true},
		"going on":            {gate.Summary{State: gate.PartlyLoaded, Verdict: policy.Allow, Needed: 1, Approvals: 1}, otto, string(gate.PartlyLoaded), true},
		"another approval":    {gate.Summary{State: gate.PartlyLoaded, Verdict: policy.Allow, Needed: 2, Approvals: 1}, anna, string(gate.Awaiting), true},
		"another, not theirs": {gate.Summary{State: gate.PartlyLoaded, Verdict: policy.Allow, Needed: 2, Approvals: 1}, otto, string(gate.Awaiting), false},
		"denied, and live":    {gate.Summary{State: gate.PartlyLoaded, Verdict: policy.Deny, Needed: 1}, otto, needReplacing, false},
		"under way":           {gate.Summary{State: gate.Loading, Verdict: policy.Allow}, otto, string(gate.Loading), false},
		"over":                {gate.Summary{State: gate.Loaded, Verdict: policy.Allow}, otto, string(gate.Loaded), false},
	} {
		if row := rowOf(c.summary, c.who); row.Next != c.next || row.Mine != c.mine {
			t.Errorf("%s: %q, %v; want %q, %v", name, row.Next, row.Mine, c.next, c.mine)
		}
	}
	if view := inboxOf(make([]gate.Summary, mostCases), tabWaiting, anna, parts{}); !view.Full {
		t.Error("nobody is told that the list ends")
	}
	if view := inboxOf(make([]gate.Summary, mostCases-1), tabWaiting, anna, parts{}); view.Full {
		t.Error("a list that is whole is said to end")
	}
}

func TestDestinationsCountWhatBecomesOfNames(t *testing.T) {
	digest := bundle.Digest{}
	artifact := func(change string, plan ...gate.ReviewPlan) gate.ReviewArtifact {
		return gate.ReviewArtifact{Name: "a", Change: change, Plan: plan}
	}
	artifacts := []gate.ReviewArtifact{
		artifact("unchanged", gate.ReviewPlan{Destination: "depot", Location: "here", Same: true}),
		artifact("unchanged", gate.ReviewPlan{Destination: "depot", Kept: true}),
		artifact("new", gate.ReviewPlan{Destination: "depot"}, gate.ReviewPlan{Destination: "harbor", Kept: true}),
		artifact("updated", gate.ReviewPlan{Destination: "depot", Replaces: &digest}),
		artifact("new", gate.ReviewPlan{Destination: "depot", Replaces: &digest, Owner: "plant-8", Name: "a:1"}),
		artifact("unchanged"),
	}
	list := destinationsOf(artifacts)
	want := []destinationView{{Name: "depot", Location: "here", Created: 1, Replaced: 1, Unchanged: 1, Kept: 1, Taken: 1}, {Name: "harbor", Kept: 1}}
	if !slices.Equal(list, want) {
		t.Errorf("%+v, want %+v", list, want)
	}
	if to := writtenTo(list); !slices.Equal(to, []string{"depot"}) {
		t.Errorf("written to %q", to)
	}
	obstacles := obstaclesOf(artifacts)
	if len(obstacles) != 2 || obstacles[0].Owner != "plant-8" || obstacles[0].Name != "a:1" || obstacles[1].Destination != "" {
		t.Errorf("%+v", obstacles)
	}
	changes := []string{}
	for _, a := range changedIn(artifacts) {
		changes = append(changes, a.Change)
	}
	if want := []string{"new", "new", "updated", "unchanged", "unchanged"}; !slices.Equal(changes, want) {
		t.Errorf("%q, want %q", changes, want)
	}
}
