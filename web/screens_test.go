package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
)

func TestHeaders(t *testing.T) {
	l := newLab(t)
	for _, path := range []string{"/login", "/nothing", "/api/v1/cases", "/api/v1/nothing", "/assets/nothing.css"} {
		header := l.browser("de").get(path).header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s: %q", path, name, got)
			}
		}
	}
}

// TestAssetsAreNamedByContent: a browser may keep them, and no page names one
// that is not there.
func TestAssetsAreNamedByContent(t *testing.T) {
	l := newLab(t)
	b := l.browser("de")
	login := b.get("/login")
	sheet := attribute(login.one("link", "rel", "stylesheet"), "href")
	answer := b.get(sheet)
	if answer.status != 200 || answer.header.Get("Content-Type") != "text/css; charset=utf-8" || !strings.Contains(answer.header.Get("Cache-Control"), "immutable") {
		t.Errorf("%s: %d %v", sheet, answer.status, answer.header)
	}
	if icon := b.get(attribute(login.one("link", "rel", "icon"), "href")); icon.status != 200 || icon.header.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("%d %v", icon.status, icon.header)
	}
	for _, path := range []string{"/assets/style.css", "/assets/..%2fweb.go", "/assets/"} {
		if answer := b.get(path); answer.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, answer.status)
		}
	}
}

func TestLogin(t *testing.T) {
	for lang, want := range map[string]struct{ title, wrong string }{
		"de": {"Anmelden – Packhof", "Konto oder Passwort ist falsch."},
		"en": {"Log in – Packhof", "Account or password is wrong."},
	} {
		t.Run(lang, func(t *testing.T) {
			l := newLab(t)
			b := l.browser(lang)
			s := b.get("/cases/7?x=y")
			if s.path != "/login" || text(s.one("title")) != want.title || attribute(s.one("html"), "lang") != lang {
				t.Errorf("%s: %q", s.path, text(s.one("title")))
			}
			if to := attribute(all(s.one("form", "action", "/login"), "input", "name", "to")[0], "value"); to != "/cases/7?x=y" {
				t.Errorf("afterwards to %q", to)
			}
			unknown := b.post("/login", url.Values{"account": {"nobody"}, "password": {"a wrong password"}})
			wrong := b.post("/login", url.Values{"account": {officer}, "password": {"a wrong password"}})
			if unknown.status != http.StatusUnauthorized || strings.ReplaceAll(unknown.raw, "nobody", officer) != wrong.raw {
				t.Error("an unknown account and a wrong password are told apart")
			}
			wrong.shows(want.wrong)
			if !strings.HasPrefix(text(wrong.one("title")), map[string]string{"de": "Fehler: ", "en": "Error: "}[lang]) {
				t.Errorf("title %q", text(wrong.one("title")))
			}
			in := b.post("/login", url.Values{"account": {officer}, "password": {passwordOf(officer)}, "to": {"/system"}})
			if in.path != "/system" || in.status != 200 {
				t.Errorf("%d at %s", in.status, in.path)
			}
			if out := b.post("/logout", nil); out.path != "/login" {
				t.Errorf("at %s", out.path)
			}
			if s := b.get("/cases"); s.path != "/login" {
				t.Errorf("after the logout at %s", s.path)
			}
		})
	}
}

func TestLoginSlowsDown(t *testing.T) {
	l := newLab(t)
	b := l.browser("en")
	wrong := url.Values{"account": {"nobody"}, "password": {"a wrong password"}}
	status := 0
	for range 10 {
		if status = b.post("/login", wrong).status; status == http.StatusTooManyRequests {
			break
		}
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("after ten failures: %d", status)
	}
}

