package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Clients that do not send what they began, or do not read what they asked for,
// keep serve from nothing: it ends after its patience, and well.
func TestStuckClientsDoNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Write("notes/large.bin", strings.Repeat("0123456789abcdef", 4<<20))
	l.exported()
	l.must("receive", "medium")
	l.approve("1")
	l.must("release", "1")
	served, c := l.serve(), l.client()
	config := c.Transport.(*http.Transport).TLSClientConfig
	for _, request := range []string{
		"GET /files/notes/1/large.bin HTTP/1.1\r\nHost: gate\r\n\r\n",                                                     // and reads the beginning
		"GET /files/notes/1/README.md HTTP/1.1\r\nHost: gate\r\nContent-Length: 50000\r\n\r\nx",                           // and sends no more
		"POST /v2/notes/blobs/uploads/ HTTP/1.1\r\nHost: gate\r\nContent-Length: 50000\r\n\r\nx",                          // likewise
		"POST /api/v1/session HTTP/1.1\r\nHost: gate\r\nContent-Type: application/json\r\nContent-Length: 50000\r\n\r\n{", // likewise, where it is read
	} {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(served.address, "https://"), config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(request, "GET") {
			if _, err := io.ReadFull(conn, make([]byte, 100)); err != nil {
				t.Errorf("%.40q is not answered: %v", request, err)
			}
		}
	}
	began := time.Now()
	served.Signal(syscall.SIGTERM)
	o := served.End()
	if took := time.Since(began); o.Exit != 0 || took > 15*time.Second {
		t.Errorf("exit %d after %s\n%s", o.Exit, took, o.Stderr)
	}
}

// What tls names is read only if it is a small plain file: serve says what is
// wrong, and waits for nothing.
func TestCertificatesThatAreNoFiles(t *testing.T) {
	t.Parallel()
	template := emptyLab(t)
	template.must("init", "--owner", "Plant 1, hall B")
	for name, prepare := range map[string]func(*lab) string{
		"a device": func(*lab) string { return "/dev/zero" },
		"a pipe": func(l *lab) string {
			if err := unix.Mkfifo(l.Path("data/tls/pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
			return "tls/pipe"
		},
		"large": func(l *lab) string { l.Write("data/tls/large", strings.Repeat("x", 2<<20)); return "tls/large" },
	} {
		for _, part := range []string{"certificate", "key"} {
			t.Run(name+" as "+part, func(t *testing.T) {
				t.Parallel()
				l := template.clone(t)
				names := map[string]string{"certificate": "tls/cert.pem", "key": "tls/key.pem"}
				names[part] = prepare(l)
				withConfig(fmt.Sprintf("tls: {certificate: %s, key: %s}", names["certificate"], names["key"]))(l)
				o := l.run("serve", "--listen", "127.0.0.1:0")
				if o.Exit != 2 || !strings.Contains(o.Stderr, "code: serve/certificate ") || !strings.Contains(o.Stderr, "is not a file of at most 1048576 bytes") {
					t.Errorf("exit %d\n%s", o.Exit, o.Stderr)
				}
			})
		}
	}
}
