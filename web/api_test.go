package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

// TestWholeWayOverTheAPI takes a bundle from the medium to the depot by
// nothing but requests.
func TestWholeWayOverTheAPI(t *testing.T) {
	l := newLab(t)
	console := l.consoleAPI("carrier")
	f := l.forge(nil)
	path := pathBody{l.write(f)}

	// Nobody is trusted on the first day.
	if status := read[gate.TrustStatus](t, console.call("GET", "/trust", nil), 200); status.Initialised {
		t.Errorf("trust before it was given: %+v", status)
	}
	status := read[gate.TrustStatus](t, console.call("POST", "/trust", trustBody{Root: f.Root.Bytes, Revocations: f.Revoked.Bytes}), 200)
	if !status.Initialised || status.RootVersion != 1 {
		t.Errorf("%+v", status)
	}

	preview := read[previewAnswer](t, console.call("POST", "/previews?lang=de", path), 200)
	if !preview.Genuine || preview.Claims.Serial != 1 || preview.Decision == nil || len(preview.Words) != len(preview.Decision.Findings) {
		t.Errorf("%+v", preview)
	}
	last, progress := lastLine(t, console.call("POST", "/verifications", path))
	if last.Problem != nil || last.Verification == nil || !last.Verification.OK || progress == 0 {
		t.Errorf("%+v after %d lines", last, progress)
	}
	if cases := read[casesAnswer](t, console.call("GET", "/cases", nil), 200); len(cases.Cases) != 0 {
		t.Errorf("looking at a bundle made a case: %+v", cases)
	}

	last, progress = lastLine(t, console.call("POST", "/cases", path))
	if last.Problem != nil || last.Case == nil || last.Case.State != gate.Awaiting || progress == 0 {
		t.Fatalf("%+v after %d lines", last, progress)
	}
	last, _ = lastLine(t, console.call("POST", "/cases/1/release", nil))
	if last.Problem == nil || last.Problem.Code != "case/waiting" || last.Case == nil {
		t.Errorf("released before it was approved: %+v", last)
	}

	decide(t, l, console)

	plan := read[planAnswer](t, console.call("GET", "/cases/1/plan", nil), 200)
	if len(plan.Destinations) != 1 || len(plan.Destinations[0].Actions) != 1 {
		t.Errorf("%+v", plan)
	}
	last, progress = lastLine(t, console.call("POST", "/cases/1/release", nil))
	if last.Problem != nil || last.Case.State != gate.Loaded || progress == 0 {
		t.Fatalf("%+v after %d lines", last, progress)
	}
	depot := read[depotListing](t, console.call("GET", "/depot", nil), 200)
	if len(depot.Repositories) != 1 || depot.Repositories[0].Name != "notes" || depot.Repositories[0].Tags[0].Tag != "1.0" || depot.Next != "" {
		t.Errorf("%+v", depot)
	}
}

// decide reads the review of case 1 as a program would, and approves it.
func decide(t *testing.T, l *lab, console *api) {
	t.Helper()
	review := console.call("GET", "/cases/1/review", nil)
	read[gate.Review](t, review, 200)
	sum := sha256.Sum256(review.Body.Bytes())
	digest := review.Header().Get("Packhof-Review")
	if want := cas.DigestOf(review.Body.Bytes()).String(); digest != want || review.Header().Get("ETag") != `"`+want+`"` ||
		review.Header().Get("Repr-Digest") != "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":" {
		t.Errorf("the headers %v do not fit the digest %s", review.Header(), want)
	}
	german := read[findingsAnswer](t, console.call("GET", "/cases/1/findings?lang=de", nil), 200)
	english := read[findingsAnswer](t, console.call("GET", "/cases/1/findings?lang=en", nil), 200)
	if len(german.Findings) == 0 || german.Findings[0].Sentence == "" || german.Findings[0].Sentence == english.Findings[0].Sentence {
		t.Errorf("%+v, %+v", german, english)
	}
	body := decisionBody{Choice: gate.Approve, Review: digest, Reason: "agreed with the sender"}
	refused(t, console.call("POST", "/cases/1/decisions", body), http.StatusForbidden, "login/account-needed")
	other := body
	other.Review = "sha256:" + strings.Repeat("0", 64)
	refused(t, console.as(officer).call("POST", "/cases/1/decisions", other), http.StatusConflict, "case/review-changed")
	decided := read[gate.Case](t, console.as(officer).call("POST", "/cases/1/decisions", body), 200)
	if decided.State != gate.Approved {
		t.Errorf("%+v", decided)
	}
	decisions := read[decisionsAnswer](t, l.networkAPI(auditor).call("GET", "/cases/1/decisions", nil), 200)
	if len(decisions.Decisions) != 1 || decisions.Decisions[0].Reason != body.Reason || decisions.Decisions[0].Actor != officer {
		t.Errorf("%+v", decisions)
	}
}

