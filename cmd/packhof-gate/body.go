package main

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// boundBody bounds the time in which a request has to arrive whole. It is not
// http.Server.ReadTimeout, which would also end a handler that works on.
func boundBody(next http.Handler, most time.Duration) http.Handler {
	unwanted := unwantedBody(next, unwantedTimeout)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Body == nil || r.Body == http.NoBody:
			next.ServeHTTP(w, r)
			return
		case r.Method == http.MethodGet || r.Method == http.MethodHead:
			unwanted.ServeHTTP(w, r)
			return
		}
		control := http.NewResponseController(w)
		if err := control.SetReadDeadline(time.Now().Add(most)); err != nil {
			panic(http.ErrAbortHandler) // a connection that cannot be bounded is not served
		}
		r.Body = &boundedBody{ReadCloser: r.Body, control: control}
		next.ServeHTTP(w, r)
	})
}

// boundedBody lifts the bound once the body is read.
type boundedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		if err := b.control.SetReadDeadline(time.Time{}); err != nil {
			return n, err
		}
	}
	return n, err
}

// unwantedBody answers requests whose body, if they have one, nobody reads. The
// answer does not wait for it, and the connection is closed once it has come
// whole or its time is over.
func unwantedBody(next http.Handler, most time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			// With this header the server does not read the body before it answers.
			w.Header().Set("Connection", "close")
			if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(most)); err != nil {
				panic(http.ErrAbortHandler) // a connection that cannot be bounded is not served
			}
		}
		next.ServeHTTP(w, r)
	})
}
