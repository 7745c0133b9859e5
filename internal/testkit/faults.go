package testkit

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// Fault stands between a client and a real server and spoils some answers.
type Fault func(next http.Handler) http.Handler

// Match tells which requests a fault is about.
type Match func(*http.Request) bool

// Everything matches every request.
func Everything(*http.Request) bool { return true }

// Blobs matches the reading of a registry's blobs.
func Blobs(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha256:")
}

// Manifests matches the reading of a registry's manifests, by tag or digest.
func Manifests(r *http.Request) bool {
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	return reading && strings.Contains(r.URL.Path, "/manifests/")
}

// PathContains matches by a part of the path, such as a digest.
func PathContains(part string) Match {
	return func(r *http.Request) bool { return strings.Contains(r.URL.Path, part) }
}

// FirstN matches the first n requests that m matches, and none after them.
func FirstN(n int, m Match) Match {
	left := new(atomic.Int64)
	left.Store(int64(n))
	return func(r *http.Request) bool { return m(r) && left.Add(-1) >= 0 }
}

// Answer asks f first; true means that f has answered and the server is not to
// see the request.
func Answer(f func(http.ResponseWriter, *http.Request) bool) Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !f(w, r) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// Refuse answers with a status such as 429 or 503 and an empty body.
// retryAfter is the value of the Retry-After header; "" sends none.
func Refuse(m Match, status int, retryAfter string) Fault {
	return Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !m(r) {
			return false
		}
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		return true
	})
}

// Hang does not answer until the client gives up or the server is closed.
func Hang(m Match) Fault {
	return Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !m(r) {
			return false
		}
		// Only a server that has read the body notices that its client left.
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	})
}

// CutAfter sends the real answer's header and the first n bytes of its body,
// then drops the connection. A body of n bytes or fewer arrives whole.
func CutAfter(m Match, n int64) Fault {
	return spoil(m, func(w http.ResponseWriter) http.ResponseWriter {
		return &cutWriter{ResponseWriter: w, left: n}
	})
}

// Corrupt sends the real answer with the first byte of its body changed: the
// size is right, the digest is not.
func Corrupt(m Match) Fault {
	return spoil(m, func(w http.ResponseWriter) http.ResponseWriter {
		return &corruptWriter{ResponseWriter: w}
	})
}

func spoil(m Match, wrap func(http.ResponseWriter) http.ResponseWriter) Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if m(r) {
				w = wrap(w)
			}
			next.ServeHTTP(w, r)
		})
	}
}

type cutWriter struct {
	http.ResponseWriter
	left int64
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if int64(len(p)) <= w.left {
		w.left -= int64(len(p))
		return w.ResponseWriter.Write(p)
	}
	// Whatever the writing and flushing say, the connection is lost next.
	_, _ = w.ResponseWriter.Write(p[:w.left])
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

type corruptWriter struct {
	http.ResponseWriter
	done bool
}

func (w *corruptWriter) Write(p []byte) (int, error) {
	if w.done || len(p) == 0 {
		return w.ResponseWriter.Write(p)
	}
	w.done = true
	spoilt := append([]byte{p[0] ^ 0xff}, p[1:]...)
	return w.ResponseWriter.Write(spoilt)
}
