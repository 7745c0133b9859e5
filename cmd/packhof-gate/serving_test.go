package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/gate"
)

// serving is a serve that has said where.
type serving struct {
	*running
	address string
}

func (l *lab) start(args ...string) *running {
	l.T.Helper()
	return l.Start("packhof-gate", args...)
}

var servesAt = regexp.MustCompile(`serves at (https://\S+)`)

// serve starts the gate of the lab and returns once it serves. The test ends
// it, at the latest by ending.
func (l *lab) serve() *serving {
	l.T.Helper()
	return l.serveWith("packhof-gate")
}

// serveWith serves with a program of one's own.
func (l *lab) serveWith(program string) *serving {
	l.T.Helper()
	s, err := serve(l.Command(program, "serve", "--listen", "127.0.0.1:0"))
	if err != nil {
		l.T.Fatal(err)
	}
	s.T = l.T
	l.T.Cleanup(func() {
		_ = s.Cmd.Process.Kill() // it may have ended already
		_ = s.Cmd.Wait()
	})
	return s
}

// serve starts a prepared serve and waits until it says that it serves.
func serve(c *exec.Cmd) (*serving, error) {
	s := &serving{running: &running{Cmd: c}}
	c.Stderr = &s.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if m := servesAt.FindStringSubmatch(line); m != nil {
			s.address = m[1]
			return s, nil
		}
		if err != nil {
			_ = c.Wait() // why is on stderr
			return nil, fmt.Errorf("serve ended before it served: %s", s.Stderr.String())
		}
	}
}

// client trusts the certificate of the lab's gate and nothing else.
func (l *lab) client() *http.Client {
	l.T.Helper()
	c, err := trusting(l.Read("data/tls/cert.pem"))
	if err != nil {
		l.T.Fatal(err)
	}
	return c
}

func trusting(certificate string) (*http.Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(certificate)) {
		return nil, errors.New("tls/cert.pem holds no certificate")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}, nil
}

// A command says the same, to the letter, whether a serve answers it over the
// socket or the gate works in its own process.
func TestDaemonSaysTheSame(t *testing.T) {
	t.Parallel()
	alone := waiting(t)
	asked := alone.clone(t)
	served := asked.serve()
	for _, args := range [][]string{
		{"list"},
		{"list", "-o", "json"},
		{"show", "1"},
		{"show", "1", "--lang", "de"},
		{"show", "1", "-o", "yaml"},
		{"show", "7"},
		{"trust", "show"},
		{"user", "list"},
		{"receive", bundleFile},
		{"receive", "medium/plant-1-000009.tar"},
		{"inspect", bundleFile},
		{"verify", bundleFile},
		{"release", "1", "--dry-run"},
		{"release", "1"},
		{"approve", "1", "--as", "berta", "--yes", "--review", "sha256:0"},
		{"approve", "1", "--as", "anna", "--yes", "--review", "sha256:0", "--reason", "x"},
		{"reject", "1", "--as", "anna", "--yes", "--review", "sha256:0"},
		{"user", "add", "anna", "--role", "auditor"},
		{"trust", "update", "trust/root-1.json"},
		{"trust", "update", "packhof.yaml"},
	} {
		want, got := alone.run(append([]string{"--quiet"}, args...)...), asked.run(append([]string{"--quiet"}, args...)...)
		for _, o := range []*outcome{&want, &got} {
			o.Stdout, o.Stderr = asked.anonymous(alone.anonymous(o.Stdout)), asked.anonymous(alone.anonymous(o.Stderr))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-alone +with a serve):\n%s", strings.Join(args, " "), diff)
		}
	}
	served.Signal(syscall.SIGTERM)
	if o := served.End(); o.Exit != 0 {
		t.Errorf("serve: exit %d\n%s", o.Exit, o.Stderr)
	}
}

// A serve that was killed leaves its socket behind; the lock says that nobody
// has the gate.
func TestKilledServe(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first := l.serve()
	if info, err := os.Lstat(l.Path("data/gate.sock")); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	first.Signal(syscall.SIGKILL)
	first.End()
	if _, err := os.Lstat(l.Path("data/gate.sock")); err != nil {
		t.Fatalf("the socket of a killed serve should be there: %v", err)
	}
	l.must("list")
	second := l.serve()
	l.must("list")
	if o := l.run("serve", "--listen", "127.0.0.1:0"); o.Exit != 1 || !strings.Contains(o.Stderr, "code: gate/busy ") {
		t.Errorf("a second serve: exit %d\n%s", o.Exit, o.Stderr)
	}
	second.Signal(syscall.SIGTERM)
	if o := second.End(); o.Exit != 0 {
		t.Errorf("exit %d\n%s", o.Exit, o.Stderr)
	}
	if _, err := os.Lstat(l.Path("data/gate.sock")); err == nil {
		t.Error("the socket is still there after the end")
	}
}

