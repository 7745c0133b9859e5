package web

import (
	"encoding/json/v2"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/internal/problem"
)

// Limits of a request's body, in bytes.
const (
	maxBody      = 64 << 10
	maxTrustBody = 16 << 20 // documents of the head, in base64
)

// policyHeader is what a browser may do with a page: nothing but show it, with
// our own style sheet, and send its forms back here.
const policyHeader = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// hardened is what holds for every request, found or not: headers, no requests
// that another site makes in somebody's name, no large bodies.
func (s *server) hardened(next *echo.Echo) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.answerError(next.NewContext(r, w), problem.New("request/cross-origin", "another site sent this request"))
	}))
	protected := protection.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policyHeader)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		limit := int64(maxBody)
		if r.URL.Path == apiRoot+"/trust" {
			limit = maxTrustBody
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		protected.ServeHTTP(w, r)
	})
}

// needType refuses a body of another type: forms of other sites can send only
// some, and nothing is guessed.
func needType(r *http.Request, want string) error {
	got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || got != want {
		return problem.New("request/content-type", "the request has the content type %.100q", r.Header.Get("Content-Type")).With("want:  " + want)
	}
	return nil
}

func readBody(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, problem.New("request/too-large", "the request has more than %d bytes", tooLarge.Limit)
	}
	return b, err
}

// readJSON reads a body strictly: no unknown and no duplicate keys, nothing
// behind the end.
func readJSON(c echo.Context, into any) error {
	if err := needType(c.Request(), "application/json"); err != nil {
		return err
	}
	b, err := readBody(c.Request())
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into, json.RejectUnknownMembers(true)); err != nil {
		return problem.New("request/invalid", "the request is malformed: %w", problem.JSON(err))
	}
	return nil
}

// readNothing refuses a body where none belongs.
func readNothing(c echo.Context) error {
	b, err := readBody(c.Request())
	if err == nil && len(b) > 0 {
		return problem.New("request/invalid", "the request has a body, and none belongs there")
	}
	return err
}

// readForm reads a form from the body alone; each field once.
func readForm(c echo.Context) (url.Values, error) {
	r := c.Request()
	if err := needType(r, "application/x-www-form-urlencoded"); err != nil {
		return nil, err
	}
	b, err := readBody(r)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, problem.New("request/invalid", "the form cannot be read")
	}
	for name, values := range form {
		if len(values) != 1 {
			return nil, problem.New("request/invalid", "the form has the field %.40q more than once", name)
		}
	}
	return form, nil
}

// localPath gives a path of this site to go back to, or the start for anything
// else: a link may come from anywhere.
func localPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}
