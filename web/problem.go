package web

import (
	"encoding/json/v2"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
)

// problemDocument is an error as the API gives it: RFC 9457, with the members
// of an error of ours. The exit code of a command follows from Code.
type problemDocument struct {
	Title    string   `json:"title,omitzero"`  // of the status; left out in a stream
	Status   int      `json:"status,omitzero"` //
	Detail   string   `json:"detail"`
	Code     string   `json:"code"`
	Evidence []string `json:"evidence"`
	Remedy   string   `json:"remedy"`
}

// documentOf asks an error for what a person needs to know.
func documentOf(err error) problemDocument {
	// What is JSON afterwards, whatever an error quotes.
	valid := func(text string) string { return strings.ToValidUTF8(text, "\ufffd") }
	p := problemDocument{Detail: valid(err.Error()), Code: cli.CodeOf(err), Evidence: []string{}, Remedy: valid(problem.RemedyOf(err))}
	for _, line := range problem.EvidenceOf(err) {
		p.Evidence = append(p.Evidence, valid(line))
	}
	return p
}

// statusOf gives the status that fits a code.
func statusOf(code string) int {
	switch code {
	case "failed", "interrupted":
		return http.StatusInternalServerError
	case "login/needed", "login/failed", "login/password-needed":
		return http.StatusUnauthorized
	case "login/wait":
		return http.StatusTooManyRequests
	case "request/cross-origin", "request/console-only":
		return http.StatusForbidden
	case "request/not-found", "case/unknown", "account/unknown", "depot/not-found", "request/browser-only":
		return http.StatusNotFound
	case "request/method":
		return http.StatusMethodNotAllowed
	case "request/busy":
		return http.StatusServiceUnavailable
	case "request/too-large":
		return http.StatusRequestEntityTooLarge
	case "request/content-type":
		return http.StatusUnsupportedMediaType
	}
	group, _, _ := strings.Cut(code, "/")
	switch group {
	case "login":
		return http.StatusForbidden
	case "case", "gate":
		return http.StatusConflict
	case "request":
		return http.StatusBadRequest
	case "disk":
		return http.StatusInsufficientStorage
	}
	return http.StatusUnprocessableEntity
}

func (s *server) writeProblem(c echo.Context, err error) error {
	p := documentOf(err)
	p.Status = statusOf(p.Code)
	p.Title = http.StatusText(p.Status)
	if p.Status == http.StatusUnauthorized {
		c.Response().Header().Set("WWW-Authenticate", "Session") // not Basic: browsers would ask for a password by themselves
	}
	return s.writeJSON(c, p.Status, "application/problem+json", p)
}

// writeJSON answers with a document. It is whole before the first byte of it
// is sent.
func (s *server) writeJSON(c echo.Context, status int, contentType string, v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return unwritable(err)
	}
	return s.send(c, status, contentType, append(b, '\n'))
}

// unwritable is a failure of ours, whatever it was that could not be written.
func unwritable(err error) error {
	return problem.New("failed", "the answer cannot be written: %v", err)
}

func (s *server) answer(c echo.Context, v any) error {
	return s.writeJSON(c, http.StatusOK, "application/json", v)
}

// codeOf gives the code of an error, and "" for none.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return cli.CodeOf(err)
}
