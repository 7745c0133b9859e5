// Package sinktest is what every gate.Sink must pass: one suite, run by each
// implementation against a real server. The releases in it come from a real
// gate, which received, judged and approved two serials of a small bundle.
//
// It knows no kind of destination: the harness says how to look at one as a
// client does, and how to spoil it. Only tests import it.
package sinktest

import (
	"context"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// Harness is an empty destination.
type Harness struct {
	// Name is what the gate calls the destination; "" means "plant".
	Name string
	// Sink is under test.
	Sink gate.Sink
	// Accepts is what is loaded there; nil means everything.
	Accepts []bundle.Kind
	// Read gives what a client sees under a name, by digest ("sha256:…": all
	// manifests and blobs, referrers included) or, for trees, by path (all
	// files); nil where there is no such name.
	Read func(t testing.TB, name gate.Name) map[string][]byte
	// Dump gives every complete object of the destination by its place,
	// whether or not a name leads there; nil where that cannot be told.
	Dump func(t testing.TB) map[string][]byte
	// Lose takes away some content that belongs to a published name, not the
	// name itself; nil where nothing can be taken away.
	Lose func(t testing.TB, name gate.Name)
	// Arrived gives the digests of manifests in the order in which they
	// arrived, by tag or digest; nil where that cannot be told.
	Arrived func(t testing.TB) []bundle.Digest
	// Interrupt has cancel called once while the next Put moves the bytes of a
	// blob; nil where nothing can tell.
	Interrupt func(t testing.TB, cancel context.CancelFunc)
	// Unreachable makes the destination unreachable from now on; nil where
	// that is not possible.
	Unreachable func(t testing.TB)
	// OfTheGate says that content and names of the destination are the gate's
	// own, as the depot's are: it is tried together with its gate only.
	OfTheGate bool
}

// Make makes a new, empty destination. opened gives the gate that will have
// the destination, once that is open; only a destination OfTheGate needs it.
type Make func(t testing.TB, opened func() *gate.Gate) Harness

// Run runs the suite.
func Run(t *testing.T, newHarness Make) {
	t.Helper()
	first, second := forgeSerials(t)
	whole := openStage(t, newHarness)
	ok := t.Run("a gate loads two serials, through a kill", func(t *testing.T) { whole.loadsTwoSerials(t, first, second) })
	if !ok {
		return // nothing else can be said
	}
	c := suite{make: newHarness, stage: whole, first: whole.releaseOf(t, 1), second: whole.releaseOf(t, 2)}
	t.Run("rotten content is never put", c.rotten)
	t.Run("what is cancelled ends", c.cancelled)
	if whole.harness.OfTheGate {
		return
	}
	t.Run("a plan writes nothing and comes true", c.plans)
	t.Run("no name before publish", c.namesLast)
	t.Run("putting again moves nothing", c.again)
	t.Run("lost content is noticed, and brought again", c.lost)
	t.Run("another name is noticed", c.renamed)
	t.Run("referrers come after their subjects", c.order)
	t.Run("what is interrupted leaves nothing half", c.interrupted)
	t.Run("an unreachable destination says so", c.unreachable)
}

// suite is what the parts of it share.
type suite struct {
	make          Make
	stage         *stage
	first, second *gate.Release
}

// fresh makes a destination of its own for a part.
func (c suite) fresh(t *testing.T) Harness {
	t.Helper()
	return c.make(t, func() *gate.Gate { return c.stage.gate })
}

func put(t *testing.T, h Harness, r *gate.Release) []gate.Receipt {
	t.Helper()
	var receipts []gate.Receipt
	for _, a := range r.Artifacts() {
		receipt, err := h.Sink.Put(t.Context(), r, a)
		if err != nil {
			t.Fatalf("put %s: %v", a.Name, err)
		}
		receipts = append(receipts, receipt)
	}
	return receipts
}

func publish(t *testing.T, h Harness, r *gate.Release) {
	t.Helper()
	if err := h.Sink.Publish(t.Context(), r, r.Names()); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

func verify(t *testing.T, h Harness, r *gate.Release) {
	t.Helper()
	for _, a := range r.Artifacts() {
		if err := h.Sink.Verify(t.Context(), r, a); err != nil {
			t.Errorf("verify %s: %v", a.Name, err)
		}
	}
}
