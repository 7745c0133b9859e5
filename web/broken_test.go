package web

import (
	"database/sql"
	"errors"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

// edit changes rows behind the gate's back.
func (l *lab) edit(statement string) {
	l.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(l.dir, "gate.db")+"?_pragma=busy_timeout(10000)")
	l.must(err)
	_, err = db.ExecContext(l.t.Context(), statement)
	l.must(errors.Join(err, db.Close()))
}

// TestARowThatIsBroken hides no other case; its page says what is wrong, and
// offers to reject it.
func TestARowThatIsBroken(t *testing.T) {
	l := newLab(t)
	l.waiting()
	l.waiting()
	l.edit(`UPDATE cases SET manifest = 'zz' WHERE id = 1`)
	b := l.loggedIn(officer, "de")
	b.get("/cases").shows("Nr. 2")
	b.get("/cases?tab=blocked").shows("Vorgang 1", "unlesbar")
	shown := b.get("/cases/1")
	if shown.status != http.StatusOK {
		t.Fatalf("%d", shown.status)
	}
	shown.shows("gate/row-damaged", "Vorgang 1")
	form := url.Values{"choice": {"reject"}, "reason": {"unlesbar"}, "review": {""}}
	if s := b.post("/cases/1/confirm", form); s.status != http.StatusOK {
		t.Fatalf("confirm: %d\n%s", s.status, s.raw)
	}
	form.Set("password", passwordOf(officer))
	if s := b.post("/cases/1/decisions", form); s.status != http.StatusOK || s.path != "/cases/1" {
		t.Fatalf("reject: %d at %s", s.status, s.path)
	}
	b.get("/cases?tab=done").shows("Vorgang 1")
	api := l.consoleAPI(operator)
	if c := read[gate.Case](t, api.call("GET", "/cases/1", nil), http.StatusOK); c.State != gate.Rejected || c.Problem.Code != "gate/row-damaged" {
		t.Errorf("%+v", c)
	}
	if list := read[casesAnswer](t, api.call("GET", "/cases", nil), http.StatusOK); len(list.Cases) != 2 {
		t.Errorf("%+v", list)
	}
}

// TestWhatCannotBeWrittenIsAnAnswer: an error that quotes no text, and a page
// that cannot be made, are answers with a status, not a connection that is cut.
func TestWhatCannotBeWrittenIsAnAnswer(t *testing.T) {
	l := newLab(t)
	s := newServer(l.gate, l.options())
	var err error
	s.assets, err = loadAssets()
	l.must(err)
	s.screen = map[string]*screens{}
	for _, lang := range languages() {
		s.screen[lang], err = loadScreens(lang, s.assets, l.clock.Now)
		l.must(err)
		s.screen[lang].pages["error"] = template.Must(template.New("").Parse("{{.Nothing}}"))
	}
	h := s.handler([]route{
		{"GET", apiRoot + "/quotes", forAnyone, func(*server, echo.Context) error {
			return problem.New("case/unknown", "no case \xff").With("row:  \xff").Hint("\xff")
		}},
		{"GET", apiRoot + "/unwritable", forAnyone, func(s *server, c echo.Context) error {
			return s.answer(c, gate.Review{}) // its manifest is no digest
		}},
		{"GET", "/unwritable", forAnyone, func(s *server, c echo.Context) error {
			return problem.New("case/unknown", "there is no such case")
		}},
	})
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		apiRoot + "/quotes":     {http.StatusNotFound, "case/unknown"},
		apiRoot + "/unwritable": {http.StatusInternalServerError, "failed"},
		"/unwritable":           {http.StatusInternalServerError, "failed"},
	} {
		out := httptest.NewRecorder()
		h.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		refused(t, out, want.status, want.code)
	}
}
