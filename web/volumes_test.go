package web

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
)

// TestCaseThatWaitsForVolumes says so, on its page and in the list, and how much
// is lacking; nothing is being copied.
func TestCaseThatWaitsForVolumes(t *testing.T) {
	l := newLab(t)
	l.trust()
	f := l.forge(nil)
	c := l.firstVolume(f, len(f.Volume)-1024)
	lacking := german(t).Size(c.Size - c.Progress)
	b := l.loggedIn(officer, "de")
	s := b.get("/cases/1")
	s.shows("Es fehlen "+lacking+" von", "packhof-gate want 1 DATEI", "Es fehlt Teil 2 von 2.")
	if headline := text(s.one("p", "class", "headline")); headline != "Unvollständig" {
		t.Errorf("the headline is %q", headline)
	}
	if strings.Contains(s.raw, "Der Inhalt wird kopiert") || strings.Contains(s.raw, `http-equiv="refresh"`) {
		t.Error("the page says that something is going on")
	}
	b.get("/cases").shows("weitere Datenträgerteile einbringen")
}

// firstVolume receives the first of two volumes of a bundle, of at most so many
// bytes; the other is lost.
func (l *lab) firstVolume(f *testkit.Forged, most int) *gate.Case {
	l.t.Helper()
	set, err := bundle.PlanSet(f.Head, bundle.SetOptions{Limits: []int64{int64(most)}})
	l.must(err)
	written, err := set.WriteTo(l.t.Context(), l.t.TempDir(), f.Content, bundle.SetWriteOptions{})
	l.must(err)
	if len(written) != 2 {
		l.t.Fatalf("%d volumes", len(written))
	}
	c, err := l.gate.Receive(l.t.Context(), gate.Console("carrier"), written[0].Path, nil)
	l.must(err)
	for _, w := range written[1:] {
		l.must(os.Remove(w.Path))
	}
	return c
}

// TestTheDepotIsThisGate, in the reader's language.
func TestTheDepotIsThisGate(t *testing.T) {
	l := newLab(t)
	l.waiting()
	l.loggedIn(officer, "de").get("/cases/1").shows("depot (dieses Gate)")
	l.loggedIn(officer, "en").get("/cases/1").shows("depot (this gate)")
}

// TestAnEarlierSerialIsNotWhole: who decides about a later one is told.
func TestAnEarlierSerialIsNotWhole(t *testing.T) {
	l := newLab(t)
	l.trust()
	f := l.forge(nil)
	large := bytes.Repeat([]byte("0123456789abcdef"), 2000)
	f.AddTree(t, bundle.Files, "large", []bundle.File{{Path: "large.txt", Size: int64(len(large)), Digest: f.Content.Add(large)}})
	f.Reseal(t)
	set, err := bundle.PlanSet(f.Head, bundle.SetOptions{Limits: []int64{int64(len(f.Volume)) - 20_000}})
	l.must(err)
	written, err := set.WriteTo(t.Context(), t.TempDir(), f.Content, bundle.SetWriteOptions{})
	l.must(err)
	_, err = l.gate.Receive(t.Context(), gate.Console("carrier"), written[0].Path, nil)
	l.must(err)
	digest := f.Head.Digest()
	c := l.receive(l.forge(func(m *bundle.Manifest) { m.Previous = &digest }))
	l.loggedIn(officer, "de").get(casePath(c.ID)).shows("Noch unvollständig ist die frühere Nummer 1")
	l.loggedIn(officer, "en").get(casePath(c.ID)).shows("Not whole yet is the earlier serial 1")
}