func TestRefusalsEndTheStream(t *testing.T) {
	l := newLab(t)
	console := l.consoleAPI("root")
	l.trust()
	last, _ := lastLine(t, console.call("POST", "/cases", pathBody{l.write(l.stranger())}))
	if last.Problem == nil || !strings.HasPrefix(last.Problem.Code, "signing/") || last.Case == nil || last.Case.State != gate.NotGenuine {
		t.Errorf("%+v", last)
	}
	last, _ = lastLine(t, console.call("POST", "/cases", pathBody{filepath.Join(t.TempDir(), "nothing.tar")}))
	if last.Problem == nil || last.Problem.Code != "file/missing" || last.Case != nil {
		t.Errorf("%+v", last)
	}
	last, _ = lastLine(t, console.call("POST", "/verifications", pathBody{l.write(l.stranger())}))
	if last.Problem == nil || last.Verification != nil {
		t.Errorf("%+v", last)
	}
}

func TestAccountsOverTheAPI(t *testing.T) {
	l := newLab(t)
	console := l.consoleAPI("root")
	added := accountBody{Name: "rita", Roles: []gate.Role{gate.RoleReviewer}, Password: passwordOf("rita")}
	read[struct{}](t, console.call("POST", "/users", added), 201)
	refused(t, console.call("POST", "/users", added), http.StatusUnprocessableEntity, "account/exists")
	users := read[usersAnswer](t, l.networkAPI(officer).call("GET", "/users", nil), 200)
	if len(users.Users) != 2 {
		t.Errorf("%+v", users)
	}
	refused(t, l.networkAPI("rita").call("GET", "/users", nil), http.StatusForbidden, "login/forbidden")
	read[struct{}](t, l.networkAPI("rita").call("POST", "/users/rita/password", passwordBody{"another long password"}), 200)
	refused(t, l.networkAPI("rita").call("GET", "/cases", nil), http.StatusUnauthorized, "login/failed")
	refused(t, console.call("POST", "/users/nobody/password", passwordBody{"another long password"}), http.StatusNotFound, "account/unknown")
}

func TestReadingOverTheAPI(t *testing.T) {
	l := newLab(t)
	console := l.consoleAPI("root")
	version := read[versionAnswer](t, console.call("GET", "/version", nil), 200)
	if version.Program != "packhof-gate test" || version.Gate != l.gate.ID() {
		t.Errorf("%+v", version)
	}
	if doctor := read[doctorAnswer](t, console.call("GET", "/doctor", nil), 200); len(doctor.Checks) == 0 {
		t.Errorf("%+v", doctor)
	}
	want, err := l.gate.EnrolmentFile()
	l.must(err)
	if got := console.call("GET", "/enrolment", nil); !bytes.Equal(got.Body.Bytes(), want) {
		t.Errorf("%s", got.Body)
	}
	if got := console.call("GET", "/openapi.json", nil); !bytes.Equal(got.Body.Bytes(), description) {
		t.Errorf("%.100s", got.Body)
	}
	refused(t, console.call("GET", "/depot?limit=0", nil), http.StatusBadRequest, "request/invalid")
	refused(t, console.call("GET", "/depot?limit=x", nil), http.StatusBadRequest, "request/invalid")
	for _, id := range []string{"7", "0", "-1", "01", "x", "9999999999999999999999", "1%2f2"} {
		refused(t, console.call("GET", "/cases/"+id, nil), http.StatusNotFound, "case/unknown")
	}
}

// TestNobodyIsRefusedEverything asks every route without being anybody.
func TestNobodyIsRefusedEverything(t *testing.T) {
	l := newLab(t)
	network, err := New(l.gate, l.options())
	l.must(err)
	console, err := NewConsole(l.gate, l.options(), func(*http.Request) string { return "" })
	l.must(err)
	for name, handler := range map[string]http.Handler{"network": network, "console": console} {
		for _, r := range apiRoutes() {
			if r.access == forAnyone || r.access == inBrowsers {
				continue
			}
			out := httptest.NewRecorder()
			path := strings.NewReplacer(":id", "1", ":name", "anna").Replace(r.path)
			handler.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), r.method, path, nil))
			t.Run(name+" "+r.method+" "+path, func(t *testing.T) {
				refused(t, out, http.StatusUnauthorized, "login/needed")
			})
		}
	}
	for _, r := range pageRoutes() {
		if r.access == forAnyone {
			continue
		}
		out := httptest.NewRecorder()
		network.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), r.method, strings.ReplaceAll(r.path, ":id", "1"), nil))
		if out.Code != http.StatusSeeOther || !strings.HasPrefix(out.Header().Get("Location"), "/login") {
			t.Errorf("%s %s: %d to %q", r.method, r.path, out.Code, out.Header().Get("Location"))
		}
	}
}

// TestPathsAreNamedAtTheConsoleOnly: an administrator's browser must not make
// the gate read files of its machine.
func TestPathsAreNamedAtTheConsoleOnly(t *testing.T) {
	l := newLab(t)
	path := pathBody{l.write(l.forge(nil))}
	for _, account := range []string{officer, operator} {
		for _, address := range []string{"/cases", "/previews", "/verifications"} {
			refused(t, l.networkAPI(account).call("POST", address, path), http.StatusForbidden, "request/console-only")
		}
	}
}

func TestBadRequests(t *testing.T) {
	l := newLab(t)
	console := l.consoleAPI("root")
	for name, c := range map[string]struct {
		path, contentType, body string
		status                  int
		code                    string
	}{
		"no type":          {"/previews", "", `{"path":"x"}`, 415, "request/content-type"},
		"a form":           {"/previews", "application/x-www-form-urlencoded", `path=x`, 415, "request/content-type"},
		"text":             {"/previews", "text/plain", `{"path":"x"}`, 415, "request/content-type"},
		"unknown key":      {"/previews", "application/json", `{"path":"x","force":true}`, 400, "request/invalid"},
		"duplicate key":    {"/previews", "application/json", `{"path":"x","path":"y"}`, 400, "request/invalid"},
		"other case":       {"/previews", "application/json", `{"Path":"x"}`, 400, "request/invalid"},
		"two documents":    {"/previews", "application/json", `{"path":"x"}{}`, 400, "request/invalid"},
		"not JSON":         {"/previews", "application/json", `path`, 400, "request/invalid"},
		"bad UTF-8":        {"/previews", "application/json", "{\"path\":\"\xff\"}", 400, "request/invalid"},
		"no path":          {"/previews", "application/json", `{}`, 400, "request/invalid"},
		"too large":        {"/previews", "application/json", `{"path":"` + strings.Repeat("x", maxBody) + `"}`, 413, "request/too-large"},
		"trust: both":      {"/trust", "application/json", `{"root":"eA==","document":"eA=="}`, 400, "request/invalid"},
		"trust: neither":   {"/trust", "application/json", `{}`, 400, "request/invalid"},
		"trust: no base64": {"/trust", "application/json", `{"root":"?"}`, 400, "request/invalid"},
		"release: a body":  {"/cases/1/release", "application/json", `{}`, 400, "request/invalid"},
		"charset":          {"/previews", "application/json; charset=utf-8", `{}`, 400, "request/invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), "POST", apiRoot+c.path, strings.NewReader(c.body))
			request.Header.Set("Content-Type", c.contentType)
			refused(t, console.send(request), c.status, c.code)
		})
	}
	refused(t, console.call("GET", "/nothing", nil), http.StatusNotFound, "request/not-found")
	out := console.call("PUT", "/cases", nil)
	refused(t, out, http.StatusMethodNotAllowed, "request/method")
	if allow := out.Header().Get("Allow"); !strings.Contains(allow, "GET") {
		t.Errorf("Allow: %q", allow)
	}
	refused(t, console.call("POST", "/session", loginBody{officer, passwordOf(officer)}), http.StatusNotFound, "request/browser-only")
}

