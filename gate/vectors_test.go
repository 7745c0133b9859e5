package gate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// replay is a vector about a genuine bundle that comes at the wrong time.
type replay struct {
	code     string
	accepted []int64 // serials, in their order
	serial   int64   // that comes then
}

func readReplay(t *testing.T, file string) (r replay, ours bool) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		number := line[strings.LastIndexAny(line, " :")+1:]
		serial, _ := strconv.ParseInt(number, 10, 64) // 0 where it is no number, which no manifest can have
		switch {
		case line == "expect: replay":
			ours = true
		case strings.HasPrefix(line, "code: "):
			r.code = strings.TrimPrefix(line, "code: ")
		case strings.HasPrefix(line, "accepted "):
			r.accepted = append(r.accepted, serial)
		case strings.HasPrefix(line, "start serial:"):
			r.serial = serial
		}
	}
	return r, ours
}

// ofSerial is a bundle of a serial that follows another one. What is between the
// two the sender has given up.
func (l *lab) ofSerial(serial int64, after *testkit.Forged) *testkit.Forged {
	return l.forge(func(m *bundle.Manifest) {
		m.Serial = serial
		if serial == 1 {
			return
		}
		previous := cas.DigestOf(fmt.Appendf(nil, "serial %d", serial-1))
		if after != nil {
			previous = after.Head.Digest()
		}
		m.Previous = &previous
	})
}

// TestReplayVectors: genuine, whole, meant for this gate, and refused all the
// same, every time, with nothing of it copied or offered.
func TestReplayVectors(t *testing.T) {
	files, err := filepath.Glob("../testdata/vectors/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, file := range files {
		r, ours := readReplay(t, file)
		if !ours {
			continue
		}
		tried++
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			l := newLab(t)
			l.trust(l.forge(nil))
			var last *testkit.Forged
			for _, serial := range r.accepted {
				last = l.ofSerial(serial, last)
				l.mustReceive(last)
			}
			late := l.ofSerial(r.serial, nil)
			for range 2 {
				c, err := l.receive(late)
				if problem.CodeOf(err) != r.code || c == nil || c.State != gate.Blocked {
					t.Errorf("case %+v, %v, want %s", c, err, r.code)
				}
			}
		})
	}
	if tried < 3 {
		t.Errorf("only %d vectors are about replay", tried)
	}
}
