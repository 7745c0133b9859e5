package web

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

// access says who reaches a route. What somebody may do there, the gate says.
type access int

const (
	forActors  access = iota // whoever the gate knows
	forAnyone                // before a login too
	atConsole                // at the gate's own machine
	inBrowsers               // over the network, before a login too
)

// route is a line of the one table of what can be asked.
type route struct {
	method string
	path   string
	access access
	handle func(*server, echo.Context) error
}

const apiRoot = "/api/v1"

func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

func apiRoutes() []route {
	return []route{
		{"GET", apiRoot + "/cases", forActors, (*server).apiCases},
		{"POST", apiRoot + "/cases", atConsole, (*server).apiReceive},
		{"GET", apiRoot + "/cases/:id", forActors, inTurn((*server).apiCase)},
		{"GET", apiRoot + "/cases/:id/review", forActors, inTurn((*server).apiReview)},
		{"GET", apiRoot + "/cases/:id/findings", forActors, inTurn((*server).apiFindings)},
		{"GET", apiRoot + "/cases/:id/decisions", forActors, inTurn((*server).apiDecisions)},
		{"POST", apiRoot + "/cases/:id/decisions", forActors, inTurn((*server).apiDecide)},
		{"GET", apiRoot + "/cases/:id/plan", forActors, inTurnOfPlans((*server).apiPlan)},
		{"POST", apiRoot + "/cases/:id/release", forActors, (*server).apiRelease},
		{"GET", apiRoot + "/cases/:id/want", forActors, inTurn((*server).apiWant)},
		{"POST", apiRoot + "/receipts", forActors, inTurn((*server).apiReceipt)},
		{"POST", apiRoot + "/previews", atConsole, (*server).apiPreview},
		{"POST", apiRoot + "/verifications", atConsole, (*server).apiVerify},
		{"GET", apiRoot + "/trust", forActors, (*server).apiTrust},
		{"POST", apiRoot + "/trust", forActors, (*server).apiChangeTrust},
		{"GET", apiRoot + "/users", forActors, (*server).apiUsers},
		{"POST", apiRoot + "/users", forActors, (*server).apiAddUser},
		{"POST", apiRoot + "/users/:name/password", forActors, (*server).apiSetPassword},
		{"GET", apiRoot + "/doctor", forActors, (*server).apiDoctor},
		{"GET", apiRoot + "/version", forActors, (*server).apiVersion},
		{"GET", apiRoot + "/enrolment", forActors, (*server).apiEnrolment},
		{"GET", apiRoot + "/depot", forActors, (*server).apiDepot},
		{"POST", apiRoot + "/session", inBrowsers, (*server).apiLogin},
		{"DELETE", apiRoot + "/session", inBrowsers, (*server).apiLogout},
		{"GET", apiRoot + "/openapi.json", forAnyone, (*server).apiDescription},
	}
}

func pageRoutes() []route {
	return []route{
		{"GET", "/", forActors, (*server).pageStart},
		{"GET", "/login", forAnyone, (*server).pageLogin},
		{"POST", "/login", forAnyone, (*server).login},
		{"POST", "/logout", forAnyone, (*server).logout},
		{"POST", "/language", forAnyone, (*server).chooseLanguage},
		{"GET", "/cases", forActors, (*server).pageInbox},
		{"GET", "/cases/:id", forActors, inTurn((*server).pageCase)},
		{"GET", "/cases/:id/confirm", forActors, (*server).pageBackToCase},
		{"POST", "/cases/:id/confirm", forActors, inTurn((*server).pageConfirm)},
		{"POST", "/cases/:id/decisions", forActors, inTurn((*server).decide)},
		{"POST", "/cases/:id/release", forActors, inTurn((*server).release)},
		{"GET", "/depot", forActors, (*server).pageDepot},
		{"GET", "/system", forActors, (*server).pageSystem},
		{"GET", "/assets/:name", forAnyone, (*server).asset},
	}
}

// handler puts the routes behind what holds for every request.
func (s *server) handler(routes []route) http.Handler {
	e := echo.New()
	e.Logger.SetOutput(io.Discard) // whatever goes wrong is an answer
	e.HTTPErrorHandler = func(err error, c echo.Context) { s.answerError(c, err) }
	for _, r := range routes {
		e.Add(r.method, r.path, s.guarded(r))
	}
	return s.hardened(e)
}

const actorKey = "actor"

// guarded lets through to a route whom it is for.
func (s *server) guarded(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		switch {
		case r.access == forAnyone, r.access == inBrowsers && !s.console():
			return r.handle(s, c)
		case r.access == inBrowsers:
			return problem.New("request/browser-only", "sessions are for browsers").Hint("send account and password with the request that needs them")
		}
		who, err := s.actor(c.Request())
		if err != nil {
			return err
		}
		if r.access == atConsole && !s.console() {
			return problem.New("request/console-only", "files of the gate's machine are named at its console only").
				Hint("on the gate's machine:  packhof-gate receive FILE")
		}
		c.Set(actorKey, who)
		return r.handle(s, c)
	}
}

// actorOf is who asks, behind guarded; before it nobody, who may do nothing.
func actorOf(c echo.Context) gate.Actor {
	who, _ := c.Get(actorKey).(gate.Actor)
	return who
}

// caseID reads the number of a case from the path.
func caseID(c echo.Context) (gate.CaseID, error) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != c.Param("id") {
		return 0, problem.New("case/unknown", "there is no case %.20q", c.Param("id")).Hint("packhof-gate list")
	}
	return id, nil
}

// answerError is where every error of a route ends. What cannot be written, and
// of which nothing was sent, is an answer of its own with the status 500. Once
// an answer has begun nothing can be added to it: the connection is cut, so that
// nobody takes the part for the whole.
func (s *server) answerError(c echo.Context, err error) {
	if c.Response().Committed {
		panic(http.ErrAbortHandler)
	}
	var routing *echo.HTTPError
	if errors.As(err, &routing) {
		err = routingProblem(routing.Code)
	}
	if isBusy(err) {
		c.Response().Header().Set("Retry-After", retryAfter)
	}
	write := s.pageError
	if isAPI(c.Request()) || s.console() {
		write = s.writeProblem
	}
	failure := write(c, err)
	if failure != nil && !c.Response().Committed {
		failure = s.writeProblem(c, unwritable(errors.Join(err, failure)))
	}
	if failure != nil {
		panic(http.ErrAbortHandler)
	}
}

func routingProblem(status int) error {
	switch status {
	case http.StatusNotFound:
		return problem.New("request/not-found", "there is nothing at this address")
	case http.StatusMethodNotAllowed:
		return problem.New("request/method", "this cannot be done with this address")
	}
	return problem.New("request/invalid", "the request cannot be read")
}
