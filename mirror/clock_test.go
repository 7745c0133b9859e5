package mirror_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/packhof/packhof/internal/testkit"
)

// TestClockJumpsBetweenPlanAndExport: an export does the lock, whatever the clock
// says: the same bytes, or a refusal before any work that says which time it is.
func TestClockJumpsBetweenPlanAndExport(t *testing.T) {
	var first []byte
	for _, c := range []struct {
		jump time.Duration
		code string
	}{
		{0, ""},
		{time.Second, ""},
		{-time.Hour, ""}, // before the lock was made
		{29 * 24 * time.Hour, ""},
		{31 * 24 * time.Hour, "lock/expired"},
		{-25 * time.Hour, "trust/key-expired"}, // before there was a key
		{-10 * 365 * 24 * time.Hour, "trust/key-expired"},
		{100 * 365 * 24 * time.Hour, "lock/expired"},
	} {
		y := newYard(t)
		y.now = testkit.Noon().Add(24 * time.Hour)
		lock := y.plan(t)
		out := t.TempDir()
		e := y.exporter(t)
		e.Now = y.now.Add(c.jump)
		s, err := e.Export(t.Context(), lock, out)
		if c.code != "" {
			wantCode(t, c.jump.String(), err, c.code)
			if _, sealed := y.ledger(t).Last(); sealed {
				t.Errorf("%s: the serial was sealed", c.jump)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.jump, err)
			continue
		}
		b, err := os.ReadFile(filepath.Join(out, filepath.Base(s.Path)))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if string(b) != string(first) {
			t.Errorf("%s: other bytes", c.jump)
		}
	}
}