// The screens, the API and the depot answer over TLS; files of the machine
// cannot be named over the network.
func TestServedFaces(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	served, c := l.serve(), l.client()
	for path, want := range map[string]int{"/v2/": 200, "/v2": 200, "/files/": 200, "/login": 200, "/api/v1/cases": 401, "/v2/..%2f..%2fapi/v1/cases": 400} {
		response, err := c.Get(served.address + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if response.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, response.Status, want)
		}
	}
	r, err := http.NewRequest(http.MethodPost, served.address+"/api/v1/cases", strings.NewReader(`{"path":"/etc/passwd"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("admin", password)
	r.Header.Set("Content-Type", "application/json")
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("receiving over the network: %s, %v", response.Status, err)
	}
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}}}
	if response, err := old.Get(served.address); err == nil {
		t.Errorf("TLS 1.1 is answered: %s", response.Status)
	}
}

// large is an arrived lab whose bundle takes a while to copy.
func large(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.Write("notes/large.bin", strings.Repeat("0123456789abcdef", 4<<20))
	l.exported()
	return l
}

// whenCopying starts a command and returns when the gate has begun to write
// into its store.
func (l *lab) whenCopying(start func() *running) *running {
	l.T.Helper()
	r, _ := l.WhenWriting("data/store/ingest", start)
	return r
}

// Ctrl-C or a kill while a bundle is copied leaves a case that goes on where
// it was, and nothing half under a digest.
func TestInterruptedReceive(t *testing.T) {
	t.Parallel()
	template := large(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			l := template.clone(t)
			r := l.whenCopying(func() *running { return l.start("receive", "medium") })
			r.Signal(s)
			o := r.End()
			if s != syscall.SIGKILL && (o.Exit != 130 || !strings.Contains(o.Stderr, "code: interrupted   exit 130 ")) {
				t.Errorf("exit %d\n%s", o.Exit, o.Stderr)
			}
			l.checkStore()
			if got := l.state("1"); got != gate.Received {
				t.Errorf("the case is %s", got)
			}
			l.must("receive", "medium")
			if got := l.state("1"); got != gate.Awaiting || len(l.cases()) != 1 {
				t.Errorf("the case is %s, and there are %d", got, len(l.cases()))
			}
		})
	}
	// The same through a serve: a command that ends takes its request with it.
	t.Run("over the socket", func(t *testing.T) {
		t.Parallel()
		l := template.clone(t)
		served := l.serve()
		r := l.whenCopying(func() *running { return l.start("receive", "medium") })
		r.Signal(syscall.SIGINT)
		if o := r.End(); o.Exit != 130 {
			t.Errorf("exit %d\n%s", o.Exit, o.Stderr)
		}
		served.Signal(syscall.SIGTERM)
		if o := served.End(); o.Exit != 0 {
			t.Errorf("serve: exit %d\n%s", o.Exit, o.Stderr)
		}
		if got := l.state("1"); got != gate.Received {
			t.Errorf("the case is %s", got)
		}
		l.must("receive", "medium")
	})
}

// Whoever asks again at once is not refused for the sake of a command that has
// just gone away.
func TestReceiveAgainAtOnce(t *testing.T) {
	t.Parallel()
	l := large(t)
	l.serve()
	r := l.whenCopying(func() *running { return l.start("receive", "medium") })
	r.Signal(syscall.SIGINT)
	if o := r.End(); o.Exit != 130 {
		t.Errorf("exit %d\n%s", o.Exit, o.Stderr)
	}
	l.must("receive", "medium")
	if got := l.state("1"); got != gate.Awaiting || len(l.cases()) != 1 {
		t.Errorf("the case is %s, and there are %d", got, len(l.cases()))
	}
}

// Of two receives at once one does the work; the other is told, or finds it
// done. Either way there is one case.
func TestTwoReceives(t *testing.T) {
	t.Parallel()
	template := large(t)
	for name, serve := range map[string]bool{"alone": false, "over the socket": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := template.clone(t)
			code := "code: gate/busy   exit 1 "
			if serve {
				l.serve()
				code = "code: case/busy   exit 1 "
			}
			first := l.whenCopying(func() *running { return l.start("receive", "medium") })
			second := l.run("receive", "medium")
			if second.Exit != 0 && !strings.Contains(second.Stderr, code) {
				t.Errorf("the second: exit %d\n%s", second.Exit, second.Stderr)
			}
			if o := first.End(); o.Exit != 0 {
				t.Errorf("the first: exit %d\n%s", o.Exit, o.Stderr)
			}
			if got := l.state("1"); got != gate.Awaiting || len(l.cases()) != 1 {
				t.Errorf("the case is %s, and there are %d", got, len(l.cases()))
			}
		})
	}
}
