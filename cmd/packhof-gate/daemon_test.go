package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// What runs when a serve is told to end gets some time, then has its context
// ended; what does not obey is an error. Nothing new is taken meanwhile.
func TestEndOfServe(t *testing.T) {
	for name, c := range map[string]struct {
		grace   time.Duration
		ends    bool // by itself
		obeys   bool
		failing bool
	}{
		"it ends by itself": {time.Minute, true, true, false},
		"it is halted":      {time.Millisecond, false, true, false},
		"it does not obey":  {time.Millisecond, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			working, halt := context.WithCancel(t.Context())
			defer halt()
			asked, release := make(chan struct{}), make(chan struct{})
			d := &daemon{log: slog.New(slog.DiscardHandler), grace: c.grace, halt: 100 * time.Millisecond}
			server := d.server(working, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(asked)
				if c.obeys {
					select {
					case <-r.Context().Done():
					case <-release:
					}
					return
				}
				<-release
			}))
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- server.Serve(listener) }()
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				response, err := http.Get("http://" + listener.Addr().String())
				if err == nil {
					_, _ = io.Copy(io.Discard, response.Body) // whatever it is
					_ = response.Body.Close()
				}
			}()
			<-asked
			if c.ends {
				close(release)
			}
			err = d.end(map[net.Listener]*http.Server{listener: server}, halt)
			if (err != nil) != c.failing {
				t.Errorf("it ended with %v", err)
			}
			if !c.ends {
				close(release)
			}
			<-answered
			if err := <-served; err != http.ErrServerClosed {
				t.Errorf("serving ended with %v", err)
			}
			if working.Err() == nil {
				t.Error("what outlives requests was not told to end")
			}
		})
	}
}

func TestColons(t *testing.T) {
	for digits, want := range map[string]string{"": "", "ab": "ab", "0123ff": "01:23:ff"} {
		if got := colons(digits); got != want {
			t.Errorf("%q: %q", digits, got)
		}
	}
}
