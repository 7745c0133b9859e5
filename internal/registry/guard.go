package registry

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/packhof/packhof/internal/problem"
)

// guard sees every request that leaves: those of a Client, those by which
// go-containerregistry logs in, and every redirect of either.
//
// Plain HTTP goes only to hosts configured for it. go-containerregistry would
// fall back to it for loopback and private addresses by itself.
type guard struct {
	inner     http.RoundTripper
	hosts     *hosts
	userAgent string
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	if g.userAgent != "" {
		out.Header.Set("User-Agent", g.userAgent)
	}
	plain := g.hosts.plain(out.URL.Host)
	if from := redirectedFrom(req); from != nil {
		if err := checkRedirect(from, out); err != nil {
			return nil, err
		}
	} else if plain {
		// go-containerregistry tries HTTPS first, whatever it has been told.
		out.URL.Scheme = "http"
	}
	if out.URL.Scheme != "https" && !plain {
		return nil, plainRefused(out.URL.Host)
	}
	if err := fresh(out); err != nil {
		return nil, err
	}
	resp, err := g.inner.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	short(resp)
	return resp, nil
}

// fresh makes sure that a body is sent from its beginning: when a token is
// over, go-containerregistry gets another one and sends the same request
// again, whatever was read of its body.
func fresh(out *http.Request) (err error) {
	if b, ok := out.Body.(*uploadBody); ok {
		return b.begin()
	}
	if out.Body != nil && out.GetBody != nil {
		out.Body, err = out.GetBody()
	}
	return err
}

// redirectedFrom is where the server stands that sent us here; nil if none did.
func redirectedFrom(req *http.Request) *url.URL {
	if req.Response == nil || req.Response.Request == nil {
		return nil
	}
	return req.Response.Request.URL
}

// checkRedirect keeps credentials at the origin (scheme, host and port) that
// they were meant for; net/http by itself lets them go to other ports and
// subdomains.
func checkRedirect(from *url.URL, out *http.Request) error {
	if from.Scheme == "https" && out.URL.Scheme != "https" {
		return problem.New("registry/redirect-refused", "%s sends us on from https to %s", from.Host, out.URL.Scheme).
			With("from:  "+bare(from), "to:    "+bare(out.URL))
	}
	if origin(from) == origin(out.URL) {
		return nil
	}
	if out.Body != nil && out.Body != http.NoBody {
		return problem.New("registry/redirect-refused", "%s sends a request with a body on to %s", from.Host, out.URL.Host).
			With("from:  "+bare(from), "to:    "+bare(out.URL))
	}
	for _, header := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
		out.Header.Del(header)
	}
	return nil
}

func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// bare is a URL without what may be secret: signed queries and user names.
func bare(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
