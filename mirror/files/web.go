package files

import (
	"context"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/download"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/mirror"
)

// Host says how a web server may be reached.
type Host struct {
	PlainHTTP bool
	CA        []byte // PEM; added to what the system trusts
}

const (
	maxRedirects = 5
	maxAttempts  = 4
	firstPause   = 500 * time.Millisecond
	idleLimit    = time.Minute
)

// web fetches files over https.
type web struct {
	hosts   map[string]Host
	clients map[string]*http.Client // by host:port, for those with settings of their own
	other   *http.Client
	pause   func(context.Context, time.Duration) error
}

// newWeb makes the client of all addresses. A server that brings nothing for
// longer than stall is given up.
func newWeb(hosts map[string]Host, stall time.Duration) (*web, error) {
	w := &web{hosts: hosts, clients: map[string]*http.Client{}, pause: download.Sleep}
	w.other = w.client(nil, stall)
	for name, host := range hosts {
		if len(host.CA) == 0 {
			continue
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		if !pool.AppendCertsFromPEM(host.CA) {
			return nil, problem.New("config/bad-ca", "the ca of hosts.%s holds no certificate in PEM form", name)
		}
		w.clients[name] = w.client(pool, stall)
	}
	return w, nil
}

func (w *web) client(pool *x509.CertPool, stall time.Duration) *http.Client {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSClientConfig:       &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   30 * time.Second,
		ResponseHeaderTimeout: stall,
		DisableCompression:    true, // the digest is that of the bytes as they are
	}
	return &http.Client{Transport: download.Bound(transport, stall), CheckRedirect: w.checkRedirect}
}

// checkRedirect lets nobody lead us from https to http, nor to a host over
// plain http that the configuration does not allow. No credentials are ever
// sent, so there are none to lose.
func (w *web) checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if from := via[len(via)-1].URL; from.Scheme == "https" && next.URL.Scheme != "https" {
		return problem.New("source/plain-http", "%s sends us on from https to %s", from.Host, next.URL.Scheme).
			With("from:   "+bare(from.String()), "to:     "+bare(next.URL.String())).Hint("download it yourself and name it as  file:")
	}
	return w.checkScheme(next.URL)
}

func (w *web) checkScheme(u *url.URL) error {
	if u.Scheme == "https" || u.Scheme == "http" && (w.hosts[u.Host].PlainHTTP || w.hosts[u.Hostname()].PlainHTTP) {
		return nil
	}
	return problem.New("source/plain-http", "%s would be fetched without TLS", bare(u.String())).
		Hint("use https, or allow it in packhof.yaml: hosts.%s.plainHTTP: true", u.Host)
}

func (w *web) clientFor(u *url.URL) *http.Client {
	for _, name := range []string{u.Host, u.Hostname()} {
		if c, ok := w.clients[name]; ok {
			return c
		}
	}
	return w.other
}

// size asks for the length of a file without fetching it.
func (w *web) size(ctx context.Context, address string) (size int64, err error) {
	err = w.retry(ctx, func() error {
		response, err := w.request(ctx, http.MethodHead, address)
		if err != nil {
			return err
		}
		size = response.ContentLength
		return response.Body.Close()
	})
	if err == nil && size < 0 {
		err = problem.New("source/no-size", "%s does not say how long the file is", bare(address)).
			Hint("download it yourself and name it as  file:")
	}
	return size, err
}

