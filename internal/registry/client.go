// Package registry speaks with OCI registries (the OCI distribution
// specification 1.1, and Docker's before it): references, credentials, TLS,
// retries, redirects and errors that say what to do. Both shores use it: a
// Client reads, and a Writer, which it gives for one repository, writes.
//
// It never looks into a manifest or a blob, never follows the urls of a
// descriptor, and speaks plain HTTP to a host only where the configuration
// says so. What is written, and in which order, is the business of the caller.
package registry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/packhof/packhof/internal/download"
)

// Config is how a Client behaves. The zero value reads public registries.
type Config struct {
	// Hosts has what is special about a host, by "host" or "host:port" as
	// references write it.
	Hosts map[string]Host
	// Keychain finds credentials; nil means as docker and podman do: config
	// file (DOCKER_CONFIG), credential helpers, auth.json.
	Keychain authn.Keychain
	// UserAgent is the program and its version.
	UserAgent string
	// Sleep waits between attempts; nil means a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Stall is how long a download may bring nothing, and an upload may not
	// get on; 0 means a minute.
	Stall time.Duration
	// Patience is how long a registry may take to answer a request that it has
	// in full; 0 means a minute. One that keeps its blobs in an object store
	// copies an upload there before it answers.
	Patience time.Duration
	// Bulk speaks HTTP/1.1 only: each upload has a connection to itself, and
	// none waits for the flow control of HTTP/2.
	Bulk bool
}

// Host is what is special about one registry.
type Host struct {
	PlainHTTP bool   // speak HTTP without TLS
	CA        []byte // PEM; trusted for this host beside the system's authorities
}

// Client reads from registries. It is safe for use by several goroutines.
type Client struct {
	config Config
	hosts  *hosts
	base   http.RoundTripper // guard, retries and TLS; no credentials

	mu       sync.Mutex
	sessions map[string]*session
}

// New makes a client. An error means that a host's CA holds no certificate.
func New(config Config) (*Client, error) {
	if config.Keychain == nil {
		config.Keychain = authn.DefaultKeychain
	}
	if config.Sleep == nil {
		config.Sleep = download.Sleep
	}
	if config.Stall == 0 {
		config.Stall = time.Minute
	}
	if config.Patience == 0 {
		config.Patience = time.Minute
	}
	h, err := newHosts(config.Hosts, tuning{patience: config.Patience, bulk: config.Bulk})
	if err != nil {
		return nil, err
	}
	bounded := download.Bound(h, config.Stall)
	base := &guard{inner: &retrier{inner: bounded, sleep: config.Sleep}, hosts: h, userAgent: config.UserAgent}
	return &Client{config: config, hosts: h, base: base, sessions: map[string]*session{}}, nil
}

// Plain reports whether the host is spoken to without TLS.
func (c *Client) Plain(host string) bool { return c.hosts.plain(host) }

// CloseIdleConnections closes the connections that nothing uses.
func (c *Client) CloseIdleConnections() { c.hosts.closeIdle() }

// The actions that a RoundTripper can be asked for.
const (
	Pull = transport.PullScope
	Push = transport.PushScope // and pull
)

// RoundTripper is a transport that is logged in at the repository of ref, as
// far as credentials are known, and guards, retries (only GET and HEAD) and
// trusts as this client does. go-containerregistry's remote package takes it
// by remote.WithTransport and adds nothing to it.
func (c *Client) RoundTripper(ctx context.Context, ref Reference, action string) (http.RoundTripper, error) {
	return c.session(ref.Host+"/"+ref.Repository+"?"+action).open(ctx, func() (http.RoundTripper, error) { return c.logIn(ctx, ref, action) })
}

// session gives the log-in of a name, made once.
func (c *Client) session(key string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sessions[key]
	if !ok {
		s = &session{turn: make(chan struct{}, 1)}
		c.sessions[key] = s
	}
	return s
}

// Repository is ref's repository as go-containerregistry wants it, its scheme
// set as configured.
func (c *Client) Repository(ref Reference) (name.Repository, error) {
	return name.NewRepository(ref.Host+"/"+ref.Repository, c.strict(ref.Host)...)
}

func (c *Client) strict(host string) []name.Option {
	opts := []name.Option{name.StrictValidation}
	if c.Plain(host) {
		opts = append(opts, name.Insecure)
	}
	return opts
}

// logIn logs in for an action on one repository, and for reading from others.
func (c *Client) logIn(ctx context.Context, ref Reference, action string, also ...Reference) (http.RoundTripper, error) {
	repository, err := c.Repository(ref)
	if err != nil {
		return nil, malformed(ref.String(), "%w", err)
	}
	scopes := []string{repository.Scope(action)}
	for _, other := range also {
		from, err := c.Repository(other)
		if err != nil {
			return nil, malformed(other.String(), "%w", err)
		}
		scopes = append(scopes, from.Scope(Pull))
	}
	auth, err := authn.Resolve(ctx, c.config.Keychain, repository)
	if err != nil {
		return nil, noCredentials(ref.Host, err)
	}
	rt, err := transport.NewWithContext(ctx, repository.Registry, auth, c.base, scopes)
	if err != nil {
		return nil, c.failure(ctx, "the first request to "+ref.Host, ref, err)
	}
	return rt, nil
}

// session is one log-in, made once however many ask for it at the same time.
// A log-in that failed is tried again by the next one.
type session struct {
	turn chan struct{}
	rt   http.RoundTripper
}

func (s *session) open(ctx context.Context, logIn func() (http.RoundTripper, error)) (http.RoundTripper, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.rt != nil {
		return s.rt, nil
	}
	rt, err := logIn()
	s.rt = rt
	return rt, err
}
