package files

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/download"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/mirror/sourcetest"
)

type quiet struct{}

func (quiet) Start(string, int64) mirror.Item { return quiet{} }
func (quiet) Advance(int64)                   {}
func (quiet) Done(error)                      {}

// impatient is a source that notes its pauses instead of making them.
func impatient(t *testing.T, hosts map[string]Host) (*Source, *[]time.Duration) {
	t.Helper()
	s, err := New(t.TempDir(), hosts, quiet{})
	if err != nil {
		t.Fatal(err)
	}
	var pauses []time.Duration
	s.web.pause = func(ctx context.Context, d time.Duration) error {
		pauses = append(pauses, d)
		return ctx.Err()
	}
	return s, &pauses
}

func storeOf(t *testing.T) *cas.Store {
	t.Helper()
	store, err := cas.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func ask(url string, content []byte) mirror.Request {
	return mirror.Request{Kind: bundle.Files, Name: "driver", Version: "1", From: url, Digest: cas.DigestOf(content)}
}

func wantsCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	got := problem.CodeOf(err)
	if err == nil || got != code {
		t.Errorf("%s: %v (%s), want %s", what, err, got, code)
	}
}

// server serves one file and gives a source that trusts it.
func server(t *testing.T, content []byte, opts ...testkit.Option) (*testkit.FileServer, *Source, *[]time.Duration) {
	t.Helper()
	fs := testkit.NewFileServer(t, fstest.MapFS{"dir/driver.run": {Data: content}}, opts...)
	s, pauses := impatient(t, map[string]Host{fs.Host(): {CA: fs.CAPEM()}})
	return fs, s, pauses
}

func TestConformanceOverHTTPS(t *testing.T) {
	content := testkit.Bytes("driver", 4<<20)
	fsys := fstest.MapFS{"driver.run": {Data: content}}
	fs := testkit.NewFileServer(t, fsys)
	s, _ := impatient(t, map[string]Host{fs.Host(): {CA: fs.CAPEM()}})
	gets := func() int {
		n := 0
		for _, r := range fs.Requests() {
			if r.Method == http.MethodGet {
				n++
			}
		}
		return n
	}
	request := ask(fs.URL()+"/driver.run", content)
	sourcetest.Test(t, sourcetest.Case{
		Source: named{s, &request}, Request: request, Unknown: ask(fs.URL()+"/none", content), Fetches: gets,
		Asked: func() int { return len(fs.Requests()) },
		Mutate: func(*testing.T) {
			other := []byte("another driver")
			fsys["driver.run"].Data = other
			request.Digest = cas.DigestOf(other) // what the publisher names now
		},
	})
}

// named takes the digest that is named at the moment.
type named struct {
	*Source
	request *mirror.Request
}

func (n named) Resolve(ctx context.Context, want mirror.Request, into *cas.Store) (mirror.Pinned, error) {
	want.Digest = n.request.Digest
	return n.Source.Resolve(ctx, want, into)
}

func TestFetchOverHTTPS(t *testing.T) {
	content := testkit.Bytes("driver", 100_000)
	fs, s, _ := server(t, content)
	store := storeOf(t)
	p, err := s.Resolve(t.Context(), ask(fs.URL()+"/dir/driver.run?token=x", content), store)
	if err != nil {
		t.Fatal(err)
	}
	if p.Transport != bundle.TransportTLS || p.Verified != bundle.VerifiedDigest || p.File == nil || p.File.Path != "driver.run" {
		t.Errorf("pinned %+v", p)
	}
	if err := s.Fetch(t.Context(), p, storeOf(t)); err != nil { // a store that has never seen it
		t.Errorf("from the lock alone: %v", err)
	}
	for _, r := range fs.Requests() {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("sent %v", r.Header)
		}
	}
}

