// Package download is what all clients that speak HTTP have in common: it ends
// downloads that stand still, and says whether and when to try again.
//
// It never makes a request, never looks into what arrives and knows no host: it
// only says where a body broke off, and how long to wait.
package download

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// BrokenOffError is a body that ended before its end. Beginning again may
// help. Its text goes on where "the download of x" ends.
type BrokenOffError struct {
	Got     int64         // bytes that arrived
	Silence time.Duration // how long nothing came, where that is why; else zero
	Cause   error
}

func (e *BrokenOffError) Error() string {
	if e.Silence > 0 {
		return "stands still"
	}
	return fmt.Sprintf("broke off: %v", e.Cause)
}

// Evidence says how far it came.
func (e *BrokenOffError) Evidence() []string {
	if e.Silence > 0 {
		return []string{fmt.Sprintf("nothing came for %s after %d bytes", e.Silence, e.Got)}
	}
	return []string{fmt.Sprintf("got:   %d bytes", e.Got)}
}

func (e *BrokenOffError) Unwrap() error { return e.Cause }

// Bound is inner, with every body that it gives bounded: one that brings
// nothing for longer than stall ends with a *BrokenOffError, as does one whose
// reading fails for any other reason but the end of the request's context;
// that is given as its cause. The time that the reader takes does not count.
// Until a body is closed, it holds what belongs to its request.
func Bound(inner http.RoundTripper, stall time.Duration) http.RoundTripper {
	return &bound{inner: inner, stall: stall}
}

type bound struct {
	inner http.RoundTripper
	stall time.Duration
}

func (b *bound) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	resp, err := b.inner.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = newBody(req.Context(), resp.Body, cancel, b.stall)
	return resp, nil
}

// body is what a server sends.
type body struct {
	ctx    context.Context // the caller's
	r      io.ReadCloser
	cancel context.CancelFunc // of the request
	stall  time.Duration
	timer  *time.Timer // runs only while we wait for the server, not for the reader
	seen   int64

	mu      sync.Mutex
	stalled bool
}

func newBody(ctx context.Context, r io.ReadCloser, cancel context.CancelFunc, stall time.Duration) *body {
	b := &body{ctx: ctx, r: r, cancel: cancel, stall: stall}
	b.timer = time.AfterFunc(stall, b.giveUp)
	b.timer.Stop()
	return b
}

func (b *body) giveUp() {
	b.mu.Lock()
	b.stalled = true
	b.mu.Unlock()
	b.cancel()
}

func (b *body) gaveUp() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stalled
}

func (b *body) Read(p []byte) (int, error) {
	b.timer.Reset(b.stall)
	n, err := b.r.Read(p)
	b.timer.Stop()
	b.seen += int64(n)
	switch {
	case err == nil, err == io.EOF:
		return n, err
	case b.ctx.Err() != nil:
		return n, context.Cause(b.ctx)
	case b.gaveUp():
		return n, &BrokenOffError{Got: b.seen, Silence: b.stall, Cause: err}
	}
	return n, &BrokenOffError{Got: b.seen, Cause: err}
}

func (b *body) Close() error {
	err := b.r.Close()
	b.cancel()
	return err
}
