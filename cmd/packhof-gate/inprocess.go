package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// inProcess carries requests to a handler of this process. Answers stream:
// what the handler has written can be read before it ends.
type inProcess struct {
	handler http.Handler
	user    string
	running sync.WaitGroup
}

// RoundTrip implements http.RoundTripper.
func (t *inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := withPeer(r.Context(), t.user)
	served := r.Clone(ctx)
	served.RequestURI, served.RemoteAddr = r.URL.RequestURI(), "@"
	if served.Body == nil {
		served.Body = http.NoBody
	}
	body, out := io.Pipe()
	w := &pipeWriter{header: http.Header{}, out: out, begun: make(chan struct{})}
	t.running.Go(func() { t.serve(w, served) })
	select {
	case <-w.begun:
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), body.Close())
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status, Header: w.sent, Body: body, ContentLength: -1, Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// serve runs the handler. A crash of it ends the answer, as it would end a
// connection, and never looks like the end of a whole one.
func (t *inProcess) serve(w *pipeWriter, r *http.Request) {
	finished := false
	defer func() {
		if crash := recover(); crash != nil && !finished {
			w.WriteHeader(http.StatusInternalServerError)
			w.out.CloseWithError(fmt.Errorf("the request ended unexpectedly: %v", crash))
		}
	}()
	t.handler.ServeHTTP(w, r)
	finished = true
	w.WriteHeader(http.StatusOK)
	w.out.CloseWithError(nil)
}

// wait returns when every handler has ended.
func (t *inProcess) wait() { t.running.Wait() }

// pipeWriter is the handler's side of an answer.
type pipeWriter struct {
	header http.Header
	sent   http.Header // header as it was when the answer began
	status int
	out    *io.PipeWriter
	once   sync.Once
	begun  chan struct{}
}

// Header implements http.ResponseWriter.
func (w *pipeWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

// Write implements http.ResponseWriter.
func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(b)
}

// Flush implements http.Flusher: nothing is held back.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }
