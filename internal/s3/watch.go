package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// stalledError is a request that made no progress until its answer began.
type stalledError struct{ silence time.Duration }

func (e *stalledError) Error() string { return fmt.Sprintf("nothing moves for %s", e.silence) }

var errStalled = errors.New("stalled")

const (
	// assembling is how many times longer than anything else a server may take
	// to put the parts of an object together, or to copy one: it reads and
	// writes all of it.
	assembling = 10
	// maxDocument bounds every answer that is not an object, in bytes; a page of
	// a listing has at most 1000 entries.
	maxDocument = 16 << 20
)

// watch ends requests that stand still, be it that the server takes no more
// bytes or that it does not begin to answer. Of answers, it bounds the size;
// download.Bound watches their progress.
type watch struct {
	inner     http.RoundTripper
	stall     time.Duration
	userAgent string
}

func (w *watch) RoundTrip(req *http.Request) (*http.Response, error) {
	patience := w.stall
	if isAssembly(req) {
		patience *= assembling
	}
	// When all is well the context ends with the one of download.Bound, which
	// ends when the answer is closed.
	ctx, cancel := context.WithCancelCause(req.Context())
	t := &tripwire{patience: patience, timer: time.AfterFunc(patience, func() { cancel(errStalled) })}
	out := req.Clone(ctx)
	if w.userAgent != "" {
		out.Header.Set("User-Agent", w.userAgent)
	}
	if out.Body != nil {
		out.Body = &sentBody{ReadCloser: out.Body, progress: t}
	}
	resp, err := w.inner.RoundTrip(out)
	t.disarm()
	if err != nil {
		stalled := context.Cause(ctx) == errStalled
		cancel(nil)
		if stalled {
			return nil, &stalledError{silence: patience}
		}
		return nil, err
	}
	if !isObject(req) {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxDocument), resp.Body}
	}
	return resp, nil
}

// isAssembly recognises the completion of an upload and copies.
func isAssembly(req *http.Request) bool {
	return req.Method == http.MethodPost && req.URL.Query().Has("uploadId") || req.Header.Get("X-Amz-Copy-Source") != ""
}

// isObject tells the reading of an object from requests answered by a document.
func isObject(req *http.Request) bool {
	return req.Method == http.MethodGet && req.URL.RawQuery == ""
}

// tripwire is a timer that progress resets until it is disarmed; the transport
// may go on reading a body after that.
type tripwire struct {
	patience time.Duration
	mu       sync.Mutex
	disarmed bool
	timer    *time.Timer
}

func (t *tripwire) progress() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.disarmed {
		t.timer.Reset(t.patience)
	}
}

func (t *tripwire) disarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.disarmed = true
	t.timer.Stop()
}

// sentBody is what we send; it lies in memory, so that each reading means that
// the server took what was read before.
type sentBody struct {
	io.ReadCloser
	progress *tripwire
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.progress.progress()
	return b.ReadCloser.Read(p)
}
