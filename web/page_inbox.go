package web

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/policy"
)

// inboxView is a list of cases, one tab of it.
type inboxView struct {
	Tab   string
	Tabs  []tabView
	Rows  []rowView
	Shown window // which of the tab's cases Rows are
	Full  bool   // there may be more cases than the list holds
	Most  int
}

// mostCases is how many cases the gate lists: all open ones, and the newest others.
const mostCases = 1000

type tabView struct {
	Name  string
	Count int
	Here  bool
}

type rowView struct {
	gate.Summary
	Shape     string // of the verdict's chip
	Next      string // what is missing: a state's name, or one of the needs below
	Mine      bool   // the reader is who can go on with it
	Approvals bool   // how many there are is worth a line
}

// needReplacing is what a case lacks of which something can be pulled, while
// the policy has come to refuse it.
const needReplacing = "replaced"

// needVolumes is what a case lacks of which not all volumes have come.
const needVolumes = "incomplete"

const (
	tabWaiting = "waiting"
	tabBlocked = "blocked"
	tabDone    = "done"
)

func tabs() []string { return []string{tabWaiting, tabBlocked, tabDone} }

// tabOf says under which tab a case stands.
func tabOf(s gate.State) string {
	switch s {
	case gate.Loaded, gate.Rejected:
		return tabDone
	case gate.Blocked, gate.NotGenuine, gate.Damaged, gate.CheckFailed, gate.Expired, gate.Unreadable:
		return tabBlocked
	}
	return tabWaiting
}

func (s *server) pageInbox(c echo.Context) error {
	who := actorOf(c)
	cases, err := s.gate.Cases(c.Request().Context(), who)
	if err != nil {
		return err
	}
	return s.show(c, http.StatusOK, "inbox", page{Nav: "inbox", Body: inboxOf(cases, c.QueryParam("tab"), who, partsOf(c, "/cases", nil))})
}

func inboxOf(cases []gate.Summary, tab string, who gate.Actor, at parts) inboxView {
	view := inboxView{Tab: tabWaiting, Full: len(cases) >= mostCases, Most: mostCases}
	counts := map[string]int{}
	for _, name := range tabs() {
		if name == tab {
			view.Tab = tab
		}
	}
	for _, found := range cases {
		at := tabOf(found.State)
		counts[at]++
		if at == view.Tab {
			view.Rows = append(view.Rows, rowOf(found, who))
		}
	}
	at.query = url.Values{"tab": {view.Tab}}
	view.Shown = at.Of("cases", len(view.Rows))
	view.Rows = view.Rows[view.Shown.From:view.Shown.To]
	for _, name := range tabs() {
		view.Tabs = append(view.Tabs, tabView{name, counts[name], name == view.Tab})
	}
	return view
}

// rowOf tells of a case what it lacks, and whether the reader can give it. The
// list counts no approvals of approved cases, so the page of the case knows
// more.
func rowOf(c gate.Summary, who gate.Actor) rowView {
	row := rowView{Summary: c, Shape: shapeOfCase(c), Next: string(c.State)}
	lacking := lacksApproval(c) && c.State != gate.Approved
	switch {
	case c.Waiting:
		row.Next = needVolumes
	case lacking:
		row.Next, row.Approvals = string(gate.Awaiting), true
		row.Mine = who.May(gate.MayDecide) && !isSubmitter(c, who)
	case c.State == gate.PartlyLoaded && c.Verdict.Blocks():
		row.Next = needReplacing
	case c.State == gate.Approved, isReleasable(c):
		row.Mine = who.May(gate.MayRelease)
	}
	return row
}

// isSubmitter tells whether the reader brought the case in, here or as the
// user of the same name at the console. The gate refuses their decision; this
// is to say so before they write one.
func isSubmitter(c gate.Summary, who gate.Actor) bool {
	return strings.TrimPrefix(c.Submitter, "os:") == who.Name()
}

// shapeOfCase is that of the state; what a later delivery has overtaken is
// never just good.
func shapeOfCase(c gate.Summary) string {
	shape := shapeOf(c.State, c.Verdict)
	if c.Later != nil && shape == "pass" {
		return "alert"
	}
	return shape
}

// shapeOf gives the shape of a chip, so that colour says nothing alone.
func shapeOf(s gate.State, v policy.Verdict) string {
	switch {
	case s == gate.NotGenuine, s == gate.Damaged, s == gate.Blocked, s == gate.Rejected, s == gate.Expired, v == policy.Deny:
		return "stop"
	case s == gate.CheckFailed, s == gate.PartlyLoaded, s == gate.Unreadable, v == policy.Failed:
		return "alert"
	case v == policy.Review && s != gate.Approved && s != gate.Loading && s != gate.Loaded:
		return "decide"
	case v == "":
		return "open"
	}
	return "pass"
}
