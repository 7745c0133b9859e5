package web

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/html"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

// Accounts of the lab; each has the password of its own name.
const (
	officer  = "anna"   // the first account: officer and admin
	operator = "otto"   // receives and releases
	auditor  = "aurel"  // reads
	reviewer = "renate" // reads and decides
)

func passwordOf(account string) string { return "the password of " + account }

// lab is a real gate in a temporary folder, served over TLS.
type lab struct {
	t          *testing.T
	gate       *gate.Gate
	clock      *testkit.Clock
	server     *httptest.Server
	background sync.WaitGroup
	failures   failures // of releases in the background
	shelf      *shelf
	judge      *inProcess
	dir        string
	needs      int // approvals of what has findings
	serial     int64
	previous   *bundle.Digest
	made       map[string]bool // accounts besides the first
	actors     map[string]gate.Actor
}

// failures are errors that tests expect.
type failures struct {
	mu   sync.Mutex
	list []error
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, err)
}

func (f *failures) take() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.list = nil
	return list
}

// inProcess judges without a child: what the child is for, its own tests
// prove. While it is broken it reaches no verdict.
type inProcess struct {
	policy *policy.Policy
	broken atomic.Bool
}

func (j *inProcess) Evaluate(ctx context.Context, in *policy.Input) (*policy.Decision, error) {
	if j.broken.Load() {
		return policy.FailedDecision("", "", policy.Failure{Message: "out of time"}), nil
	}
	return j.policy.Evaluate(ctx, in)
}

// shelf is a destination whose content is the gate's own store, as the depot's
// is: it reads everything once, and has nothing to write. What it does at the
// step that breaks names fails.
type shelf struct {
	breaks atomic.Pointer[string]
}

// Steps of a shelf that can be broken.
const (
	breakPlan   = "plan"
	breakName   = "names"
	breakVerify = "verify"
	breakNone   = ""
)

func (s *shelf) breakAt(step string) { s.breaks.Store(&step) }

func (s *shelf) at(step string) error {
	if broken := s.breaks.Load(); broken != nil && *broken == step {
		return problem.New("destination/unreachable", "the shelf does not answer: %s", step).With("url:  https://shelf.example/").Hint("look after the shelf")
	}
	return nil
}

func (s *shelf) Plan(_ context.Context, r *gate.Release) ([]gate.Action, error) {
	actions := []gate.Action{}
	for _, name := range r.Names() {
		actions = append(actions, gate.Action{Name: name, Effect: gate.EffectCreate})
	}
	return actions, s.at(breakPlan)
}

func (s *shelf) Put(ctx context.Context, r *gate.Release, a bundle.Artifact) (gate.Receipt, error) {
	blob, err := r.Open(ctx, a.Root.Digest)
	if err != nil {
		return gate.Receipt{}, err
	}
	if _, err := io.Copy(io.Discard, blob); err != nil {
		return gate.Receipt{}, err
	}
	return gate.Receipt{Location: "shelf", Kept: 1}, blob.Close()
}

func (s *shelf) Publish(context.Context, *gate.Release, []gate.Name) error { return s.at(breakName) }

func (s *shelf) Verify(context.Context, *gate.Release, bundle.Artifact) error {
	return s.at(breakVerify)
}

// libraryPolicy compiles the library once for all tests of the package.
var libraryPolicy = sync.OnceValues(func() (*policy.Policy, error) {
	source, err := policy.Library()
	if err != nil {
		return nil, err
	}
	return policy.Compile(context.Background(), source)
})

// newLab lets the test run beside others: each has a gate of its own.
func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	rules, err := libraryPolicy()
	l := &lab{
		t: t, clock: testkit.NewClock(testkit.Noon()), made: map[string]bool{}, actors: map[string]gate.Actor{}, needs: 1,
		shelf: &shelf{}, judge: &inProcess{policy: rules}, dir: filepath.Join(t.TempDir(), "data"),
	}
	l.must(err)
	_, err = gate.Init(t.Context(), l.dir, gate.InitParams{
		Owner: "plant", Hosts: []string{"127.0.0.1"}, Account: officer, Password: []byte(passwordOf(officer)), Now: testkit.Noon(), Program: "packhof-gate test",
	})
	l.must(err)
	l.open()
	t.Cleanup(func() { l.must(l.gate.Close()) })
	l.serve()
	return l
}

// open starts the gate with what the lab's fields say.
func (l *lab) open() {
	l.t.Helper()
	var err error
	l.gate, err = gate.Open(l.t.Context(), gate.Options{
		Dir: l.dir, Clock: l.clock.Now, Program: "packhof-gate test", Policy: l.judge.policy, Judge: l.judge,
		Destinations: []gate.Destination{{Name: gate.DepotName, Location: "https://gate.example/", Accepts: bundle.Kinds(), Naming: gate.DefaultNaming(), Sink: l.shelf}},
		Approvals:    gate.Approvals{Allow: 1, Review: l.needs},
	})
	l.must(err)
}

