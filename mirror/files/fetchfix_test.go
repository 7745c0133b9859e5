package files

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/download"
	"github.com/packhof/packhof/internal/testkit"
)

func gets(r *http.Request) bool { return r.Method == http.MethodGet }

// stallAfter sends the head and n bytes, and then nothing until the client
// leaves.
func stallAfter(m testkit.Match, content []byte, n int) testkit.Fault {
	return testkit.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !m(r) {
			return false
		}
		_, _ = w.Write(content[:n])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	})
}

// short gives s the patience of a test, for servers that bring nothing.
func short(t *testing.T, s *Source, fs *testkit.FileServer) {
	t.Helper()
	w, err := newWeb(map[string]Host{fs.Host(): {CA: fs.CAPEM()}}, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	w.pause = s.web.pause
	s.web = w
}

// overHTTP2 makes s speak HTTP/2, whose errors are of other types.
func overHTTP2(_ *testing.T, s *Source, fs *testkit.FileServer) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(fs.CAPEM())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	s.web.clients[fs.Host()] = &http.Client{Transport: download.Bound(transport, idleLimit), CheckRedirect: s.web.checkRedirect}
}

func TestDownloadsThatBreakOffAreBegunAgain(t *testing.T) {
	content := testkit.Bytes("driver", 100_000)
	for name, c := range map[string]struct {
		prepare func(*testing.T, *Source, *testkit.FileServer)
		fault   testkit.Fault
		text    string // "" where it comes out well
	}{
		"stalls once":         {short, stallAfter(testkit.FirstN(1, gets), content, 1000), ""},
		"stalls always":       {short, stallAfter(gets, content, 1000), "stands still"},
		"no answer once":      {short, testkit.Hang(testkit.FirstN(1, gets)), ""},
		"no answer":           {short, testkit.Hang(gets), "cannot be reached"},
		"HTTP/2: reset once":  {overHTTP2, testkit.CutAfter(testkit.FirstN(1, gets), 50_000), ""},
		"HTTP/2: reset again": {overHTTP2, testkit.CutAfter(gets, 50_000), "broke off: stream error"},
	} {
		t.Run(name, func(t *testing.T) {
			fs, s, pauses := server(t, content)
			c.prepare(t, s, fs)
			store := storeOf(t)
			p, err := s.Resolve(t.Context(), ask(fs.URL()+"/dir/driver.run", content), store)
			if err != nil {
				t.Fatal(err)
			}
			fs.SetFault(c.fault)
			err = s.Fetch(t.Context(), p, store)
			if c.text == "" {
				if err != nil || len(*pauses) < 1 {
					t.Errorf("%v after %d pauses", err, len(*pauses))
				}
				return
			}
			wantsCode(t, name, err, "source/unreachable")
			if !strings.Contains(err.Error(), c.text) || len(*pauses) != maxAttempts-1 {
				t.Errorf("%v after %d pauses; want %q after %d", err, len(*pauses), c.text, maxAttempts-1)
			}
		})
	}
}

func TestTheLockedTransportHolds(t *testing.T) {
	content := []byte("driver")
	asked := 0
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; _, _ = w.Write(content) }))
	t.Cleanup(plain.Close)
	host := strings.TrimPrefix(plain.URL, "http://")
	s, _ := impatient(t, map[string]Host{host: {PlainHTTP: true}})
	store := storeOf(t)
	p, err := s.Resolve(t.Context(), ask(plain.URL+"/f?token=secret", content), store)
	if err != nil {
		t.Fatal(err)
	}
	asked = 0
	p.Transport = bundle.TransportTLS
	err = s.Fetch(t.Context(), p, store)
	wantsCode(t, "locked with TLS", err, "source/plain-http")
	var hint interface{ Remedy() string }
	if !errors.As(err, &hint) || hint.Remedy() != "packhof plan" || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	if asked > 0 {
		t.Errorf("%d requests went out without TLS", asked)
	}
	if _, err := store.PutBytes(t.Context(), content); err != nil {
		t.Fatal(err)
	}
	if err := s.Fetch(t.Context(), p, store); err != nil {
		t.Errorf("nothing has to be transferred: %v", err)
	}
}

