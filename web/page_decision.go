package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

func formatID(id gate.CaseID) string { return strconv.FormatInt(id, 10) }

// confirmView is what a person is asked once more, with their password.
type confirmView struct {
	*caseView
	Last     bool // nobody else has to approve after this
	ThenLoad bool // and who approves can have it loaded then
}

// pageConfirm shows what a decision means. It changes nothing: the decision
// travels in the page, and so does the digest of what was on the page before.
func (s *server) pageConfirm(c echo.Context) error {
	form, digest, _, err := readDecision(c)
	if err != nil {
		return err
	}
	return s.confirm(c, http.StatusOK, form, digest)
}

// confirm shows the page to confirm a decision, or that of the case again
// where the decision cannot be taken like this.
func (s *server) confirm(c echo.Context, status int, form decisionForm, digest string) error {
	view, err := s.caseView(c)
	if err != nil {
		return err
	}
	approves, rejects := form.Choice == gate.Approve, form.Choice == gate.Reject
	offered := approves && view.Offers.Approve || rejects && view.Offers.Reject
	switch {
	case !view.Offers.Decide():
		return c.Redirect(http.StatusSeeOther, casePath(view.Case.ID)+"#decision")
	case view.Digest != digest:
		return s.again(c, http.StatusConflict, form, "fault.changed", "decision")
	case !approves && !rejects:
		return s.again(c, http.StatusUnprocessableEntity, form, "fault.choice", "decision")
	case !offered:
		return c.Redirect(http.StatusSeeOther, casePath(view.Case.ID)+"#decision")
	case form.Reason == "" && (rejects || view.Review.NeedReason):
		return s.again(c, http.StatusUnprocessableEntity, form, "fault.reason", "reason")
	case len(form.Reason) > gate.MaxReason:
		return s.again(c, http.StatusUnprocessableEntity, form, "fault.reason-long", "reason")
	}
	view.Form = form
	last := view.Case.Approvals+1 >= view.Case.Needed
	then := last && s.options.Background != nil && actorOf(c).May(gate.MayRelease)
	return s.show(c, status, "confirm", page{Nav: "inbox", Path: casePath(view.Case.ID), Failed: form.Fault != "", Body: confirmView{view, last, then}})
}

func (s *server) again(c echo.Context, status int, form decisionForm, fault, field string) error {
	form.Fault, form.Field = fault, field
	return s.showCase(c, status, form)
}

func readDecision(c echo.Context) (form decisionForm, digest, password string, err error) {
	fields, err := readForm(c)
	if err != nil {
		return form, "", "", err
	}
	form.Choice, form.Reason = gate.Choice(fields.Get("choice")), strings.TrimSpace(fields.Get("reason"))
	return form, fields.Get("review"), fields.Get("password"), nil
}

// decide takes a decision. The session alone is not enough: who decides proves
// once more to be who logged in, and gets a new session for it.
func (s *server) decide(c echo.Context) error {
	id, err := caseID(c)
	if err != nil {
		return err
	}
	form, digest, password, err := readDecision(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	who, err := s.gate.Authenticate(ctx, s.address(c.Request()), actorOf(c).Name(), []byte(password))
	if code := codeOf(err); code == "login/failed" || code == "login/wait" {
		form.Fault, form.Field = "fault."+strings.ReplaceAll(code, "/", "-"), "password"
		return s.confirm(c, statusOf(code), form, digest)
	}
	if err != nil {
		return err
	}
	if _, err := s.gate.Decide(ctx, who, id, form.Choice, digest, form.Reason); codeOf(err) == "case/review-changed" {
		return s.again(c, http.StatusConflict, form, "fault.changed", "decision")
	} else if err != nil {
		return err
	}
	if err := s.startSession(c, who); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, casePath(id))
}

// release starts to load what was approved, and goes on when the browser has
// left. How it went is told by the case.
func (s *server) release(c echo.Context) error {
	id, err := caseID(c)
	if err != nil {
		return err
	}
	if _, err := readForm(c); err != nil {
		return err
	}
	who := actorOf(c)
	found, err := s.gate.Case(c.Request().Context(), who, id)
	if err != nil {
		return err
	}
	if !who.May(gate.MayRelease) {
		return problem.New("login/forbidden", "the account %s may not release", who.Name()).With("needed:  the permission to release")
	}
	if s.options.Background == nil {
		return problem.New("request/console-only", "releases are started at the gate's console").Hint("packhof-gate release %d", id)
	}
	if isReleasable(found.Summary) {
		s.options.Background(func(ctx context.Context) error {
			_, err := s.gate.Release(ctx, who, id, nil)
			return err
		})
	}
	return c.Redirect(http.StatusSeeOther, casePath(id))
}
