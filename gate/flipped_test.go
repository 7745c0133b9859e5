package gate_test

import (
	"bytes"
	"testing"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

// TestT10FlippedBytesAtTheGate brings a small bundle again and again with
// another byte flipped: each is refused with a code and told by a case or the
// audit log, none gets further than its content, and the whole one comes in
// afterwards. The same is done for every single byte where bundles are read.
func TestT10FlippedBytesAtTheGate(t *testing.T) {
	stride := 61
	if testing.Short() || raced {
		stride = 997
	}
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	refused := 0
	for i := 0; i < len(f.Volume); i += stride {
		changed := *f
		changed.Volume = bytes.Clone(f.Volume)
		changed.Volume[i] ^= 1
		c, err := l.receive(&changed)
		if problem.CodeOf(err) == "" {
			t.Fatalf("byte %d was flipped: %v", i, err)
		}
		if c != nil && c.State != gate.Damaged && c.State != gate.NotGenuine && c.State != gate.Blocked {
			t.Fatalf("byte %d was flipped, and the case is %s", i, c.State)
		}
		refused++
	}
	if names, err := l.gate.Depot().Repositories(t.Context(), "", 10); err != nil || len(names) > 0 {
		t.Errorf("the depot shows %v, %v", names, err)
	}
	if c := l.mustReceive(f); c.State != gate.Awaiting {
		t.Errorf("the whole one, after %d others: %s", refused, c.State)
	}
}
