package sinktest

import (
	"errors"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// loadsTwoSerials is the life of a destination with its gate: the first serial
// goes all the way, the second is killed between content and names, goes on,
// and is then there whole.
func (s *stage) loadsTwoSerials(t *testing.T, first, second *serial) {
	first.address(t, s.gate.ID(), nil)
	second.address(t, s.gate.ID(), first)
	s.trust(t, first)
	one := s.receive(t, first)
	s.load(t, one, gate.EffectCreate, gate.EffectCreate)
	first.checkSeen(t, s.harness, s.releaseOf(t, 1))
	s.checkMoved(t, s.sink.takeReceipts())

	two := s.receive(t, second)
	s.faults.arm("publish:before")
	if _, err := s.gate.Release(t.Context(), carrier(), two, nil); !errors.Is(err, errKilled) {
		t.Fatalf("release that is killed: %v", err)
	}
	first.checkSeen(t, s.harness, s.releaseOf(t, 1))
	s.checkMoved(t, s.sink.takeReceipts())

	s.load(t, two, gate.EffectReplace, gate.EffectKeep)
	for _, receipt := range s.sink.takeReceipts() {
		if receipt.Bytes != 0 || receipt.Blobs != 0 || receipt.Kept == 0 {
			t.Errorf("the second time moved something: %+v", receipt)
		}
	}
	second.checkSeen(t, s.harness, s.releaseOf(t, 2))
}

// load releases a case, of which artifacts that changed have one effect and
// the notes, which are in both serials, another.
func (s *stage) load(t *testing.T, id gate.CaseID, changed, notes gate.Effect) {
	t.Helper()
	c, err := s.gate.Release(t.Context(), carrier(), id, nil)
	if err != nil {
		t.Fatalf("release: %v", err)
	}
	if c.State != gate.Loaded {
		t.Errorf("the case is %s", c.State)
	}
	for _, load := range c.Loads {
		if load.State != gate.LoadVerified || load.Location == "" {
			t.Errorf("load: %+v", load)
		}
	}
	checkEffects(t, s.sink.plan(), changed, notes)
}

func checkEffects(t *testing.T, actions []gate.Action, changed, notes gate.Effect) {
	t.Helper()
	if len(actions) == 0 {
		t.Error("the plan is empty")
	}
	for _, a := range actions {
		want := changed
		if a.Name.Kind == bundle.Files {
			want = notes
		}
		if a.Effect != want {
			t.Errorf("%s: effect %s (%s), want %s", a.Name, a.Effect, a.Reason, want)
		}
	}
}

// checkMoved makes sure that receipts tell of something, where a destination
// keeps what it gets.
func (s *stage) checkMoved(t *testing.T, receipts []gate.Receipt) {
	t.Helper()
	var bytes int64
	for _, r := range receipts {
		bytes += r.Bytes
	}
	if !s.harness.OfTheGate && bytes == 0 {
		t.Errorf("receipts tell of nothing: %+v", receipts)
	}
}
