package testkit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"
)

// Option changes how a server of the kit is started.
type Option func(*options)

type options struct {
	tls            bool
	user, password string
	faults         []Fault
	storage        string
}

// WithTLS serves HTTPS with a certificate of a private authority, whose PEM is
// CAPEM, valid for 127.0.0.1 and localhost. The file server always does.
func WithTLS() Option { return func(o *options) { o.tls = true } }

// WithBasicAuth answers 401 to every request without this user and password.
func WithBasicAuth(user, password string) Option {
	return func(o *options) { o.user, o.password = user, password }
}

// WithFault puts f in front of the server; of several, the first one given
// sees a request first.
func WithFault(f Fault) Option { return func(o *options) { o.faults = append(o.faults, f) } }

// WithStorage makes the registry keep its content in dir instead of in memory.
// The file server ignores it.
func WithStorage(dir string) Option { return func(o *options) { o.storage = dir } }

func collect(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Request is what a client asked for.
type Request struct {
	Method string
	Path   string // decoded, without the query
	Query  string // raw, without the question mark
	Header http.Header
}

// server is a listener on 127.0.0.1, a record of what was asked, and whatever
// faults stand in front of the handler.
type server struct {
	listener net.Listener
	http     *http.Server
	handler  http.Handler // the real one, without faults
	caPEM    []byte
	client   *http.Client
	served   chan error

	mu       sync.Mutex
	faulty   http.Handler // what answers: handler behind the faults
	requests []Request
	active   int           // requests that are being answered
	idle     chan struct{} // closed when there are none any more; nil before Close
}

// serve starts a server on a free port of 127.0.0.1.
func serve(handler http.Handler, o options) (*server, error) {
	s := &server{handler: handler, faulty: behind(handler, o.faults), served: make(chan error, 1)}
	var pool *x509.CertPool
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.answer),
		ReadHeaderTimeout: 10 * time.Second,
		// The chatter about handshakes that a test breaks on purpose.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	if o.tls {
		certificate, caPEM, err := privateCA()
		if err != nil {
			return nil, err
		}
		pool = x509.NewCertPool()
		pool.AppendCertsFromPEM(caPEM)
		s.caPEM = caPEM
		s.http.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	}
	s.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool},
		ForceAttemptHTTP2: true,
	}}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on 127.0.0.1: %w", err)
	}
	s.listener = listener
	go func() {
		if o.tls {
			s.served <- s.http.ServeTLS(listener, "", "")
		} else {
			s.served <- s.http.Serve(listener)
		}
	}()
	return s, nil
}

func behind(handler http.Handler, faults []Fault) http.Handler {
	for _, fault := range slices.Backward(faults) {
		handler = fault(handler)
	}
	return handler
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(),
	})
	handler := s.faulty
	s.active++
	s.mu.Unlock()
	defer s.answered()
	handler.ServeHTTP(w, r)
}

func (s *server) answered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// lastAnswers is how long Close waits for what still answers.
const lastAnswers = 5 * time.Second

// rest waits until nothing is being answered any more, so that nobody writes
// into a folder that is about to be removed.
func (s *server) rest() {
	s.mu.Lock()
	if s.active == 0 {
		s.mu.Unlock()
		return
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(lastAnswers):
	}
}

// Host returns the server's address, "127.0.0.1:port".
func (s *server) Host() string { return s.listener.Addr().String() }

// URL returns scheme and address, without a slash at the end.
func (s *server) URL() string {
	if s.caPEM != nil {
		return "https://" + s.Host()
	}
	return "http://" + s.Host()
}

// CAPEM returns the PEM of the authority to trust; nil if the server speaks
// plain HTTP.
func (s *server) CAPEM() []byte { return slices.Clone(s.caPEM) }

// Client returns a client that trusts the server's authority, goes through no
// proxy and sends no credentials.
func (s *server) Client() *http.Client { return s.client }

// SetFault replaces every fault in front of the server by f; nil for none.
func (s *server) SetFault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faulty = s.handler
	if f != nil {
		s.faulty = f(s.handler)
	}
}

// Requests returns every request so far in the order of arrival, including
// those that a fault answered.
func (s *server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ForgetRequests empties the record.
func (s *server) ForgetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Close ends the server and every connection to it at once, and waits a while
// for the answers that were under way. It may be called again.
func (s *server) Close() error {
	s.client.CloseIdleConnections()
	err := s.http.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	s.served <- http.ErrServerClosed
	s.rest()
	return err
}

// closeAtEnd closes a server when its test ends.
func closeAtEnd(t testing.TB, close func() error) {
	t.Cleanup(func() {
		if err := close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}