func TestSessionOverTheAPI(t *testing.T) {
	l := newLab(t)
	network := l.networkAPI("")
	refused(t, network.call("POST", "/session", loginBody{officer, "wrong password"}), 401, "login/failed")
	out := network.call("POST", "/session", loginBody{officer, passwordOf(officer)})
	if who := read[sessionAnswer](t, out, 200); who.Account != officer || len(who.Roles) != 2 {
		t.Errorf("%+v", who)
	}
	cookies := out.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%v", cookies)
	}
	with := func(method, path string) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(t.Context(), method, apiRoot+path, nil)
		request.AddCookie(cookies[0])
		return network.send(request)
	}
	read[casesAnswer](t, with("GET", "/cases"), 200)
	// A session that was left open does not decide, nor does it make somebody
	// who could: whoever does sends the password along.
	for _, path := range []string{"/cases/1/decisions", "/users", "/users/anna/password", "/trust"} {
		refused(t, with("POST", path), 401, "login/password-needed")
	}
	if out := with("DELETE", "/session"); out.Code != 204 {
		t.Errorf("%d", out.Code)
	}
	refused(t, with("GET", "/cases"), 401, "login/needed")
}

// TestAnInterruptedRequestEndsTheWork: whoever stops a command stops what it
// started, and the case can go on later.
func TestAnInterruptedRequestEndsTheWork(t *testing.T) {
	l := newLab(t)
	l.trust()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := httptest.NewRequestWithContext(ctx, "POST", apiRoot+"/cases", strings.NewReader(`{"path":"`+l.write(l.forge(nil))+`"}`))
	request.Header.Set("Content-Type", "application/json")
	last, _ := lastLine(t, l.consoleAPI("root").send(request))
	if last.Problem == nil || last.Problem.Code != "interrupted" {
		t.Errorf("%+v", last)
	}
}

func TestProgressIsBounded(t *testing.T) {
	out := httptest.NewRecorder()
	clock := testkit.NewClock(testkit.Noon())
	s := &stream{response: echo.NewResponse(out, echo.New()), clock: clock.Now}
	for n := range int64(1000) {
		s.progress(gate.Progress{Phase: "copy", Done: n, Total: 1000})
		if n%100 == 99 {
			clock.Advance(progressPause)
		}
	}
	s.progress(gate.Progress{Phase: "copy", Done: 1000, Total: 1000})
	s.progress(gate.Progress{Phase: "inspect", Done: 0, Total: 5})
	if lines := strings.Count(out.Body.String(), "\n"); lines != 12 {
		t.Errorf("%d lines:\n%s", lines, out.Body)
	}
}

func TestPackageNeedsItsParts(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("screens of no gate")
	}
	if _, err := NewConsole(nil, Options{}, nil); err == nil {
		t.Error("a console of no gate")
	}
}

// TestRoutesAreOnce holds that no route stands twice in the table, since the
// later one would win.
func TestRoutesAreOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range append(apiRoutes(), pageRoutes()...) {
		if seen[r.method+r.path] {
			t.Errorf("%s %s twice", r.method, r.path)
		}
		seen[r.method+r.path] = true
	}
}
