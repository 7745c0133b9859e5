package registry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/packhof/packhof/internal/registry"
	"github.com/packhof/packhof/internal/testkit"
)

// sendOn answers requests for blobs with a redirect to where(request).
func sendOn(status int, where func(*http.Request) string) testkit.Fault {
	return testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if !testkit.Blobs(q) || q.URL.Query().Has("here") {
			return false
		}
		http.Redirect(w, q, where(q), status)
		return true
	})
}

func TestT51RedirectKeepsCredentialsAtHome(t *testing.T) {
	for name, tls := range map[string]bool{"http": false, "https": true} {
		t.Run(name, func(t *testing.T) {
			opts := []testkit.Option{testkit.WithBasicAuth("anna", "geheim")}
			cdnOpts := []testkit.Option{}
			if tls {
				opts, cdnOpts = append(opts, testkit.WithTLS()), append(cdnOpts, testkit.WithTLS())
			}
			home, cdn := testkit.NewRegistry(t, opts...), testkit.NewRegistry(t, cdnOpts...)
			_, layer, size := push(t, home, "app:1")
			push(t, cdn, "app:1")
			home.SetFault(sendOn(http.StatusTemporaryRedirect, func(q *http.Request) string { return cdn.URL() + q.URL.Path + "?signature=secret" }))
			c := newClient(t, registry.Config{Hosts: map[string]registry.Host{
				home.Host(): {PlainHTTP: !tls, CA: home.CAPEM()}, cdn.Host(): {PlainHTTP: !tls, CA: cdn.CAPEM()},
			}})
			logIn(t, home.Host(), "anna", "geheim")

			readBlob(t, c, ref(t, home.Host()+"/app:1"), layer, size)
			sent := cdn.Requests()
			if len(sent) != 1 {
				t.Fatalf("%d requests at the other server, want 1", len(sent))
			}
			for _, header := range []string{"Authorization", "Cookie"} {
				if got := sent[0].Header.Get(header); got != "" {
					t.Errorf("%s: %s went to another origin", header, got)
				}
			}

			// An error there does not repeat the signature.
			cdn.SetFault(testkit.Refuse(testkit.Blobs, http.StatusForbidden, ""))
			_, err := c.Blob(t.Context(), ref(t, home.Host()+"/app:1"), layer, size)
			if text := wantCode(t, err, "registry/forbidden"); strings.Contains(text, "secret") {
				t.Errorf("the signature is shown: %s", text)
			}
		})
	}
}

func TestRedirectWithinTheOriginStaysLoggedIn(t *testing.T) {
	r := testkit.NewRegistry(t, testkit.WithBasicAuth("anna", "geheim"))
	_, layer, size := push(t, r, "app:1")
	r.SetFault(sendOn(http.StatusFound, func(q *http.Request) string { return q.URL.Path + "?here" }))
	c := newClient(t, plain(r))
	logIn(t, r.Host(), "anna", "geheim")
	readBlob(t, c, ref(t, r.Host()+"/app:1"), layer, size)
}

func TestRedirectsThatAreRefused(t *testing.T) {
	secure, clear := testkit.NewRegistry(t, testkit.WithTLS()), testkit.NewRegistry(t)
	_, layer, size := push(t, secure, "app:1")
	for name, c := range map[string]struct {
		plain bool
		where func(*http.Request) string
		code  string
	}{
		"to http":                 {false, func(q *http.Request) string { return clear.URL() + q.URL.Path }, "registry/redirect-refused"},
		"to http that is allowed": {true, func(q *http.Request) string { return clear.URL() + q.URL.Path }, "registry/redirect-refused"},
		"in a circle":             {false, func(q *http.Request) string { return q.URL.Path }, "registry/redirect-refused"},
	} {
		t.Run(name, func(t *testing.T) {
			secure.SetFault(sendOn(http.StatusFound, c.where))
			client := newClient(t, registry.Config{Hosts: map[string]registry.Host{
				secure.Host(): {CA: secure.CAPEM()}, clear.Host(): {PlainHTTP: c.plain},
			}})
			_, err := client.Blob(t.Context(), ref(t, secure.Host()+"/app:1"), layer, size)
			wantCode(t, err, c.code)
			if got := clear.Requests(); len(got) != 0 {
				t.Errorf("%d requests went out in the clear", len(got))
			}
		})
	}
}

func TestRedirectFromPlainToOtherPlainHost(t *testing.T) {
	home, other := testkit.NewRegistry(t), testkit.NewRegistry(t)
	_, layer, size := push(t, home, "app:1")
	home.SetFault(sendOn(http.StatusFound, func(q *http.Request) string { return other.URL() + q.URL.Path }))
	_, err := newClient(t, plain(home)).Blob(t.Context(), ref(t, home.Host()+"/app:1"), layer, size)
	wantIn(t, wantCode(t, err, "registry/plain-http"), other.Host())
	if got := other.Requests(); len(got) != 0 {
		t.Errorf("%d requests went to a host that nobody allowed", len(got))
	}
}

// tokens is a registry of one blob behind a token server, which the CNCF
// registry does not bring with it. Both stand on the same host.
type tokens struct {
	mu      sync.Mutex
	issued  []string // what came with requests for a token
	blobs   []string // Authorization of requests for the blob
	sendsTo string
}

func (s *tokens) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case q.URL.Path == "/token":
		user, password, _ := q.BasicAuth()
		s.issued = append(s.issued, user+":"+password+" "+q.URL.Query().Get("scope"))
		_, _ = io.WriteString(w, `{"token":"t0k3n"}`)
	case q.Header.Get("Authorization") != "Bearer t0k3n":
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+q.Host+`/token",service="here"`)
		w.WriteHeader(http.StatusUnauthorized)
	default:
		s.blobs = append(s.blobs, q.Header.Get("Authorization"))
		http.Redirect(w, q, s.sendsTo+q.URL.Path, http.StatusTemporaryRedirect)
	}
}

func TestTokenStaysAtHome(t *testing.T) {
	cdn := testkit.NewRegistry(t)
	_, layer, size := push(t, cdn, "app:1")
	home := &tokens{sendsTo: cdn.URL()}
	server := httptest.NewServer(home)
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	c := newClient(t, registry.Config{
		Hosts:    map[string]registry.Host{host: {PlainHTTP: true}, cdn.Host(): {PlainHTTP: true}},
		Keychain: keychain{"anna", "geheim"},
	})
	readBlob(t, c, ref(t, host+"/app:1"), layer, size)

	home.mu.Lock()
	defer home.mu.Unlock()
	if len(home.issued) != 1 || home.issued[0] != "anna:geheim repository:app:pull" {
		t.Errorf("tokens were asked for with %v", home.issued)
	}
	if len(home.blobs) != 1 {
		t.Errorf("%d requests with the token, want 1", len(home.blobs))
	}
	for _, q := range cdn.Requests() {
		if got := q.Header.Get("Authorization"); got != "" {
			t.Errorf("%s went to another origin", got)
		}
	}
}

type keychain struct{ user, password string }

func (k keychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return authn.FromConfig(authn.AuthConfig{Username: k.user, Password: k.password}), nil
}
