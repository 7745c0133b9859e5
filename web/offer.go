package web

import (
	"slices"

	"github.com/packhof/packhof/gate"
)

// offers is what the gate would take from the reader of a page at this moment.
// The gate has the last word on all of it.
type offers struct {
	Approve bool
	Reject  bool
	Closed  string // why the reader cannot give the approval that is lacking: a key of texts
	Live    bool   // names of the case are published, so it cannot be rejected any more
	Release bool   // the reader can have it loaded from here
	Console bool   // it can be loaded, from the console or by somebody else
}

// Decide tells whether there is a form to decide with.
func (o offers) Decide() bool { return o.Approve || o.Reject }

// offersTo tells what somebody can do about a case, which has these decisions.
func offersTo(who gate.Actor, c *gate.Case, decisions []gate.Decision, fromHere bool) offers {
	o := offers{Live: isLive(c)}
	if isReleasable(c.Summary) {
		o.Release = fromHere && who.May(gate.MayRelease)
		o.Console = !o.Release
	}
	lacking := lacksApproval(c.Summary)
	closed := ""
	switch {
	case !who.May(gate.MayDecide):
		closed = "decision.closed.role"
	case isSubmitter(c.Summary, who):
		closed = "decision.closed.submitter"
	default:
		o.Reject = (!c.State.Final() || c.State == gate.Unreadable) && c.State != gate.Loading && !o.Live
		if hasApproved(decisions, who) {
			closed = "decision.closed.decided"
		}
	}
	o.Approve = lacking && closed == ""
	if lacking {
		o.Closed = closed
	}
	return o
}

func hasApproved(decisions []gate.Decision, who gate.Actor) bool {
	return slices.ContainsFunc(decisions, func(d gate.Decision) bool {
		return d.Counts && d.Choice == gate.Approve && d.Actor == who.Name()
	})
}

// lacksApproval tells whether another approval of the case would be taken. One
// that was approved lacks it again when an approver has lost the role, or when
// something changed while it was loaded.
func lacksApproval(s gate.Summary) bool {
	switch s.State {
	case gate.Awaiting:
		return !s.Verdict.Blocks()
	case gate.Approved, gate.PartlyLoaded:
		return !s.Verdict.Blocks() && s.Approvals < s.Needed
	}
	return false
}

// isReleasable tells whether a release of the case would begin, or go on.
func isReleasable(s gate.Summary) bool {
	switch s.State {
	case gate.Awaiting, gate.Approved, gate.PartlyLoaded:
		return !s.Verdict.Blocks() && s.Approvals >= s.Needed
	}
	return false
}

// isLive tells whether something of the case can be pulled.
func isLive(c *gate.Case) bool {
	return slices.ContainsFunc(c.Loads, func(l gate.Load) bool { return l.State != gate.LoadPut })
}

// standing is how a case is shown in one look.
type standing struct {
	Shape    string
	Headline string // a key of texts; "" for the verdict, or the state
	Lacking  bool   // it waits for an approval
}

func standingOf(c *gate.Case) standing {
	at := standing{Shape: shapeOfCase(c.Summary), Lacking: lacksApproval(c.Summary)}
	switch {
	case c.Waiting:
		at.Headline = "headline.incomplete"
	case at.Lacking && c.State != gate.Awaiting:
		at.Shape, at.Headline = "decide", "headline.lacking"
	case c.State == gate.Approved && c.Problem != nil:
		at.Shape, at.Headline = "alert", "headline.failed"
	}
	return at
}
