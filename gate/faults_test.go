package gate_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// TestClockJumpsAtTheGate: the clock of the wall goes back and forth between the
// steps of a bundle. Nothing is lost by it, what was accepted stays so, and what
// it says wrongly is a finding and no end.
func TestClockJumpsAtTheGate(t *testing.T) {
	for name, jumps := range map[string][3]time.Duration{
		"back by ten years before receiving": {-10 * 365 * 24 * time.Hour, 0, 0},
		"back between all steps":             {0, -24 * time.Hour, -24 * time.Hour},
		"forth and back":                     {0, 20 * 24 * time.Hour, -20 * 24 * time.Hour},
		"back and forth":                     {-48 * time.Hour, 48 * time.Hour, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			f := l.forge(nil)
			l.trust(f)
			l.clock.Advance(jumps[0])
			c := l.mustReceive(f)
			if c.State != gate.Awaiting {
				t.Fatalf("received: %s, %+v", c.State, c.Problem)
			}
			l.clock.Advance(jumps[1])
			l.restart()
			if err := l.gate.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			if again := l.mustReceive(f); again.ID != c.ID {
				t.Errorf("the same bundle is another case: %d", again.ID)
			}
			l.approveWhatHolds(c.ID)
			l.clock.Advance(jumps[2])
			l.restart()
			released, err := l.gate.Release(t.Context(), operator, c.ID, nil)
			if problem.CodeOf(err) == "case/review-changed" { // the clock is a finding now, or none any more
				l.approveWhatHolds(c.ID)
				released, err = l.gate.Release(t.Context(), operator, c.ID, nil)
			}
			if err != nil || released.State != gate.Loaded {
				t.Errorf("released: %+v, %v", released, err)
			}
		})
	}
}

// approveWhatHolds looks at a case and approves it, and does so again where the
// time had changed what there was to see.
func (l *lab) approveWhatHolds(id gate.CaseID) {
	l.t.Helper()
	anna := l.anna()
	for range 2 {
		page, err := l.gate.Review(l.t.Context(), anna, id)
		if err != nil {
			l.t.Fatal(err)
		}
		_, err = l.gate.Decide(l.t.Context(), anna, id, gate.Approve, page.Digest, "the supplier is known")
		if err == nil {
			return
		}
		if problem.CodeOf(err) != "case/review-changed" {
			l.t.Fatal(err)
		}
	}
	l.t.Fatalf("case %d looks another way each time", id)
}

// TestMediumTakenAwayWhileReceived: the file becomes shorter, or is gone with its
// folder, while it is copied. The case waits, nothing wrong is kept, and the
// medium makes it whole when it is there again.
func TestMediumTakenAwayWhileReceived(t *testing.T) {
	for name, c := range map[string]struct {
		away func(path string) error
		code string // "": what was open is read to its end
	}{
		"cut off":              {func(path string) error { return os.Truncate(path, 12*512) }, "volume/damaged"},
		"emptied":              {func(path string) error { return os.Truncate(path, 0) }, "volume/damaged"},
		"gone, and its folder": {func(path string) error { return os.RemoveAll(filepath.Dir(path)) }, ""},
		"another file in its place": {func(path string) error {
			return os.WriteFile(path, testkit.Bytes("other", 40_000), 0o644)
		}, "volume/damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			_, paths := inVolumes(t, l)
			for i, path := range paths {
				good, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				spoil := filepath.Join(t.TempDir(), filepath.Base(path))
				if err := os.WriteFile(spoil, good, 0o644); err != nil {
					t.Fatal(err)
				}
				l.fault = func(point string) error {
					if point == "copy:before" {
						return c.away(spoil)
					}
					return nil
				}
				shown, err := l.gate.Receive(t.Context(), operator, spoil, nil)
				l.fault = nil
				if problem.CodeOf(err) != c.code {
					t.Fatalf("volume %d: %v, want %q", i+1, err, c.code)
				}
				if c.code != "" && (shown == nil || shown.State != gate.Received || shown.Problem != nil) {
					t.Errorf("volume %d: the case is %+v", i+1, shown)
				}
				if shown, err = l.gate.Receive(t.Context(), operator, path, nil); err != nil {
					t.Fatalf("volume %d, there again: %v", i+1, err)
				}
				if last := i == len(paths)-1; last != (shown.State == gate.Awaiting) {
					t.Errorf("after volume %d: %s", i+1, shown.State)
				}
			}
		})
	}
}
