package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// A body that does not arrive ends the request; a handler that works on after
// its body is left alone, however long it takes.
func TestBoundBody(t *testing.T) {
	const most = 50 * time.Millisecond
	read, worked := make(chan error, 1), make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
		if err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			worked <- r.Context().Err()
		case <-time.After(4 * most):
			worked <- nil
		}
		io.WriteString(w, "done")
	})
	server := httptest.NewServer(boundBody(handler, most))
	defer server.Close()
	ask := func(body string) *bufio.Reader {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: gate\r\nContent-Length: 5\r\n\r\n%s", body)
		return bufio.NewReader(conn)
	}
	ask("hel")
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("half a body: %v", err)
	}
	answer := ask("hello")
	if err := <-read; err != nil {
		t.Errorf("a whole body: %v", err)
	}
	if err := <-worked; err != nil {
		t.Errorf("the handler was ended: %v", err)
	}
	if response, err := http.ReadResponse(answer, nil); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", response, err)
	}
}

// A request with a body that nobody reads is answered at once, whether the body
// comes or not, and its connection is closed.
func TestUnwantedBody(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	for name, handler := range map[string]http.Handler{
		"depot":   unwantedBody(hello, 50*time.Millisecond),
		"screens": boundBody(hello, time.Hour), // that bound is for bodies that are read
	} {
		server := httptest.NewServer(handler)
		defer server.Close()
		for _, body := range []string{
			"Content-Length: 50000\r\n\r\nx",
			"Content-Length: 5\r\n\r\nhello",
			"Content-Length: 5000000\r\n\r\nx",
			"Transfer-Encoding: chunked\r\n\r\n1\r\n",
		} {
			t.Run(fmt.Sprintf("%s %.20q", name, body), func(t *testing.T) {
				conn, err := net.Dial("tcp", server.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: gate\r\n%s", body)
				in := bufio.NewReader(conn)
				response, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(response.Body); string(got) != "hello" || err != nil || !response.Close {
					t.Errorf("%q, %v, closing: %t", got, err, response.Close)
				}
				if n, err := in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("the connection is open: %q, %v", n, err)
				}
			})
		}
	}
}
