package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
)

// many is a lab with a case of 20,001 artifacts that share their content.
func many(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	now := time.Now()
	forged := l.ForgeUnder("keys/packhof.key", passphrase, func(m *bundle.Manifest) {
		m.Channel, m.Serial, m.Previous, m.Audience = "plant-1", 1, nil, []string{l.gateID()}
		m.Created, m.Expires = bundle.At(now), bundle.At(now.Add(24*time.Hour))
		for n := range 20_000 {
			another := m.Artifacts[0]
			another.Name = fmt.Sprintf("part-%05d", n)
			m.Artifacts = append(m.Artifacts, another)
		}
	})
	l.Write(bundleFile, string(forged.Volume))
	l.Write("data/gate.yaml", l.Read("data/gate.yaml")+"\njudge: {timeout: 5m}\n") // judging so many is not what is asked here
	l.must("receive", bundleFile)
	return l
}

// loggedIn is a client with a session.
func (l *lab) loggedIn(s *serving, account string) *http.Client {
	l.T.Helper()
	c := l.client()
	var err error
	if c.Jar, err = cookiejar.New(nil); err != nil {
		l.T.Fatal(err)
	}
	body := fmt.Sprintf(`{"account":%q,"password":%q}`, account, password)
	response, err := c.Post(s.address+"/api/v1/session", "application/json", strings.NewReader(body))
	if err != nil {
		l.T.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		l.T.Fatalf("%s cannot log in: %s, %v", account, response.Status, err)
	}
	return c
}

// However many ask at once for a case of very many artifacts, each is answered,
// and the gate keeps within its memory.
func TestManyArtifacts(t *testing.T) {
	if raced {
		t.Skip("memory is measured without the race detector")
	}
	// 256 MiB are the bound of the gate; the rest is what the collector has not
	// given back yet when all ask at once.
	const most = 320 << 20
	l := many(t)
	served := l.serve()
	c := newPatient(l.loggedIn(served, "anna"))
	paths := []string{"/cases/1", "/api/v1/cases/1/review", "/api/v1/cases/1/plan", "/api/v1/cases/1/findings"}
	answered := make([]int, len(paths))
	var mu sync.Mutex
	var asking sync.WaitGroup
	for n := range 20 {
		asking.Go(func() {
			i := n % len(paths)
			status, size, err := c.get(served.address + paths[i])
			switch {
			case err != nil:
				t.Errorf("%s: %v", paths[i], err)
			case status != "200 OK":
				t.Errorf("%s: %s", paths[i], status)
			case i == 0 && size > 1<<20:
				t.Errorf("the page has %d bytes", size)
			default:
				mu.Lock()
				answered[i]++
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	for i, n := range answered {
		if n == 0 {
			t.Errorf("nobody got %s", paths[i])
		}
	}
	if peak := peakOf(t, served.Cmd.Process.Pid); peak > most {
		t.Errorf("serve had %d MiB, want at most %d", peak>>20, most>>20)
	} else {
		t.Logf("serve had %d MiB; answered %d", peak>>20, answered)
	}
}

// patient asks again when it was told to come later, as soon as another one has
// got its answer: only those who ask here keep the gate busy.
type patient struct {
	*http.Client
	mu     sync.Mutex
	change *sync.Cond
	asking int // that have not got their answer yet
	ended  int // that have
}

func newPatient(c *http.Client) *patient {
	p := &patient{Client: c}
	p.change = sync.NewCond(&p.mu)
	return p
}

// get gives an answer to read, and the size of its body.
func (p *patient) get(address string) (status string, size int64, err error) {
	for {
		p.mu.Lock()
		before := p.ended
		p.asking++
		p.mu.Unlock()
		var later bool
		status, size, later, err = p.ask(address)
		p.mu.Lock()
		if p.asking--; !later {
			p.ended++
		}
		p.change.Broadcast()
		for later && p.ended == before && p.asking > 0 {
			p.change.Wait()
		}
		p.mu.Unlock()
		if !later {
			return status, size, err
		}
	}
}

// ask asks once, and tells whether to come later.
func (p *patient) ask(address string) (status string, size int64, later bool, err error) {
	response, err := p.Get(address)
	if err != nil {
		return "", 0, false, err
	}
	size, err = io.Copy(io.Discard, response.Body)
	err = errors.Join(err, response.Body.Close())
	if later = err == nil && response.StatusCode == http.StatusServiceUnavailable; later {
		_, err = strconv.Atoi(response.Header.Get("Retry-After"))
		later = err == nil
	}
	return response.Status, size, later, err
}

// peakOf is the most memory that a process has had, in bytes.
func peakOf(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		if os.Getenv("PACKHOF_REQUIRE_TOOLS") != "" {
			t.Fatalf("the system does not say how much memory a process has had: %v", err)
		}
		t.Skip("the system does not say how much memory a process has had")
	}
	for line := range strings.Lines(string(b)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	t.Fatalf("no peak in %s", b)
	return 0
}
