package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

// ending is a daemon with one request in flight, about to be told to end.
type ending struct {
	daemon   *daemon
	server   *http.Server
	listener net.Listener
	release  chan struct{} // closed: the request ends by itself
	served   chan error
	answered chan struct{}
}

// request is what a request in flight does.
type request struct {
	works bool // it is a receive or a release
	obeys bool // it ends when its context does
}

// inFlight starts a server with a request that ends when it is released.
func inFlight(t *testing.T, working context.Context, d *daemon, what request) *ending {
	t.Helper()
	e := &ending{daemon: d, release: make(chan struct{}), served: make(chan error, 1), answered: make(chan struct{})}
	asked := make(chan struct{})
	e.server = d.server(working, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		wait := func() error {
			close(asked)
			halted := r.Context().Done()
			if !what.obeys {
				halted = nil
			}
			select {
			case <-halted:
				return r.Context().Err()
			case <-e.release:
				return nil
			}
		}
		if what.works {
			_ = d.worked(working, wait) // the daemon has noted it
			return
		}
		_ = wait()
	}))
	var err error
	if e.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go func() { e.served <- e.server.Serve(e.listener) }()
	go func() {
		defer close(e.answered)
		response, err := http.Get("http://" + e.listener.Addr().String())
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body) // whatever it is
			_ = response.Body.Close()
		}
	}()
	<-asked
	return e
}

// What runs when a serve is told to end gets some time. After it, answers that
// are still on their way are cut, which is nothing to speak of; work that is cut
// is an interruption, and what does not obey is an error. Nothing new is taken
// meanwhile.
func TestEndOfServe(t *testing.T) {
	const soon = time.Millisecond
	for name, c := range map[string]struct {
		grace time.Duration
		ends  bool // by itself
		what  request
		want  string // code of the error, "" for none
	}{
		"an answer ends by itself": {time.Minute, true, request{}, ""},
		"work ends by itself":      {time.Minute, true, request{works: true}, ""},
		"an answer is cut":         {soon, false, request{obeys: true}, ""},
		"work is halted":           {soon, false, request{works: true, obeys: true}, "interrupted"},
		"an answer does not obey":  {soon, false, request{}, "failed"},
		"work does not obey":       {soon, false, request{works: true}, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			working, halt := context.WithCancel(t.Context())
			defer halt()
			d := &daemon{log: slog.New(slog.DiscardHandler), patience: c.grace, grace: c.grace, halt: 100 * time.Millisecond}
			e := inFlight(t, working, d, c.what)
			if c.ends {
				close(e.release)
			}
			err := d.end(map[net.Listener]*http.Server{e.listener: e.server}, halt)
			if code := codeOf(err); code != c.want {
				t.Errorf("it ended with %v, want %q", err, c.want)
			}
			if !c.ends {
				close(e.release)
			}
			<-e.answered
			if err := <-e.served; err != http.ErrServerClosed {
				t.Errorf("serving ended with %v", err)
			}
			if working.Err() == nil {
				t.Error("what outlives requests was not told to end")
			}
		})
	}
}

// TestGoOn: only for lack of space does a serve go on with an index of the depot
// that it could not make anew.
func TestGoOn(t *testing.T) {
	for _, err := range []error{
		&fs.PathError{Op: "write", Path: "gate.db", Err: syscall.ENOSPC},
		problem.New("gate/full", "there is not enough space for the database: %w", syscall.ENOSPC),
	} {
		if !isFull(err) {
			t.Errorf("a serve does not go on after %v", err)
		}
	}
	dir := filepath.Join(t.TempDir(), "gate")
	if _, err := gate.Init(t.Context(), dir, gate.InitParams{
		Owner: "plant@example", Account: "anna", Password: []byte("correct horse battery"), Program: "packhof-gate test", Now: testkit.Noon(),
	}); err != nil {
		t.Fatal(err)
	}
	g, err := gate.Open(t.Context(), gate.Options{
		Dir: dir, Clock: testkit.Noon, Program: "packhof-gate test", Approvals: gate.Approvals{Allow: 1, Review: 1}, Policy: &policy.Policy{}, Judge: struct{ gate.Judge }{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil { // so that nothing can be read
		t.Fatal(err)
	}
	var log bytes.Buffer
	d := &daemon{gate: g, log: slog.New(slog.NewTextHandler(&log, nil))}
	if err := d.goOn(t.Context()); err == nil || isFull(err) || log.Len() > 0 {
		t.Errorf("it ended with %v, and logged %q", err, log.String())
	}
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return cli.CodeOf(err)
}

// face is a listener with a server behind it that has a request in flight.
type face struct {
	network, address string
	listener         net.Listener
	server           *http.Server
	closed           chan struct{} // when it has stopped accepting, with requests in flight or without
}

// busyFace serves on a listener, sends a request over dial, and waits until
// it is being worked on. The request ends when the server's context does.
func busyFace(t *testing.T, working context.Context, d *daemon, l net.Listener, client *http.Client, url string) face {
	t.Helper()
	asked := make(chan struct{})
	f := face{network: l.Addr().Network(), address: l.Addr().String(), listener: l, closed: make(chan struct{})}
	f.server = d.server(working, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	answered := make(chan struct{})
	var served error
	go func() {
		defer close(f.closed)
		served = f.server.Serve(l)
	}()
	go func() {
		defer close(answered)
		response, err := client.Get(url)
		if err == nil {
			_ = response.Body.Close()
		}
	}()
	<-asked
	t.Cleanup(func() {
		<-answered
		if <-f.closed; served != http.ErrServerClosed {
			t.Errorf("serving %s ended with %v", f.network, served)
		}
	})
	return f
}

// While the requests of one side are waited for, the other side takes nothing
// new either: neither the socket nor the network.
func TestEndClosesBothListeners(t *testing.T) {
	t.Parallel()
	working, halt := context.WithCancel(t.Context())
	defer halt()
	d := &daemon{log: slog.New(slog.DiscardHandler), patience: time.Minute, grace: time.Minute, halt: time.Minute}

	template := httptest.NewTLSServer(nil) // for its certificate
	defer template.Close()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	network := busyFace(t, working, d, tls.NewListener(plain, &tls.Config{Certificates: template.TLS.Certificates}), template.Client(), "https://"+plain.Addr().String())
	unix, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	socket := busyFace(t, working, d, unix, &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", unix.Addr().String())
	}}}, "http://gate")

	ended := make(chan error, 1)
	go func() {
		ended <- d.end(map[net.Listener]*http.Server{network.listener: network.server, socket.listener: socket.server}, halt)
	}()
	for _, f := range []face{network, socket} {
		select {
		case <-f.closed:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s still accepts while requests are waited for", f.network)
		}
		if conn, err := net.Dial(f.network, f.address); err == nil {
			t.Errorf("%s accepts while requests are waited for: %v", f.network, conn.Close())
		}
	}
	halt() // both requests end
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestColons(t *testing.T) {
	for digits, want := range map[string]string{"": "", "ab": "ab", "0123ff": "01:23:ff"} {
		if got := colons(digits); got != want {
			t.Errorf("%q: %q", digits, got)
		}
	}
}
