package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

func (s *server) apiCases(c echo.Context) error {
	cases, err := s.gate.Cases(c.Request().Context(), actorOf(c))
	if err != nil {
		return err
	}
	return s.answer(c, casesAnswer{cases})
}

func (s *server) apiCase(c echo.Context) error {
	id, err := caseID(c)
	if err != nil {
		return err
	}
	found, err := s.gate.Case(c.Request().Context(), actorOf(c), id)
	if err != nil {
		return err
	}
	return s.answer(c, found)
}

// apiReview gives the very bytes that an approval is bound to.
func (s *server) apiReview(c echo.Context) error {
	page, err := s.reviewOf(c)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(page.JSON)
	h := c.Response().Header()
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	h.Set("Packhof-Review", page.Digest)
	h.Set("ETag", `"`+page.Digest+`"`)
	return s.send(c, http.StatusOK, "application/json", page.JSON)
}

func (s *server) reviewOf(c echo.Context) (*gate.ReviewPage, error) {
	id, err := caseID(c)
	if err != nil {
		return nil, err
	}
	return s.gate.Review(c.Request().Context(), actorOf(c), id)
}

func (s *server) apiFindings(c echo.Context) error {
	page, err := s.reviewOf(c)
	if err != nil {
		return err
	}
	return s.answer(c, findingsAnswer{s.worded(c, page.Review.Findings)})
}

// worded gives findings in the language that the request asks for.
func (s *server) worded(c echo.Context, findings []policy.Finding) []policy.Worded {
	lang := c.QueryParam("lang")
	if lang == "" {
		lang = acceptedLanguage(c.Request().Header.Get("Accept-Language"))
	}
	return s.gate.Policy().InWords(findings, lang)
}

func (s *server) apiDecisions(c echo.Context) error {
	page, err := s.reviewOf(c)
	if err != nil {
		return err
	}
	return s.answer(c, decisionsAnswer{page.Decisions})
}

// apiDecide takes a decision only together with the password of who decides:
// a session that somebody left open must not be enough.
func (s *server) apiDecide(c echo.Context) error {
	id, err := caseID(c)
	if err != nil {
		return err
	}
	if err := s.withPassword(c, "a decision"); err != nil {
		return err
	}
	var body decisionBody
	if err := readJSON(c, &body); err != nil {
		return err
	}
	decided, err := s.gate.Decide(c.Request().Context(), actorOf(c), id, body.Choice, body.Review, body.Reason)
	if err != nil {
		return err
	}
	return s.answer(c, decided)
}

// withPassword refuses what a session that somebody left open must not do: over
// the network it takes account and password with the request itself.
func (s *server) withPassword(c echo.Context, what string) error {
	if _, _, ok := c.Request().BasicAuth(); !ok && !s.console() {
		return problem.New("login/password-needed", "%s needs account and password with the request itself", what)
	}
	return nil
}

func (s *server) apiPlan(c echo.Context) error {
	id, err := caseID(c)
	if err != nil {
		return err
	}
	plan, err := s.gate.Plan(c.Request().Context(), actorOf(c), id)
	if err != nil {
		return err
	}
	return s.answer(c, planAnswer{plan})
}

func (s *server) apiRelease(c echo.Context) error {
	id, err := caseID(c)
	if err != nil {
		return err
	}
	if err := readNothing(c); err != nil {
		return err
	}
	return s.streamed(c, func(observe func(gate.Progress)) (line, error) {
		var released *gate.Case
		err := s.options.Work(func() (err error) {
			released, err = s.gate.Release(c.Request().Context(), actorOf(c), id, observe)
			return err
		})
		return line{Case: released}, err
	})
}

func readPath(c echo.Context) (string, error) {
	var body pathBody
	if err := readJSON(c, &body); err != nil {
		return "", err
	}
	if body.Path == "" {
		return "", problem.New("request/invalid", "the request names no file")
	}
	return body.Path, nil
}

func (s *server) apiReceive(c echo.Context) error {
	path, err := readPath(c)
	if err != nil {
		return err
	}
	return s.streamed(c, func(observe func(gate.Progress)) (line, error) {
		var received *gate.Case
		err := s.options.Work(func() (err error) {
			received, err = s.gate.Receive(c.Request().Context(), actorOf(c), path, observe)
			return err
		})
		return line{Case: received}, err
	})
}

func (s *server) apiPreview(c echo.Context) error {
	path, err := readPath(c)
	if err != nil {
		return err
	}
	preview, err := s.gate.Preview(c.Request().Context(), actorOf(c), path)
	if err != nil {
		return err
	}
	worded := []policy.Worded{}
	if preview.Decision != nil {
		worded = s.worded(c, preview.Decision.Findings)
	}
	return s.answer(c, previewAnswer{preview, worded})
}

func (s *server) apiVerify(c echo.Context) error {
	path, err := readPath(c)
	if err != nil {
		return err
	}
	return s.streamed(c, func(observe func(gate.Progress)) (line, error) {
		verified, err := s.gate.VerifyFile(c.Request().Context(), actorOf(c), path, func(done, total int64) {
			observe(gate.Progress{Phase: "verify", Done: done, Total: total})
		})
		return line{Verification: verified}, err
	})
}
