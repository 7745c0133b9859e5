package registry

import (
	"net/http"
	"strings"
	"testing"
)

// echo is a transport that shows what would have left.
type echo struct{ sent *http.Request }

func (e *echo) RoundTrip(req *http.Request) (*http.Response, error) {
	e.sent = req
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestT51CredentialsStayAtTheOrigin(t *testing.T) {
	secrets := []string{"Authorization", "Cookie", "Proxy-Authorization"}
	for _, c := range []struct {
		from, to string
		kept     bool
		refused  bool
	}{
		{from: "https://r.example/a", to: "https://r.example/b", kept: true},
		{from: "https://r.example/a", to: "https://R.example:443/b", kept: true},
		{from: "https://r.example/a", to: "https://r.example:8443/b"},
		{from: "https://r.example/a", to: "https://cdn.r.example/b"},
		{from: "https://r.example/a", to: "https://other.example/b"},
		{from: "http://plain.example/a", to: "http://plain.example:80/b", kept: true},
		{from: "http://plain.example/a", to: "https://plain.example/b"},
		{from: "https://r.example/a", to: "http://r.example/b", refused: true},
		{from: "https://r.example/a", to: "http://plain.example/b", refused: true},
		{from: "http://plain.example/a", to: "http://r.example/b", refused: true},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			h, err := newHosts(map[string]Host{"plain.example": {PlainHTTP: true}, "plain.example:80": {PlainHTTP: true}}, tuning{})
			if err != nil {
				t.Fatal(err)
			}
			out := new(echo)
			g := &guard{inner: out, hosts: h, userAgent: "packhof/1"}
			req := request(t, c.to)
			req.Response = &http.Response{Request: request(t, c.from)}
			for _, name := range secrets {
				req.Header.Set(name, "secret")
			}
			_, err = g.RoundTrip(req)
			if c.refused {
				if err == nil || out.sent != nil {
					t.Errorf("error %v, sent %v; want it refused", err, out.sent)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range secrets {
				if kept := out.sent.Header.Get(name) != ""; kept != c.kept {
					t.Errorf("%s kept: %t, want %t", name, kept, c.kept)
				}
			}
			if got := out.sent.Header.Get("User-Agent"); got != "packhof/1" {
				t.Errorf("user agent %q", got)
			}
		})
	}
}

func TestRedirectWithABodyGoesNowhereElse(t *testing.T) {
	h, err := newHosts(nil, tuning{})
	if err != nil {
		t.Fatal(err)
	}
	out := new(echo)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://other.example/token", strings.NewReader("refresh_token=secret"))
	if err != nil {
		t.Fatal(err)
	}
	req.Response = &http.Response{Request: request(t, "https://r.example/token")}
	if _, err := (&guard{inner: out, hosts: h}).RoundTrip(req); err == nil || out.sent != nil {
		t.Errorf("error %v; want the body to stay", err)
	}
}

func TestHTTPSIsNotDowngradedByARedirect(t *testing.T) {
	h, err := newHosts(map[string]Host{"plain.example": {PlainHTTP: true}}, tuning{})
	if err != nil {
		t.Fatal(err)
	}
	out := new(echo)
	req := request(t, "https://plain.example/b")
	req.Response = &http.Response{Request: request(t, "https://r.example/a")}
	if _, err := (&guard{inner: out, hosts: h}).RoundTrip(req); err != nil || out.sent.URL.Scheme != "https" {
		t.Errorf("sent to %v, %v; want https kept", out.sent, err)
	}
}