// account makes an account of the lab when a test first needs it.
func (l *lab) account(name string) {
	l.t.Helper()
	role, ok := map[string]gate.Role{operator: gate.RoleOperator, auditor: gate.RoleAuditor, reviewer: gate.RoleReviewer}[name]
	if !ok || l.made[name] {
		return
	}
	l.made[name] = true
	l.must(l.gate.AddUser(l.t.Context(), gate.Console("root"), name, []gate.Role{role}, []byte(passwordOf(name))))
}

func (l *lab) options() Options {
	return Options{
		Clock: l.clock.Now, Version: "packhof-gate test", Secure: true,
		Background: func(task func(context.Context) error) {
			l.background.Go(func() {
				if err := task(context.Background()); err != nil {
					l.failures.add(err)
				}
			})
		},
	}
}

func (l *lab) serve() {
	handler, err := New(l.gate, l.options())
	l.must(err)
	l.server = httptest.NewTLSServer(handler)
	l.t.Cleanup(func() {
		l.server.Close()
		l.background.Wait()
		for _, err := range l.failures.take() {
			l.t.Error(err)
		}
	})
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// trust makes the gate believe in the signer of forged bundles.
func (l *lab) trust() {
	l.t.Helper()
	status, err := l.gate.TrustStatus(l.t.Context(), gate.Console("root"))
	l.must(err)
	if status.Initialised {
		return
	}
	f := testkit.Forge(l.t, nil)
	_, err = l.gate.InitTrust(l.t.Context(), gate.Console("root"), f.Root.Bytes, f.Revoked.Bytes)
	l.must(err)
}

// forge makes the next bundle of the channel, for this gate.
func (l *lab) forge(change func(*bundle.Manifest)) *testkit.Forged {
	l.t.Helper()
	l.serial++
	f := testkit.Forge(l.t, func(m *bundle.Manifest) {
		m.Audience, m.Serial, m.Previous = []string{l.gate.ID()}, l.serial, l.previous
		if change != nil {
			change(m)
		}
	})
	return f
}

// write puts a bundle on a medium.
func (l *lab) write(f *testkit.Forged) string {
	l.t.Helper()
	path := filepath.Join(l.t.TempDir(), "plant-7-000001.packhof.tar")
	l.must(os.WriteFile(path, f.Volume, 0o600))
	return path
}

// receive takes a bundle in, carried by somebody at the console. A refusal is
// a case as well.
func (l *lab) receive(f *testkit.Forged) *gate.Case {
	l.t.Helper()
	c, err := l.gate.Receive(l.t.Context(), gate.Console("carrier"), l.write(f), nil)
	if c == nil {
		l.t.Fatal(err)
	}
	if c.State != gate.NotGenuine {
		digest := f.Head.Digest()
		l.previous = &digest
	}
	return c
}

// waiting is a case that waits for a decision.
func (l *lab) waiting() *gate.Case {
	l.t.Helper()
	l.trust()
	c := l.receive(l.forge(func(m *bundle.Manifest) { m.Note = "First line\nsecond <b>line</b>" }))
	if c.State != gate.Awaiting {
		l.t.Fatalf("the case is %s: %+v", c.State, c.Problem)
	}
	return c
}

// stranger is a bundle that nobody whom the gate trusts has signed.
func (l *lab) stranger() *testkit.Forged {
	l.t.Helper()
	f := l.forge(nil)
	signer, err := testkit.NewSigner("stranger")
	l.must(err)
	f.Signer = signer
	l.must(f.Seal(l.t.Context(), f.Head.Manifest))
	return f
}

// browser is a client with cookies that stays where it is redirected to.
type browser struct {
	*lab
	client *http.Client
	lang   string
}

func (l *lab) browser(lang string) *browser {
	l.t.Helper()
	jar, err := cookiejar.New(nil)
	l.must(err)
	client := *l.server.Client()
	client.Jar = jar
	return &browser{l, &client, lang}
}

// loggedIn is a browser in which somebody has logged in.
func (l *lab) loggedIn(account, lang string) *browser {
	l.t.Helper()
	l.account(account)
	b := l.browser(lang)
	if s := b.post("/login", url.Values{"account": {account}, "password": {passwordOf(account)}}); s.status != http.StatusOK || s.path != "/cases" {
		l.t.Fatalf("%s cannot log in: %d at %s", account, s.status, s.path)
	}
	return b
}

// screen is an answer as a browser sees it.
type screen struct {
	t      *testing.T
	status int
	path   string // after redirects
	header http.Header
	raw    string
	doc    *html.Node
}

func (b *browser) get(path string) screen {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.server.URL+path, nil)
	b.must(err)
	return b.do(request)
}

func (b *browser) post(path string, form url.Values) screen {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.server.URL+path, strings.NewReader(form.Encode()))
	b.must(err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.do(request)
}

func (b *browser) do(request *http.Request) screen {
	b.t.Helper()
	request.Header.Set("Accept-Language", b.lang)
	response, err := b.client.Do(request)
	b.must(err)
	raw, err := io.ReadAll(response.Body)
	b.must(err)
	b.must(response.Body.Close())
	doc, err := html.Parse(bytes.NewReader(raw))
	b.must(err)
	checkHeadings(b.t, request.URL.Path, doc)
	return screen{b.t, response.StatusCode, response.Request.URL.Path, response.Header, string(raw), doc}
}