// request gives a response with status 200, or an error that says what the
// server answered.
func (w *web) request(ctx context.Context, method, address string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, fmt.Errorf("the address %q is malformed: %w", bare(address), withoutAddress(err))
	}
	if err := w.checkScheme(r.URL); err != nil {
		return nil, err
	}
	response, err := w.clientFor(r.URL).Do(r)
	if err != nil {
		return nil, failure(ctx, r.URL, err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	return nil, errors.Join(refused(r.URL, response), response.Body.Close())
}

// failure says what an error means that came instead of an answer.
func failure(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("fetch %s: %w", bare(u.String()), context.Cause(ctx))
	}
	var coded *problem.Problem
	if errors.As(err, &coded) { // a redirect that checkRedirect refused
		return coded
	}
	because := withoutAddress(err)
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return problem.New("source/tls-unknown-authority", "the certificate of %s is signed by an authority that is not trusted", u.Host).
			With("found:  "+because.Error()).Hint("name the authority in packhof.yaml: hosts.%s.ca: <PEM file>", u.Host)
	}
	return problem.New("source/unreachable", "%s cannot be reached: %w", u.Host, because).
		Hint("check the network, the proxy (HTTPS_PROXY) and the address %s", bare(u.String()))
}

func refused(u *url.URL, response *http.Response) error {
	code, hint := "source/failed", "try again later, or ask the operator of the server"
	switch response.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		code, hint = "source/not-found", "correct the url in packhof.yaml"
	case http.StatusUnauthorized, http.StatusForbidden:
		code, hint = "auth/required", "download it yourself and name it as  file:"
	case http.StatusTooManyRequests:
		code, hint = "source/rate-limited", "try again later"
	}
	return problem.New(code, "%s answered %s", bare(u.String()), response.Status).Hint("%s", hint)
}

// retry repeats what may go better the next time, with growing pauses.
func (w *web) retry(ctx context.Context, try func() error) error {
	wait := firstPause
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || attempt == maxAttempts || !worthRetrying(err) {
			return err
		}
		if ended := w.pause(ctx, wait); ended != nil {
			return errors.Join(ended, err)
		}
		wait *= 2
	}
}

func worthRetrying(err error) bool {
	var coded *problem.Problem
	if errors.As(err, &coded) {
		return coded.Code() == "source/unreachable" || coded.Code() == "source/failed" || coded.Code() == "source/rate-limited"
	}
	return false
}

// fetchURL brings the one file behind the address of p into the store. It is
// the only thing asked for, and content by its digest.
func (s *Source) fetchURL(ctx context.Context, p mirror.Pinned, into *cas.Store) error {
	want := *p.File
	if ok, err := into.Has(want.Digest, want.Size); ok || err != nil {
		return err
	}
	if p.Transport != bundle.TransportPlain && !strings.HasPrefix(p.From, "https://") {
		return problem.New("source/plain-http", "%s would be fetched without TLS, and the lock says otherwise", bare(p.From)).
			With("locked:  "+string(p.Transport), "now:     "+string(bundle.TransportPlain)).Hint("packhof plan")
	}
	item := s.progress.Start("fetch "+want.Path, want.Size)
	err := s.web.retry(ctx, func() error { return s.web.fetch(ctx, p.From, want, into, item) })
	item.Done(err)
	return err
}

func (w *web) fetch(ctx context.Context, address string, want bundle.File, into *cas.Store, item mirror.Item) error {
	response, err := w.request(ctx, http.MethodGet, address)
	if err != nil {
		return err
	}
	body := &watched{ctx: ctx, r: response.Body, item: item}
	what, sum := bare(address), sha512.New()
	err = into.Put(ctx, body, want.Digest, want.Size, what, sum)
	err = errors.Join(err, response.Body.Close())
	var corrupt *cas.CorruptError
	var broken *download.BrokenOffError
	switch {
	case err == nil:
		return into.SetNote(mirror.NoteSHA512, want.Digest, []byte(hex.EncodeToString(sum.Sum(nil))))
	case errors.As(err, &corrupt):
		return problem.New("source/wrong-content", "%s is not the file whose sha256 packhof.yaml names: %w", what, err).
			With(corrupt.Evidence()...).Hint("compare the sha256 with the publisher's; do not use the file until it is clear")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &broken):
		return problem.New("source/unreachable", "the download of %s %w", what, broken).With(broken.Evidence()...).Hint("try again")
	}
	return err
}
