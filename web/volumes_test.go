package web

import (
	"os"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// TestCaseThatWaitsForVolumes says so, on its page and in the list, and how much
// is lacking; nothing is being copied.
func TestCaseThatWaitsForVolumes(t *testing.T) {
	l := newLab(t)
	l.trust()
	f := l.forge(nil)
	set, err := bundle.PlanSet(f.Head, bundle.SetOptions{Limits: []int64{int64(len(f.Volume)) - 1024}})
	l.must(err)
	dir := t.TempDir()
	written, err := set.WriteTo(t.Context(), dir, f.Content, bundle.SetWriteOptions{})
	l.must(err)
	if len(written) < 2 {
		t.Fatalf("%d volumes", len(written))
	}
	c, err := l.gate.Receive(t.Context(), gate.Console("carrier"), written[0].Path, nil)
	l.must(err)
	lacking := german(t).Size(c.Size - c.Progress)
	for _, w := range written[1:] {
		l.must(os.Remove(w.Path))
	}
	b := l.loggedIn(officer, "de")
	s := b.get("/cases/1")
	s.shows("Es fehlen "+lacking+" von", "packhof-gate want 1 DATEI")
	if strings.Contains(s.raw, "Der Inhalt wird kopiert") || strings.Contains(s.raw, `http-equiv="refresh"`) {
		t.Error("the page says that something is going on")
	}
	b.get("/cases").shows("weitere Datenträgerteile einbringen")
}

// TestTheDepotIsThisGate, in the reader's language.
func TestTheDepotIsThisGate(t *testing.T) {
	l := newLab(t)
	l.waiting()
	l.loggedIn(officer, "de").get("/cases/1").shows("depot (dieses Gate)")
	l.loggedIn(officer, "en").get("/cases/1").shows("depot (this gate)")
}