func TestHTTPSIsNeverLeftForHTTP(t *testing.T) {
	content := []byte("driver")
	asked := 0
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; _, _ = w.Write(content) }))
	t.Cleanup(plain.Close)
	fs, s, _ := server(t, content)
	s.web.hosts[strings.TrimPrefix(plain.URL, "http://")] = Host{PlainHTTP: true}
	store := storeOf(t)
	p, err := s.Resolve(t.Context(), ask(fs.URL()+"/dir/driver.run", content), store)
	if err != nil {
		t.Fatal(err)
	}
	fs.SetFault(redirect(gets, plain.URL+"/f?token=secret"))
	err = s.Fetch(t.Context(), p, store)
	wantsCode(t, "to a host that may be plain", err, "source/plain-http")
	wantNoSecret(t, err)
	if asked > 0 {
		t.Errorf("%d requests went out without TLS", asked)
	}
}

// everything is all that a person would see of err.
func everything(err error) string {
	text := err.Error()
	var more interface {
		Evidence() []string
		Remedy() string
	}
	if errors.As(err, &more) {
		text += "\n" + strings.Join(more.Evidence(), "\n") + "\n" + more.Remedy()
	}
	return text
}

func wantNoSecret(t *testing.T, err error) {
	t.Helper()
	if text := everything(err); strings.Contains(text, "secret") {
		t.Errorf("shows a secret:\n%s", text)
	}
}

func TestErrorsShowNoQuery(t *testing.T) {
	content := testkit.Bytes("driver", 10_000)
	signed := "?X-Signature=secret"
	noLength := testkit.Answer(func(w http.ResponseWriter, _ *http.Request) bool { w.(http.Flusher).Flush(); return true })
	for name, c := range map[string]struct {
		fault testkit.Fault
		trust bool
	}{
		"404":               {testkit.Refuse(testkit.Everything, 404, ""), true},
		"no length":         {noLength, true},
		"wrong bytes":       {testkit.Corrupt(gets), true},
		"cut":               {testkit.CutAfter(gets, 100), true},
		"dropped":           {testkit.Answer(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }), true},
		"redirects":         {redirect(testkit.Everything, "/dir/driver.run"+signed), true},
		"redirect to http":  {redirect(testkit.Everything, "http://secret@127.0.0.1:1/"+signed), true},
		"redirect nowhere":  {redirect(testkit.Everything, "https://127.0.0.1:1/%zz"+signed), true},
		"unknown authority": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			fs, s, _ := server(t, content)
			if !c.trust {
				s, _ = impatient(t, nil)
			}
			fs.SetFault(c.fault)
			store := storeOf(t)
			p, err := s.Resolve(t.Context(), ask(fs.URL()+"/dir/driver.run"+signed, content), store)
			if err == nil {
				err = s.Fetch(t.Context(), p, store)
			}
			if err == nil {
				t.Fatal("no error to look at")
			}
			wantNoSecret(t, err)
		})
	}
	s, _ := impatient(t, nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, address := range []string{"http://files.example/" + signed, "https://\x7f/" + signed, "https://x/%zz" + signed, "https://files.example/" + signed} {
		_, err := s.Resolve(ended, ask(address, content), storeOf(t))
		if err == nil {
			t.Fatalf("resolved %q", address)
		}
		wantNoSecret(t, err)
	}
	fs, s, _ := server(t, content)
	p, err := s.Resolve(t.Context(), ask(fs.URL()+"/dir/driver.run"+signed, content), storeOf(t))
	if err != nil {
		t.Fatal(err)
	}
	p.Root.Digest = cas.DigestOf(nil)
	err = s.Fetch(t.Context(), p, storeOf(t))
	wantsCode(t, "another root", err, "source/moved")
	wantNoSecret(t, err)
}

func TestAFetchAsksForTheFileOnly(t *testing.T) {
	content := testkit.Bytes("driver", 10_000)
	for name, settled := range map[string]bool{"settled": true, "open": false} {
		t.Run(name, func(t *testing.T) {
			fs, s, _ := server(t, content)
			p, err := s.Resolve(t.Context(), ask(fs.URL()+"/dir/driver.run", content), storeOf(t))
			if err != nil {
				t.Fatal(err)
			}
			p.Settled = settled
			fs.ForgetRequests()
			store := storeOf(t)
			for range 2 {
				if err := s.Fetch(t.Context(), p, store); err != nil {
					t.Fatal(err)
				}
			}
			if asked := fs.Requests(); len(asked) != 1 || asked[0].Method != http.MethodGet {
				t.Errorf("asked for %v, want the file once", asked)
			}
		})
	}
}