func TestFaultsOverHTTPS(t *testing.T) {
	content := testkit.Bytes("driver", 100_000)
	get := func(r *http.Request) bool { return r.Method == http.MethodGet }
	for name, c := range map[string]struct {
		fault  testkit.Fault
		code   string // "" where it comes out well
		tries  int    // GET requests
		pauses int
	}{
		"as it should be":       {nil, "", 1, 0},
		"404":                   {testkit.Refuse(get, 404, ""), "source/not-found", 1, 0},
		"410":                   {testkit.Refuse(get, 410, ""), "source/not-found", 1, 0},
		"401":                   {testkit.Refuse(get, 401, ""), "auth/required", 1, 0},
		"403":                   {testkit.Refuse(get, 403, ""), "auth/required", 1, 0},
		"204":                   {testkit.Refuse(get, 204, ""), "source/failed", 4, 3},
		"429 always":            {testkit.Refuse(get, 429, "3"), "source/rate-limited", 4, 3},
		"429 then well":         {testkit.Refuse(testkit.FirstN(1, get), 429, ""), "", 2, 1},
		"503 twice, then well":  {testkit.Refuse(testkit.FirstN(2, get), 503, ""), "", 3, 2},
		"500 always":            {testkit.Refuse(get, 500, ""), "source/failed", 4, 3},
		"cut once":              {testkit.CutAfter(testkit.FirstN(1, get), 50_000), "", 2, 1},
		"cut always":            {testkit.CutAfter(get, 50_000), "source/unreachable", 4, 3},
		"wrong bytes":           {testkit.Corrupt(get), "source/wrong-content", 1, 0},
		"shorter":               {sends(get, content[:50_000]), "source/wrong-content", 1, 0},
		"longer":                {sends(get, append(append([]byte{}, content...), 'x')), "source/wrong-content", 1, 0},
		"an endless file":       {endless(get), "source/wrong-content", 1, 0},
		"redirect to http":      {redirect(get, "http://example.invalid/x"), "source/plain-http", 1, 0},
		"redirect to a file":    {redirect(get, "file:///etc/passwd"), "source/plain-http", 1, 0},
		"redirect to itself":    {redirect(get, "/dir/driver.run"), "source/unreachable", 4 * (maxRedirects + 1), 3},
		"redirect once, here":   {redirect(testkit.FirstN(1, get), "/dir/driver.run"), "", 2, 0},
		"redirect with a query": {redirect(testkit.FirstN(1, get), "/dir/driver.run?x"), "", 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			fs, s, pauses := server(t, content)
			store := storeOf(t)
			p, err := s.Resolve(t.Context(), ask(fs.URL()+"/dir/driver.run", content), store)
			if err != nil {
				t.Fatal(err)
			}
			fs.SetFault(c.fault)
			fs.ForgetRequests()
			err = s.Fetch(t.Context(), p, store)
			if c.code == "" && err != nil {
				t.Error(err)
			}
			if c.code != "" {
				wantsCode(t, name, err, c.code)
			}
			if got := len(fs.Requests()); got != c.tries || len(*pauses) != c.pauses {
				t.Errorf("%d requests and %d pauses, want %d and %d", got, len(*pauses), c.tries, c.pauses)
			}
			for i, d := range *pauses {
				if d != firstPause<<i {
					t.Errorf("pause %d is %s", i, d)
				}
			}
			if ok, err := store.Has(cas.DigestOf(content), int64(len(content))); ok != (c.code == "") || err != nil {
				t.Errorf("the store has the file: %v, %v", ok, err)
			}
			if left, err := os.ReadDir(store.Dir() + "/ingest"); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func sends(m testkit.Match, b []byte) testkit.Fault {
	return testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !m(r) {
			return false
		}
		_, _ = w.Write(b) // the client may hang up
		return true
	})
}

func endless(m testkit.Match) testkit.Fault {
	return testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !m(r) {
			return false
		}
		for b := make([]byte, 1<<16); ; {
			if _, err := w.Write(b); err != nil {
				return true
			}
		}
	})
}

func redirect(m testkit.Match, to string) testkit.Fault {
	return testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !m(r) {
			return false
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
		return true
	})
}

