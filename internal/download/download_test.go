package download_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packhof/packhof/internal/download"
)

// server answers with bytes, and then as rest does; it ends with the request.
type server struct {
	bytes string
	rest  error         // nil: nothing comes any more
	delay time.Duration // before each read
}

func (s server) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.bytes == "refuse" {
		return nil, s.rest
	}
	b := &content{ctx: r.Context(), r: bytes.NewReader([]byte(s.bytes)), server: s}
	return &http.Response{StatusCode: http.StatusOK, Body: b, Request: r}, nil
}

type content struct {
	ctx    context.Context
	r      io.Reader
	server server
}

func (c *content) Read(p []byte) (int, error) {
	time.Sleep(c.server.delay) // of a bubble: nobody waits
	n, err := c.r.Read(p[:min(len(p), 10)])
	switch {
	case err == nil:
		return n, nil
	case c.server.rest != nil:
		return n, c.server.rest
	}
	<-c.ctx.Done()
	return n, c.ctx.Err()
}

func (c *content) Close() error { return nil }

func get(ctx context.Context, t *testing.T, s server) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://files.example/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := download.Bound(s, time.Minute).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestBodies(t *testing.T) {
	reset := errors.New("stream error: INTERNAL_ERROR")
	hundred := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		server  server
		silence time.Duration
		cause   error
		text    string // "" where it arrives whole
	}{
		"whole":            {server: server{hundred, io.EOF, 0}},
		"slow, but steady": {server: server{hundred, io.EOF, 59 * time.Second}},
		"stalled":          {server{hundred, nil, 0}, time.Minute, context.Canceled, "stands still"},
		"never begun":      {server{"", nil, 0}, time.Minute, context.Canceled, "stands still"},
		"cut":              {server{hundred, io.ErrUnexpectedEOF, 0}, 0, io.ErrUnexpectedEOF, "broke off: unexpected EOF"},
		"stream reset":     {server{hundred, reset, 0}, 0, reset, "broke off: " + reset.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resp := get(t.Context(), t, c.server)
				b, err := io.ReadAll(resp.Body)
				if string(b) != c.server.bytes {
					t.Errorf("%d bytes arrived, want %d", len(b), len(c.server.bytes))
				}
				var broken *download.BrokenOffError
				if c.text == "" && err != nil {
					t.Error(err)
				}
				if c.text != "" && (!errors.As(err, &broken) || broken.Error() != c.text || broken.Silence != c.silence ||
					broken.Got != int64(len(b)) || !errors.Is(err, c.cause) || len(broken.Evidence()) != 1) {
					t.Errorf("%v, want %q", err, c.text)
				}
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A reader that takes its time, such as a full disk queue, is no stall.
func TestTheReadersOwnTimeDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resp := get(t.Context(), t, server{strings.Repeat("x", 30), io.EOF, 0})
		for range 3 {
			if _, err := resp.Body.Read(make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		if _, err := resp.Body.Read(make([]byte, 10)); err != io.EOF {
			t.Errorf("%v, want the end", err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheCallersEndIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(enough) })
		resp := get(ctx, t, server{"x", nil, 0})
		_, err := io.ReadAll(resp.Body)
		var broken *download.BrokenOffError
		if !errors.Is(err, enough) || errors.As(err, &broken) {
			t.Errorf("%v, want the caller's own cause", err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestClosingEndsTheRequest(t *testing.T) {
	resp := get(t.Context(), t, server{"x", nil, 0})
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if resp.Request.Context().Err() == nil {
		t.Error("what belongs to the request goes on")
	}
	refused := errors.New("refused")
	r := resp.Request.WithContext(t.Context())
	if _, err := download.Bound(server{"refuse", refused, 0}, time.Minute).RoundTrip(r); !errors.Is(err, refused) {
		t.Errorf("%v, want the transport's own error", err)
	}
}
