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