// TestT72SessionFixation: a session that a browser brings along before the
// login is worth nothing afterwards, and a step-up makes a new one.
func TestT72SessionFixation(t *testing.T) {
	l := newLab(t)
	c := l.waiting()
	session := func(b *browser) string {
		at, err := url.Parse(l.server.URL)
		l.must(err)
		for _, cookie := range b.client.Jar.Cookies(at) {
			if cookie.Name == "__Host-packhof" {
				return cookie.Value
			}
		}
		return ""
	}
	victim := l.browser("en")
	at, err := url.Parse(l.server.URL)
	l.must(err)
	victim.client.Jar.SetCookies(at, []*http.Cookie{{Name: "__Host-packhof", Value: "chosen by somebody else", Path: "/", Secure: true}})
	victim.post("/login", url.Values{"account": {officer}, "password": {passwordOf(officer)}})
	first := session(victim)
	if first == "" || first == "chosen by somebody else" {
		t.Fatalf("the session is %q", first)
	}
	victim.post("/login", url.Values{"account": {officer}, "password": {passwordOf(officer)}})
	second := session(victim)
	if _, err := l.gate.Session(t.Context(), first); err == nil || second == first {
		t.Error("the first session lives on after another login")
	}
	digest := victim.digest(c.ID)
	victim.post("/cases/1/decisions", url.Values{"choice": {"approve"}, "reason": {"agreed"}, "review": {digest}, "password": {passwordOf(officer)}})
	if third := session(victim); third == second || third == "" {
		t.Errorf("the session is the same after the password was asked again")
	}
	if _, err := l.gate.Session(t.Context(), second); err == nil {
		t.Error("the session from before lives on")
	}
}