func TestResolveOverHTTPS(t *testing.T) {
	content := []byte("driver")
	fs, s, _ := server(t, content)
	for name, c := range map[string]struct {
		fault testkit.Fault
		code  string
	}{
		"404":             {testkit.Refuse(testkit.Everything, 404, ""), "source/not-found"},
		"no length":       {testkit.Answer(func(w http.ResponseWriter, _ *http.Request) bool { w.(http.Flusher).Flush(); return true }), "source/no-size"},
		"503 always":      {testkit.Refuse(testkit.Everything, 503, ""), "source/failed"},
		"redirect to tcp": {redirect(testkit.Everything, "http://127.0.0.1:1/"), "source/plain-http"},
	} {
		fs.SetFault(c.fault)
		_, err := s.Resolve(t.Context(), ask(fs.URL()+"/dir/driver.run", content), storeOf(t))
		wantsCode(t, name, err, c.code)
	}
	for _, path := range []string{"", "/", "/dir/..", "/%2e%2e"} {
		fs.SetFault(sends(testkit.Everything, content))
		if p, err := s.Resolve(t.Context(), ask(fs.URL()+path, content), storeOf(t)); err == nil && strings.ContainsAny(p.File.Path, "/") {
			t.Errorf("%q became the file %q", path, p.File.Path)
		}
	}
}

func TestCertificateAuthorities(t *testing.T) {
	content := []byte("driver")
	fs := testkit.NewFileServer(t, fstest.MapFS{"f": {Data: content}})
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	otherCA := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})
	hostname, _, _ := strings.Cut(fs.Host(), ":")
	for name, c := range map[string]struct {
		hosts map[string]Host
		code  string
	}{
		"with its own, by host:port": {map[string]Host{fs.Host(): {CA: fs.CAPEM()}}, ""},
		"with its own, by host":      {map[string]Host{hostname: {CA: fs.CAPEM()}}, ""},
		"without":                    {nil, "source/tls-unknown-authority"},
		"with another one":           {map[string]Host{fs.Host(): {CA: otherCA}}, "source/tls-unknown-authority"},
		"for another host":           {map[string]Host{"example.com": {CA: fs.CAPEM()}}, "source/tls-unknown-authority"},
		"plain allowed instead":      {map[string]Host{fs.Host(): {PlainHTTP: true}}, "source/tls-unknown-authority"},
	} {
		s, pauses := impatient(t, c.hosts)
		_, err := s.Resolve(t.Context(), ask(fs.URL()+"/f", content), storeOf(t))
		if c.code == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		} else if c.code != "" {
			wantsCode(t, name, err, c.code)
		}
		if len(*pauses) > 0 {
			t.Errorf("%s: asked again what will not change", name)
		}
	}
	_, err := New("", map[string]Host{"x": {CA: []byte("no PEM")}}, quiet{})
	wantsCode(t, "no certificate", err, "config/bad-ca")
}

func TestPlainHTTP(t *testing.T) {
	content := []byte("driver")
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	t.Cleanup(plain.Close)
	s, _ := impatient(t, nil)
	_, err := s.Resolve(t.Context(), ask(plain.URL+"/f", content), storeOf(t))
	wantsCode(t, "not allowed", err, "source/plain-http")
	host := strings.TrimPrefix(plain.URL, "http://")
	s, _ = impatient(t, map[string]Host{host: {PlainHTTP: true}})
	store := storeOf(t)
	p, err := s.Resolve(t.Context(), ask(plain.URL+"/f", content), store)
	if err != nil || p.Transport != bundle.TransportPlain {
		t.Fatalf("allowed: %+v, %v", p, err)
	}
	if err := s.Fetch(t.Context(), p, store); err != nil {
		t.Error(err)
	}
	plain.Close()
	if err := s.Fetch(t.Context(), p, store); err != nil {
		t.Errorf("what the store has is asked for again: %v", err)
	}
	wantsCode(t, "nobody there", s.Fetch(t.Context(), p, storeOf(t)), "source/unreachable")
	_, err = s.Resolve(t.Context(), ask("http://\x7f/", content), storeOf(t))
	if err == nil {
		t.Error("resolved no address")
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	content := []byte("driver")
	fs, s, _ := server(t, content)
	fs.SetFault(testkit.Refuse(testkit.Everything, 503, ""))
	ctx, cancel := context.WithCancel(t.Context())
	s.web.pause = func(ctx context.Context, _ time.Duration) error { cancel(); return download.Sleep(ctx, time.Hour) }
	_, err := s.Resolve(ctx, ask(fs.URL()+"/dir/driver.run", content), storeOf(t))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("stopped while it waits: %v", err)
	}
}
