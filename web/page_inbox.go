package web

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/policy"
)

// inboxView is a list of cases, one tab of it.
type inboxView struct {
	Tab  string
	Tabs []tabView
	Rows []rowView
}

type tabView struct {
	Name  string
	Count int
	Here  bool
}

type rowView struct {
	gate.Summary
	Shape string // of the verdict's chip
	Mine  bool   // the reader is who can go on with it
}

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
	case gate.Blocked, gate.NotGenuine, gate.Damaged, gate.CheckFailed, gate.Expired:
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
	return s.show(c, http.StatusOK, "inbox", page{Nav: "inbox", Body: inboxOf(cases, c.QueryParam("tab"), who)})
}

func inboxOf(cases []gate.Summary, tab string, who gate.Actor) inboxView {
	view := inboxView{Tab: tabWaiting}
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
			view.Rows = append(view.Rows, rowView{found, shapeOf(found.State, found.Verdict), isMine(found, who)})
		}
	}
	for _, name := range tabs() {
		view.Tabs = append(view.Tabs, tabView{name, counts[name], name == view.Tab})
	}
	return view
}

// isMine tells whether a case waits for what the reader may do.
func isMine(c gate.Summary, who gate.Actor) bool {
	switch c.State {
	case gate.Awaiting:
		return who.May(gate.MayDecide) && !isSubmitter(c, who)
	case gate.Approved, gate.PartlyLoaded:
		return who.May(gate.MayRelease)
	}
	return false
}

// isSubmitter tells whether the reader brought the case in, here or as the
// user of the same name at the console. The gate refuses their decision; this
// is to say so before they write one.
func isSubmitter(c gate.Summary, who gate.Actor) bool {
	return strings.TrimPrefix(c.Submitter, "os:") == who.Name()
}

// shapeOf gives the shape of a chip, so that colour says nothing alone.
func shapeOf(s gate.State, v policy.Verdict) string {
	switch {
	case s == gate.NotGenuine, s == gate.Damaged, s == gate.Blocked, s == gate.Rejected, s == gate.Expired, v == policy.Deny:
		return "stop"
	case s == gate.CheckFailed, s == gate.PartlyLoaded, v == policy.Failed:
		return "alert"
	case v == policy.Review && s != gate.Approved && s != gate.Loading && s != gate.Loaded:
		return "decide"
	case v == "":
		return "open"
	}
	return "pass"
}
