package registry

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Ping asks a host whether it is a registry that lets us in, by a GET of its
// base with the credentials for it. It says nothing of what they allow, and
// uses no earlier log-in. A registry that does not let us in is a
// *RefusedError; the other errors are those of a Client.
func (c *Client) Ping(ctx context.Context, host string) error {
	p := ping{c: c, ref: Reference{Host: host}, doing: "the login at " + host}
	rt, err := p.logIn(ctx)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base(), nil)
	if err != nil {
		return err
	}
	resp, err := following(rt, p.ref).Do(req)
	if err != nil {
		return p.failure(ctx, err)
	}
	if resp.StatusCode == http.StatusOK {
		discard(resp)
		return nil
	}
	return p.refused(resp.StatusCode, bare(resp.Request.URL), message(resp))
}

// ping is one Ping.
type ping struct {
	c     *Client
	ref   Reference // only Host
	doing string
}

func (p ping) base() string {
	u := url.URL{Scheme: "https", Host: hostKey(p.ref.Host), Path: "/v2/"}
	if p.c.Plain(p.ref.Host) {
		u.Scheme = "http"
	}
	return u.String()
}

func (p ping) logIn(ctx context.Context) (http.RoundTripper, error) {
	at, err := name.NewRegistry(p.ref.Host, p.c.strict(p.ref.Host)...)
	if err != nil {
		return nil, malformed(p.ref.Host, "%w", err)
	}
	auth, err := authn.Resolve(ctx, p.c.config.Keychain, at)
	if err != nil {
		return nil, noCredentials(p.ref.Host, err)
	}
	rt, err := transport.NewWithContext(ctx, at, auth, p.c.base, nil)
	if err != nil {
		return nil, p.failure(ctx, err)
	}
	return rt, nil
}

// failure tells an answer, of the registry or of the service that gives out
// its tokens, from what kept one from coming.
func (p ping) failure(ctx context.Context, err error) error {
	if answered, ok := errors.AsType[*transport.Error](err); ok && ctx.Err() == nil {
		return p.refused(answered.StatusCode, requestURL(answered.Request), said(answered.Errors))
	}
	return p.c.failure(ctx, p.doing, p.ref, err)
}

// refused is what an answer other than 200 means: every registry has a base.
func (p ping) refused(status int, at string, said []string) error {
	if status < http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
		return noRegistry(p.ref.Host, "it answers %d %s to a GET of %s", status, http.StatusText(status), at)
	}
	return newRefused(p.doing, status, at, said)
}