// checkHeadings looks whether the headings of a screen are a tree: one h1, and
// below it no level left out.
func checkHeadings(t testing.TB, name string, doc *html.Node) {
	t.Helper()
	last := 0
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || len(n.Data) != 2 || n.Data[0] != 'h' || n.Data[1] < '1' || n.Data[1] > '6' {
			continue
		}
		level := int(n.Data[1] - '0')
		if level > last+1 || level == 1 && last > 0 {
			t.Errorf("%s: h%d %q follows h%d", name, level, text(n), last)
		}
		last = level
	}
}

// all finds the elements with a tag and, given in pairs, attributes.
func all(n *html.Node, tag string, attributes ...string) []*html.Node {
	var found []*html.Node
	for child := range n.Descendants() {
		if child.Type != html.ElementNode || child.Data != tag {
			continue
		}
		fits := true
		for i := 0; i < len(attributes); i += 2 {
			fits = fits && attribute(child, attributes[i]) == attributes[i+1]
		}
		if fits {
			found = append(found, child)
		}
	}
	return found
}

func attribute(n *html.Node, name string) string { return attributes(n)[name] }

func attributes(n *html.Node) map[string]string {
	found := map[string]string{}
	for _, a := range n.Attr {
		found[a.Key] = a.Val
	}
	return found
}

// one finds the only element with a tag and attributes.
func (s screen) one(tag string, attributes ...string) *html.Node {
	s.t.Helper()
	found := all(s.doc, tag, attributes...)
	if len(found) != 1 {
		s.t.Fatalf("%d elements <%s> %q in %d %s:\n%s", len(found), tag, attributes, s.status, s.path, text(s.doc))
	}
	return found[0]
}

// text is what can be read in a node, with single spaces.
func text(n *html.Node) string {
	var words strings.Builder
	for child := range n.Descendants() {
		if child.Type == html.TextNode {
			words.WriteString(child.Data)
		}
	}
	return strings.Join(strings.Fields(words.String()), " ")
}

// shows fails unless all of the texts can be read on the screen.
func (s screen) shows(texts ...string) {
	s.t.Helper()
	have := text(s.doc)
	for _, want := range texts {
		if !strings.Contains(have, want) {
			s.t.Errorf("%s does not show %q:\n%s", s.path, want, have)
		}
	}
}

// api speaks JSON with a handler.
type api struct {
	*lab
	handler  http.Handler
	account  string // with its password, by HTTP Basic; "" for none
	password string
}

func (l *lab) consoleAPI(user string) *api {
	l.t.Helper()
	handler, err := NewConsole(l.gate, l.options(), func(*http.Request) string { return user })
	l.must(err)
	return &api{lab: l, handler: handler}
}

func (l *lab) networkAPI(account string) *api {
	l.t.Helper()
	l.account(account)
	handler, err := New(l.gate, l.options())
	l.must(err)
	return &api{lab: l, handler: handler, account: account, password: passwordOf(account)}
}

// as is the same API, with the credentials of an account.
func (a *api) as(account string) *api {
	return &api{lab: a.lab, handler: a.handler, account: account, password: passwordOf(account)}
}

// call sends a document, or none for nil.
func (a *api) call(method, path string, body any) *httptest.ResponseRecorder {
	a.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		a.must(err)
		in = bytes.NewReader(b)
	}
	request := httptest.NewRequestWithContext(a.t.Context(), method, apiRoot+path, in)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return a.send(request)
}

func (a *api) send(request *http.Request) *httptest.ResponseRecorder {
	if a.account != "" {
		request.SetBasicAuth(a.account, a.password)
	}
	out := httptest.NewRecorder()
	a.handler.ServeHTTP(out, request)
	return out
}

// read decodes an answer with a status.
func read[T any](t *testing.T, r *httptest.ResponseRecorder, status int) T {
	t.Helper()
	var v T
	if r.Code != status {
		t.Fatalf("status %d, want %d: %s", r.Code, status, r.Body)
	}
	if err := json.Unmarshal(r.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v: %s", err, r.Body)
	}
	return v
}

// refused fails unless an answer is a problem with this code.
func refused(t *testing.T, r *httptest.ResponseRecorder, status int, code string) problemDocument {
	t.Helper()
	p := read[problemDocument](t, r, status)
	if p.Code != code || p.Status != status || p.Detail == "" || r.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%+v, want the code %s", p, code)
	}
	return p
}

// lastLine gives the outcome of a stream, and how much progress came before.
func lastLine(t *testing.T, r *httptest.ResponseRecorder) (last line, progress int) {
	t.Helper()
	if r.Code != http.StatusOK || r.Header().Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d %s: %s", r.Code, r.Header(), r.Body)
	}
	lines := strings.Split(strings.TrimSuffix(r.Body.String(), "\n"), "\n")
	for i, text := range lines {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if l.Progress != nil && i < len(lines)-1 {
			progress++
			continue
		}
		last = l
	}
	return last, progress
}
