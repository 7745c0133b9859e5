package registry_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/packhof/packhof/internal/registry"
	"github.com/packhof/packhof/internal/testkit"
)

func ping(t *testing.T, r *testkit.Registry, k keychain) error {
	t.Helper()
	return newClient(t, registry.Config{
		Hosts: map[string]registry.Host{r.Host(): {PlainHTTP: r.CAPEM() == nil, CA: r.CAPEM()}}, Keychain: k,
	}).Ping(t.Context(), r.Host())
}

// TestPing looks at a registry and touches no repository.
func TestPing(t *testing.T) {
	var host string
	tokens := &expiringTokens{expires: func(*http.Request) bool { return false }}
	for name, options := range map[string][]testkit.Option{
		"open": nil, "open, over TLS": {testkit.WithTLS()},
		"by Basic, over TLS": {testkit.WithTLS(), testkit.WithBasicAuth("robot", "secret")},
		"by a token":         {testkit.WithFault(tokens.fault(func() string { return host }))},
	} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t, options...)
			host = r.Host()
			if err := ping(t, r, keychain{"robot", "secret"}); err != nil {
				t.Error(err)
			}
			for _, q := range r.Requests() {
				if q.Method != http.MethodGet || q.Path != "/v2/" && q.Path != "/token" || strings.Contains(q.Query, "scope") {
					t.Errorf("asked for %s %s?%s", q.Method, q.Path, q.Query)
				}
			}
		})
	}
}

// at answers one path with a status and nothing else.
func at(path string, status int) testkit.Option {
	return testkit.WithFault(testkit.Refuse(func(q *http.Request) bool { return q.URL.Path == path }, status, ""))
}

// wantsToken asks for a token of this registry's own service.
func wantsToken() testkit.Option {
	return testkit.WithFault(testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if q.URL.Path != "/v2/" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+q.Host+`/token",service="here"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}))
}

func TestPingThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		options []testkit.Option
		code    string
		says    []string
	}{
		"a wrong password":        {[]testkit.Option{testkit.WithBasicAuth("robot", "other")}, "registry/refused", []string{"the login at", "401 Unauthorized", "UNAUTHORIZED", "/v2/"}},
		"no token for us":         {[]testkit.Option{at("/token", 401), wantsToken()}, "registry/refused", []string{"401 Unauthorized", "/token"}},
		"it is out of order":      {[]testkit.Option{at("/v2/", 503)}, "registry/refused", []string{"503 Service Unavailable"}},
		"it is something else":    {[]testkit.Option{at("/v2/", 404)}, "registry/protocol", []string{"404 Not Found", "/v2/"}},
		"it answers with nothing": {[]testkit.Option{at("/v2/", 204)}, "registry/protocol", []string{"204 No Content"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t, c.options...)
			said := wantCode(t, ping(t, r, keychain{"robot", "secret"}), c.code)
			for _, part := range append(c.says, r.Host()) {
				if !strings.Contains(said, part) {
					t.Errorf("no %q in\n%s", part, said)
				}
			}
			if strings.Contains(said, "secret") {
				t.Errorf("the password is in\n%s", said)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		r := testkit.NewRegistry(t)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		wantCode(t, ping(t, r, keychain{}), "registry/unreachable")
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := newClient(t, registry.Config{}).Ping(ctx, "registry.example"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// endless answers one path with a status and a body that never ends, and
// counts what of it went out.
func endless(path string, status int, sent *atomic.Int64) testkit.Option {
	return testkit.WithFault(testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if q.URL.Path != path {
			return false
		}
		w.WriteHeader(status)
		chunk := bytes.Repeat([]byte("x"), 64<<10)
		for sent.Load() < tooMuch {
			sent.Add(int64(len(chunk))) // before: whoever reads it may be done before we are
			if _, err := w.Write(chunk); err != nil {
				break
			}
		}
		return true
	}))
}

// tooMuch is more than fits between us and a server that nobody reads from.
const tooMuch = 64 << 20

// TestAnswersAreCut reads little of what an endless answer says.
func TestAnswersAreCut(t *testing.T) {
	for name, c := range map[string]struct {
		path    string
		status  int
		options []testkit.Option
		code    string
	}{
		"log-in":             {"/v2/", 401, nil, "registry/not-found"},
		"base":               {"/v2/", 200, nil, "registry/not-found"},
		"base, out of order": {"/v2/", 400, nil, "registry/refused"},
		"token refused":      {"/token", 401, []testkit.Option{wantsToken()}, "registry/auth-required"},
		"token":              {"/token", 200, []testkit.Option{wantsToken()}, "registry/protocol"},
		"manifest refused":   {"/v2/a/manifests/1", 403, nil, "registry/forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			r := testkit.NewRegistry(t, append(c.options, endless(c.path, c.status, &sent))...)
			_, _, err := newClient(t, plain(r)).Read(t.Context(), registry.Reference{Host: r.Host(), Repository: "a", Tag: "1"}, limit)
			wantCode(t, err, c.code)
			if n := sent.Load(); n == 0 || n >= tooMuch {
				t.Errorf("the registry sent %d bytes", n)
			}
		})
	}
}
