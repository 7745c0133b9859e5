package registry

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/packhof/packhof/internal/download"
)

// Attempts is how often a request is made, and how often whoever reads a Blob
// begins again when it breaks off.
const Attempts = 5

const maxRetryAfter = time.Minute

// Pause waits as long as a client should after its attempt number attempt
// (1, 2, …) failed: exponentially longer, with jitter.
func (c *Client) Pause(ctx context.Context, attempt int) error {
	return c.config.Sleep(ctx, download.BackOff(attempt))
}

// retrier makes a GET or HEAD again when the answer says that later may be
// better. After the last attempt the answer is handed on as it is.
type retrier struct {
	inner http.RoundTripper
	sleep func(context.Context, time.Duration) error
}

func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return r.inner.RoundTrip(req)
	}
	for attempt := 1; ; attempt++ {
		resp, err := r.inner.RoundTrip(req)
		if attempt == Attempts || req.Context().Err() != nil || !worthRetrying(resp, err) {
			return resp, err
		}
		wait := download.BackOff(attempt)
		if resp != nil {
			wait = max(wait, retryAfter(resp.Header))
			discard(resp)
		}
		if err := r.sleep(req.Context(), wait); err != nil {
			return nil, err
		}
	}
}

func worthRetrying(resp *http.Response, err error) bool {
	if err != nil {
		return !download.IsFinal(err)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// retryAfter is how long a server asks to be left alone, at most
// maxRetryAfter. A date counts from the server's own clock.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(max(0, min(seconds, int64(maxRetryAfter/time.Second)))) * time.Second
	}
	then, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, min(then.Sub(now), maxRetryAfter))
}

// discard reads a short rest, so that the connection can be used again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxMessage) // its end or an error: the body is not wanted
	_ = resp.Body.Close()                              // nothing was written through it
}