func TestCookieFlags(t *testing.T) {
	l := newLab(t)
	handler, err := New(l.gate, l.options())
	l.must(err)
	request := httptest.NewRequestWithContext(t.Context(), "POST", "/login", strings.NewReader(url.Values{"account": {officer}, "password": {passwordOf(officer)}}.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	out := httptest.NewRecorder()
	handler.ServeHTTP(out, request)
	cookies := out.Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("%v", cookies)
	}
	c := cookies[0]
	if c.Name != "__Host-packhof" || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 {
		t.Errorf("%+v", c)
	}
}

// TestT71RequestsOfOtherSites are refused, whatever they ask for.
func TestT71RequestsOfOtherSites(t *testing.T) {
	l := newLab(t)
	b := l.loggedIn(officer, "en")
	for name, c := range map[string]struct {
		header, value string
		refused       bool
	}{
		"the same origin":     {"Sec-Fetch-Site", "same-origin", false},
		"typed by the user":   {"Sec-Fetch-Site", "none", false},
		"another site":        {"Sec-Fetch-Site", "cross-site", true},
		"a neighbour":         {"Sec-Fetch-Site", "same-site", true},
		"an old browser":      {"Origin", "https://evil.example", true},
		"a sandboxed frame":   {"Origin", "null", true},
		"an old browser, own": {"Origin", l.server.URL, false},
	} {
		for _, path := range []string{"/language", "/cases/1/decisions", "/cases/1/release", "/login", "/api/v1/session", "/api/v1/users"} {
			request, err := http.NewRequestWithContext(t.Context(), "POST", l.server.URL+path, strings.NewReader("lang=en"))
			l.must(err)
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			request.Header.Set(c.header, c.value)
			s := b.do(request)
			if refused := strings.Contains(s.raw, "request/cross-origin"); refused != c.refused || refused && s.status != http.StatusForbidden {
				t.Errorf("%s, %s: %d, %.200s", name, path, s.status, s.raw)
			}
		}
	}
}

func TestFormsAreStrict(t *testing.T) {
	l := newLab(t)
	b := l.loggedIn(officer, "en")
	for name, c := range map[string]struct {
		contentType, body string
		status            int
	}{
		"JSON":        {"application/json", `{"lang":"de"}`, http.StatusUnsupportedMediaType},
		"multipart":   {"multipart/form-data; boundary=x", "--x--", http.StatusUnsupportedMediaType},
		"twice":       {"application/x-www-form-urlencoded", "lang=de&lang=en", http.StatusBadRequest},
		"bad escapes": {"application/x-www-form-urlencoded", "lang=%zz", http.StatusBadRequest},
		"too large":   {"application/x-www-form-urlencoded", "lang=" + strings.Repeat("x", maxBody), http.StatusRequestEntityTooLarge},
	} {
		request, err := http.NewRequestWithContext(t.Context(), "POST", l.server.URL+"/language", strings.NewReader(c.body))
		l.must(err)
		request.Header.Set("Content-Type", c.contentType)
		if s := b.do(request); s.status != c.status {
			t.Errorf("%s: %d, want %d", name, s.status, c.status)
		}
	}
	if s := b.get("/logout"); s.status != http.StatusMethodNotAllowed {
		t.Errorf("a link that logs out: %d", s.status)
	}
}

func TestLanguageIsKept(t *testing.T) {
	l := newLab(t)
	b := l.loggedIn(officer, "de")
	s := b.post("/language", url.Values{"lang": {"en"}, "to": {"/depot"}})
	if s.path != "/depot" || attribute(s.one("html"), "lang") != "en" {
		t.Errorf("%s in %s", s.path, attribute(s.one("html"), "lang"))
	}
	b.post("/language", url.Values{"lang": {"xx"}, "to": {"https://evil.example/"}}).one("html", "lang", "en")
}

func TestInbox(t *testing.T) {
	l := newLab(t)
	german, english := l.loggedIn(officer, "de"), l.loggedIn(auditor, "en")
	german.get("/cases").shows("Kein Vorgang ist offen.", "packhof-gate receive")
	english.get("/cases?tab=done").shows("No case is done yet.")
	l.waiting()
	l.receive(l.stranger())

	s := german.get("/cases")
	s.shows("Vorgang 1: plant-7 Nr. 1", "wartet", "Ihre Entscheidung fehlt", "0 von 1 Freigabe", "eingebracht von os:carrier", "30.11.2026, 12:00", "gerade eben")
	if tabs := all(s.one("nav", "class", "tabs"), "a"); len(tabs) != 3 || text(tabs[0]) != "Offen 1" || text(tabs[1]) != "Gesperrt 1" || attribute(tabs[0], "aria-current") != "page" {
		t.Errorf("tabs %q, %q", text(tabs[0]), text(tabs[1]))
	}
	english.get("/cases").shows("Case 1: plant-7 no. 1", "awaiting approval", "approval is missing", "30 Nov 2026, 12:00")
	german.get("/cases?tab=blocked").shows("Vorgang 2", "nicht echt", "Absender klären", "nicht beurteilt")
}

// digest is what the page of a case binds a decision to.
func (b *browser) digest(id gate.CaseID) string {
	b.t.Helper()
	return attribute(b.get(casePath(id)).one("input", "name", "review"), "value")
}

func TestReviewPage(t *testing.T) {
	l := newLab(t)
	c := l.waiting()
	for lang, want := range map[string][]string{
		"de": {"Vorgang 1: plant-7 Nr. 1", "Entscheidung nötig: ", "Was sich ändert", "neu", "depot: notes:1.0", "Echtheit", "1 gültige Unterschrift, 1 verlangt",
			"release@example", "Befunde", "Zu entscheiden", "Inhalt", "README.md", "data/values.csv", "Software-Stückliste (SBOM)", "fehlt: made by hand", "Verlauf", "eingegangen",
			"Entscheidung", "Begründung", "First line", "second <b>line</b>", "4 von 4 Blobs geprüft"},
		"en": {"Case 1: plant-7 no. 1", "Decision needed: ", "What changes", "1 valid signature, 1 required", "Findings", "To decide", "Contents", "History", "Reason", "absent: made by hand"},
	} {
		s := l.loggedIn(officer, lang).get(casePath(c.ID))
		s.shows(want...)
		review, err := l.gate.Review(t.Context(), gate.Console("root"), c.ID)
		l.must(err)
		if got := attribute(s.one("input", "name", "review"), "value"); got != review.Digest {
			t.Errorf("the form is about %s, not %s", got, review.Digest)
		}
		for _, choice := range all(s.doc, "input", "name", "choice") {
			if _, checked := attributes(choice)["checked"]; checked {
				t.Error("a decision is made before anybody has read")
			}
		}
		sections := []string{}
		for _, h := range all(s.one("main"), "h2") {
			sections = append(sections, attribute(h, "id"))
		}
		if got := strings.Join(sections, " "); got != "changes authenticity findings contents history decision" {
			t.Errorf("sections: %s", got)
		}
	}
	auditors := l.loggedIn(auditor, "de").get(casePath(c.ID))
	auditors.shows("Ihr Konto hat keine Rolle, die entscheiden darf.")
	if forms := all(auditors.doc, "textarea"); len(forms) != 0 {
		t.Error("a form for somebody who may not decide")
	}
}

// TestScreensAreAccessible holds what can be told from the source of every
// screen: landmarks, labels, captions, headings, one h1.
func TestScreensAreAccessible(t *testing.T) {
	l := newLab(t)
	c := l.waiting()
	l.receive(l.stranger())
	b := l.loggedIn(officer, "de")
	confirm := url.Values{"choice": {"reject"}, "reason": {"not expected"}, "review": {b.digest(c.ID)}}
	screens := map[string]screen{
		"login": l.browser("de").get("/login"), "inbox": b.get("/cases"), "case": b.get("/cases/1"), "unknown": b.get("/cases/2"),
		"confirm": b.post("/cases/1/confirm", confirm), "again": b.post("/cases/1/confirm", url.Values{"review": confirm["review"]}),
		"depot": b.get("/depot"), "system": b.get("/system"), "error": b.get("/cases/99"),
	}
	for name, s := range screens {
		for _, landmark := range []string{"h1", "main", "header", "footer", "title"} {
			if n := len(all(s.doc, landmark)); n != 1 {
				t.Errorf("%s has %d <%s>", name, n, landmark)
			}
		}
		ids := map[string]int{}
		for n := range s.doc.Descendants() {
			if id := attribute(n, "id"); id != "" {
				ids[id]++
			}
		}
		for id, n := range ids {
			if n > 1 {
				t.Errorf("%s has the id %s %d times", name, id, n)
			}
		}
		for _, table := range all(s.doc, "table") {
			if len(all(table, "caption")) != 1 || len(all(table, "th", "scope", "col")) == 0 {
				t.Errorf("%s: a table without caption or heads", name)
			}
		}
		for _, label := range all(s.doc, "label") {
			if target := attribute(label, "for"); target != "" && ids[target] != 1 {
				t.Errorf("%s: a label for %q", name, target)
			}
		}
		for _, link := range all(s.doc, "a") {
			if target, ok := strings.CutPrefix(attribute(link, "href"), "#"); ok && ids[target] != 1 {
				t.Errorf("%s: a link to #%s", name, target)
			}
		}
		for _, form := range all(s.doc, "form") {
			if attribute(form, "method") != "post" || !strings.HasPrefix(attribute(form, "action"), "/") {
				t.Errorf("%s: a form to %q", name, attribute(form, "action"))
			}
		}
		for _, forbidden := range []string{"script", "style", "iframe", "object"} {
			if len(all(s.doc, forbidden)) != 0 {
				t.Errorf("%s has <%s>", name, forbidden)
			}
		}
		if strings.Contains(s.raw, " style=") || strings.Contains(s.raw, " onclick=") {
			t.Errorf("%s has inline style or script", name)
		}
	}
}

func TestUnknownSender(t *testing.T) {
	l := newLab(t)
	l.trust()
	c := l.receive(l.stranger())
	s := l.loggedIn(auditor, "de").get(casePath(c.ID))
	s.shows("Unbekannter Absender", "Es wurde nichts entpackt", c.Manifest.String(), "packhof-gate trust update DATEI", c.Problem.Code)
	s.shows("Kein Schlüssel, den der Vertrauensanker kennt, hat diese Bytes unterschrieben.", "den Absender auf einem anderen Weg", c.Problem.What)
	inEnglish := l.loggedIn(auditor, "en").get(casePath(c.ID))
	inEnglish.shows("Unknown sender", "Nothing was unpacked", "Nobody whom this gate trusts", c.Problem.What, c.Problem.Remedy)
	for i, line := range german(t).Evidence(c.Problem.Evidence) {
		s.shows(strings.Join(strings.Fields(line), " "))
		inEnglish.shows(strings.Join(strings.Fields(c.Problem.Evidence[i]), " "))
	}
}

func TestDecisionsAreChecked(t *testing.T) {
	l := newLab(t)
	c := l.waiting()
	b := l.loggedIn(officer, "en")
	digest := b.digest(c.ID)
	for name, want := range map[string]struct {
		form   url.Values
		status int
		shows  string
	}{
		"no choice":       {url.Values{"reason": {"x"}}, 422, "Choose whether to approve or to reject."},
		"another choice":  {url.Values{"choice": {"waive"}, "reason": {"x"}}, 422, "Choose whether to approve or to reject."},
		"no reason":       {url.Values{"choice": {"approve"}, "reason": {"  "}}, 422, "Give a reason."},
		"long reason":     {url.Values{"choice": {"reject"}, "reason": {strings.Repeat("x", gate.MaxReason+1)}}, 422, "The reason is too long."},
		"another review":  {url.Values{"choice": {"approve"}, "reason": {"x"}, "review": {"sha256:0"}}, 409, "The case has changed since you looked at it."},
		"all is well":     {url.Values{"choice": {"approve"}, "reason": {"agreed with <b>Berlin</b>"}}, 200, "agreed with <b>Berlin</b>"},
		"a rejection too": {url.Values{"choice": {"reject"}, "reason": {"not expected"}}, 200, "Nothing of it is loaded."},
	} {
		if want.form.Get("review") == "" {
			want.form.Set("review", digest)
		}
		s := b.post("/cases/1/confirm", want.form)
		if s.status != want.status {
			t.Errorf("%s: %d", name, s.status)
		}
		s.shows(want.shows)
		if failed := len(all(s.doc, "div", "role", "alert")) == 1; failed != (want.status != 200) {
			t.Errorf("%s: a summary of errors: %v", name, failed)
		}
	}
	confirm := b.post("/cases/1/confirm", url.Values{"choice": {"approve"}, "reason": {"agreed"}, "review": {digest}})
	confirm.shows("Approve case 1?", "Yours is the last approval that is missing.", "depot (this gate) 1 new name", "You start loading afterwards", "Password of the account anna")
	if got := text(confirm.one("button", "class", "approve")); got != "Approve case 1" {
		t.Errorf("the button says %q", got)
	}
	if s := b.get("/cases/1/confirm"); s.path != "/cases/1" {
		t.Errorf("a confirmation without a decision: %s", s.path)
	}
	form := url.Values{"choice": {"approve"}, "reason": {"agreed"}, "review": {digest}, "password": {"a wrong password"}}
	wrong := b.post("/cases/1/decisions", form)
	if wrong.status != http.StatusUnauthorized {
		t.Errorf("a decision with a wrong password: %d", wrong.status)
	}
	wrong.shows("Approve case 1?", "Account or password is wrong.")
	if c, err := l.gate.Case(t.Context(), gate.Console("root"), c.ID); err != nil || c.State != gate.Awaiting {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestDecideAndLoadInTheBrowser(t *testing.T) {
	l := newLab(t)
	c := l.waiting()
	b := l.loggedIn(officer, "de")
	form := url.Values{"choice": {"approve"}, "reason": {"abgesprochen"}, "review": {b.digest(c.ID)}, "password": {passwordOf(officer)}}
	s := b.post("/cases/1/decisions", form)
	s.shows("freigegeben", "1 von 1 Freigabe", "anna: freigegeben, 30.11.2026, 12:00", "abgesprochen")
	if button := text(all(s.one("section", "class", "act"), "button")[0]); button != "Nach depot laden" {
		t.Errorf("the button says %q", button)
	}
	if again := b.post("/cases/1/decisions", form); again.status != http.StatusConflict {
		t.Errorf("the same decision again: %d", again.status)
	}
	b.get("/cases").shows("Sie können laden")
	reader := l.loggedIn(reviewer, "de")
	reader.get("/cases/1").shows("packhof-gate release 1")
	if s := reader.post("/cases/1/release", nil); s.status != http.StatusForbidden {
		t.Errorf("a reviewer loads: %d", s.status)
	}
	loader := l.loggedIn(operator, "de")
	loader.get("/cases/1").shows("Nach depot laden")
	b.post("/cases/1/release", nil)
	l.background.Wait()
	loader.get("/cases/1").shows("geladen", "am Ziel geprüft", "notes:1.0", "Laden abgeschlossen")
	loader.get("/cases?tab=done").shows("Vorgang 1")
	host := strings.TrimPrefix(l.server.URL, "https://")
	loader.get("/depot").shows("notes:1.0", "Dateien", "curl --fail --cacert gate.pem --remote-name https://"+host+"/files/notes/1.0/SHA256SUMS", "Vorgang 1")

	// The next bundle of the channel shows what it changes.
	next := l.receive(l.forge(nil))
	b.get(casePath(next.ID)).shows("1 Artefakt wie zuvor")
}

func TestRejectInTheBrowser(t *testing.T) {
	l := newLab(t)
	c := l.waiting()
	b := l.loggedIn(officer, "en")
	s := b.post("/cases/1/decisions", url.Values{"choice": {"reject"}, "reason": {"not expected"}, "review": {b.digest(c.ID)}, "password": {passwordOf(officer)}})
	s.shows("rejected", "anna: rejected", "not expected")
	b.get("/cases?tab=done").shows("Case 1", "nothing: final")
}

// TestNobodyDecidesOnTheirOwn: the account of the console's user submitted.
func TestNobodyDecidesOnTheirOwn(t *testing.T) {
	l := newLab(t)
	l.trust()
	_, err := l.gate.Receive(t.Context(), gate.Console(officer), l.write(l.forge(nil)), nil)
	l.must(err)
	b := l.loggedIn(officer, "de")
	b.get("/cases/1").shows("Nach dem Vier-Augen-Prinzip entscheidet jemand anderes.")
	review, err := l.gate.Review(t.Context(), gate.Console("root"), 1)
	l.must(err)
	form := url.Values{"choice": {"approve"}, "reason": {"mine"}, "review": {review.Digest}, "password": {passwordOf(officer)}}
	b.post("/cases/1/decisions", form).shows("case/own")
}

// blocked is a case with a pickle that would run a program.
func (l *lab) blocked() *gate.Case {
	l.t.Helper()
	l.trust()
	pickle := []byte("\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R\x94.")
	f := l.forge(nil)
	f.AddTree(l.t, bundle.Model, "risky", []bundle.File{{Path: "model.pkl", Size: int64(len(pickle)), Digest: f.Content.Add(pickle)}})
	f.Reseal(l.t)
	c := l.receive(f)
	if c.State != gate.Blocked {
		l.t.Fatalf("%s: %+v", c.State, c.Problem)
	}
	return c
}

func TestBlockedCase(t *testing.T) {
	l := newLab(t)
	c := l.blocked()
	s := l.loggedIn(officer, "de").get(casePath(c.ID))
	s.shows("Gesperrt: ", "Sperrbefund", "risky 1.0", "model.pkl", "gesperrt", "Was dagegen steht")
	if len(all(s.doc, "textarea")) != 0 {
		t.Error("a form to decide on what is blocked")
	}
}

// TestRejectBeforeTheVerdict: what was never judged has no review, and can be
// rejected all the same.
func TestRejectBeforeTheVerdict(t *testing.T) {
	l := newLab(t)
	c := l.damaged()
	b := l.loggedIn(officer, "en")
	s := b.get(casePath(c.ID))
	s.shows("damaged", "What stands against it", "read the medium again", "Here you can reject the bundle")
	form := url.Values{"choice": {attribute(s.one("input", "name", "choice"), "value")}, "review": {attribute(s.one("input", "name", "review"), "value")}, "reason": {""}}
	if got := form.Get("choice") + form.Get("review"); got != "reject" {
		t.Errorf("the form says %q", got)
	}
	b.post("/cases/1/confirm", form).shows("Give a reason.")
	form.Set("reason", "the stick is broken")
	b.post("/cases/1/confirm", form).shows("Reject case 1?", "the stick is broken", "Nothing of it is loaded.")
	form.Set("choice", "approve")
	if s := b.post("/cases/1/confirm", form); s.path != "/cases/1" {
		t.Errorf("an approval of what was not judged: %s", s.path)
	}
	form.Set("choice", "reject")
	form.Set("password", passwordOf(officer))
	b.post("/cases/1/decisions", form).shows("rejected", "the stick is broken")
}

func TestNoVerdict(t *testing.T) {
	l := newLab(t)
	l.trust()
	l.judge.broken.Store(true)
	l.receive(l.forge(nil))
	b := l.loggedIn(officer, "de")
	b.get("/cases/1").shows("Prüffehler", "Kein Ergebnis: die Prüfung ist gescheitert", "Warum es kein Prüfergebnis gibt", "policy/error", "Weiter: ablehnen")
	b.get("/cases?tab=blocked").shows("Ursache beheben, dann erneut einbringen")
}

// TestReleaseThatFails tells apart what failed before anything was written,
// what left content without names, and what can be pulled already.
func TestReleaseThatFails(t *testing.T) {
	for step, want := range map[string][]string{
		breakPlan:   {"Freigegeben, aber der letzte Ladeversuch ist gescheitert", "Warum das Laden gescheitert ist", "Es wurde noch nichts an ein Ziel geschrieben", "Erneut nach depot laden", "Weiter: ablehnen"},
		breakName:   {"unvollständig geladen", "Warum das Laden nicht fertig wurde", "noch unter keinem Namen", "Laden nach depot fortsetzen", "Weiter: ablehnen"},
		breakVerify: {"unvollständig geladen", "Warum das Laden nicht fertig wurde", "kann abgeholt werden", "Laden nach depot fortsetzen"},
	} {
		t.Run(step, func(t *testing.T) {
			l := newLab(t)
			l.waiting()
			l.approve(officer, 1)
			b := l.loggedIn(officer, "de")
			l.shelf.breakAt(step)
			b.post("/cases/1/release", nil)
			l.background.Wait()
			if errs := l.failures.take(); len(errs) != 1 || codeOf(errs[0]) != "destination/unreachable" {
				t.Errorf("%v", errs)
			}
			s := b.get("/cases/1")
			s.shows(append(want, "destination/unreachable", "look after the shelf", "https://shelf.example/")...)
			if offered := len(all(s.doc, "textarea")) == 1; offered != (step != breakVerify) {
				t.Errorf("a form to reject: %v", offered)
			}
			l.shelf.breakAt(breakNone)
			b.post("/cases/1/release", nil)
			l.background.Wait()
			b.get("/cases/1").shows("geladen", "Laden abgeschlossen")
		})
	}
}

// TestApprovalIsMissingAgain: what is partly loaded goes on only after it was
// approved anew, and cannot be rejected.
func TestApprovalIsMissingAgain(t *testing.T) {
	l := newLab(t)
	changedWhileLive(l)
	l.serve()
	b := l.loggedIn(reviewer, "de")
	b.get("/cases").shows("Ihre Entscheidung fehlt", "0 von 2 Freigaben")
	s := b.get("/cases/1")
	s.shows("Es fehlt wieder eine Freigabe", "Ablehnen geht nicht mehr", "hinfällig", "Weiter: freigeben")
	form := url.Values{"choice": {"approve"}, "reason": {"still fine"}, "review": {b.digest(1)}}
	b.post("/cases/1/confirm", form).shows("Ihre Freigabe zählt zu 0 von 2.")
	form.Set("password", passwordOf(reviewer))
	b.post("/cases/1/decisions", form).shows("Sie haben bereits freigegeben. Es fehlt noch jemand anderes.", "1 von 2 Freigaben")
}

// TestLaterSerialKeepsItsNames: the case that was overtaken says so.
func TestLaterSerialKeepsItsNames(t *testing.T) {
	l := newLab(t)
	l.waiting()
	later := l.receive(l.forge(nil))
	l.approve(officer, later.ID)
	_, err := l.gate.Release(t.Context(), l.actor(officer), later.ID, nil)
	l.must(err)
	b := l.loggedIn(officer, "de")
	b.get("/cases/1").shows("Die spätere Nummer 2 dieses Kanals ist schon geladen", "bleibt: eine spätere Lieferung hat diesen Namen gesetzt", "1 Name bleibt bei einer späteren Lieferung")
	l.approve(officer, 1)
	b.get("/cases/1").shows("Ohne neue Namen abschließen")
}

// TestOvertakenIsSeenAtOnce: in the list, in the verdict, in what changes, and
// where the decision is confirmed; nothing of it looks like a case that is just
// good, and going back is no update.
func TestOvertakenIsSeenAtOnce(t *testing.T) {
	l := newLab(t)
	l.waiting()
	later := l.receive(l.forge(func(m *bundle.Manifest) { m.Artifacts[0].Version = "2.0" }))
	b := l.loggedIn(officer, "de")
	b.get("/cases/1").shows("Stand: wartet")
	if raw := b.get("/cases").raw + b.get("/cases/1").raw; strings.Contains(raw, "überholt") {
		t.Error("it is overtaken before the later serial is loaded")
	}
	l.approve(officer, later.ID)
	_, err := l.gate.Release(t.Context(), l.actor(officer), later.ID, nil)
	l.must(err)
	b.get("/cases").shows("wartetüberholt von Nr. 2")
	s := b.get("/cases/1")
	s.shows("überholt von Nr. 2 Die spätere Nummer 2 dieses Kanals ist schon geladen: Vorgang 2", "älter", "2.0 → 1.0", "ändert keinen Namen, den eine spätere Nummer gesetzt hat")
	for _, bad := range []string{"mark updated", "aktualisiert", `class="verdict pass"`} {
		if strings.Contains(s.raw, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if notice := s.one("li", "class", "warn"); !strings.Contains(text(notice), "Die spätere Nummer 2") {
		t.Errorf("the notice is %q", text(notice))
	}
	b.post("/cases/1/confirm", url.Values{"choice": {"approve"}, "review": {b.digest(1)}, "reason": {"as agreed"}}).
		shows("überholt von Nr. 2", "ändert keinen Namen, den eine spätere Nummer gesetzt hat")
	l.loggedIn(auditor, "en").get("/cases").shows("overtaken by serial 2")
}

// TestNameOfAnotherChannel shows what no decision can change.
func TestNameOfAnotherChannel(t *testing.T) {
	l := newLab(t)
	c := l.waiting()
	review, err := l.gate.Review(t.Context(), gate.Console("root"), c.ID)
	l.must(err)
	digest := c.Manifest
	plan := &review.Review.Artifacts[0].Plan[0]
	plan.Replaces, plan.Owner = &digest, "plant-8"
	review.Review.Artifacts = append(review.Review.Artifacts, gate.ReviewArtifact{Kind: bundle.Model, Name: "homeless"})
	assets, err := loadAssets()
	l.must(err)
	set, err := loadScreens("de", assets, l.clock.Now)
	l.must(err)
	s := &server{gate: l.gate}
	view := &caseView{standing: standingOf(c), Case: c, Review: s.reviewed(review, "de", parts{}), Digest: review.Digest, Form: decisionForm{Choice: gate.Approve}, Offers: offers{Approve: true, Reject: true}}
	notes := []string{
		"Dieser Vorgang kann so nicht geladen werden, auch nicht nach einer Freigabe",
		"Der Name notes:1.0 am Ziel depot gehört dem Kanal plant-8.", "Kein Ziel nimmt das Artefakt homeless an.", "1 Name gehört einem anderen Kanal",
	}
	for name, p := range map[string]page{"case": {Body: view}, "confirm": {Body: confirmView{view, true, false}}} {
		_, raw := render(t, set, name, p)
		doc, err := html.Parse(strings.NewReader(raw))
		l.must(err)
		shown := screen{t: t, path: name, doc: doc}
		shown.shows(notes...)
		if note := shown.one("div", "role", "note"); len(all(note, "svg")) != 1 {
			t.Errorf("%s: the note has no shape", name)
		}
	}
	_, raw := render(t, set, "case", page{Body: view})
	if !strings.Contains(raw, "gehört dem Kanal plant-8: kann nicht geladen werden") {
		t.Error("the plan does not say whose name it is")
	}
}

func TestWhatIsAttached(t *testing.T) {
	l := newLab(t)
	l.trust()
	f := l.forge(nil)
	f.AddImage(t, "registry.example/line/tool", "1.4", testkit.ImageSpec{Seed: "tool"}, "amd64", "arm64")
	f.Reseal(t)
	c := l.receive(f)
	for lang, want := range map[string][]string{
		"de": {"2 Anhänge, 2 angezeigt", "Software-Stückliste", "Typ laut Absender", "Hängt an", "application/vnd.cyclonedx+json"},
		"en": {"2 attachments, 2 shown", "Type as the sender says", "Attached to", "application/vnd.cyclonedx+json"},
	} {
		l.loggedIn(auditor, lang).get(casePath(c.ID)).shows(want...)
	}
}

func TestSystemPage(t *testing.T) {
	l := newLab(t)
	b := l.loggedIn(auditor, "de")
	b.get("/system").shows(l.gate.ID(), "Dieses Gate vertraut noch niemandem", "packhof-gate trust init root-1.json", "Zustand")
	l.trust()
	s := b.get("/system")
	s.shows("Fingerabdruck in Wörtern", "release@example", "plant-7", "Schlüssel nach Rolle")
	status, err := l.gate.TrustStatus(t.Context(), gate.Console("root"))
	l.must(err)
	s.shows(strings.Join(status.Words, " "))
	checks, err := l.gate.Doctor(t.Context(), gate.Console("root"))
	l.must(err)
	for _, c := range checks {
		if name := german(t).word("doctor", c.Name); name == c.Name {
			t.Errorf("the check %q has no German name", name)
		}
	}
}
