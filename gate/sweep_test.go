package gate_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/packhof/packhof/gate"
)

// pieces is how many files the store keeps of blobs that are not whole.
func (l *lab) pieces() int {
	l.t.Helper()
	entries, err := os.ReadDir(filepath.Join(l.dir, "store", "assembly"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.t.Fatal(err)
	}
	return len(entries)
}

// TestPiecesGoWithTheirCase: what came of a blob is kept as long as a case waits
// for the rest, restarts or not, and goes when nobody does.
func TestPiecesGoWithTheirCase(t *testing.T) {
	l := newLab(t)
	_, paths := inVolumes(t, l)
	c, err := l.gate.Receive(t.Context(), operator, paths[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := l.pieces()
	if kept == 0 {
		t.Fatal("the volume holds no piece of a blob that others hold the rest of")
	}
	l.restart()
	if _, err := l.gate.Receive(t.Context(), operator, paths[1], nil); err != nil {
		t.Error(err)
	}
	if got := l.pieces(); got != kept {
		t.Errorf("%d files of pieces while the case waits, %d before", got, kept)
	}
	if _, err := l.gate.Decide(t.Context(), l.anna(), c.ID, gate.Reject, "", "never ordered"); err != nil {
		t.Fatal(err)
	}
	l.restart()
	if got := l.pieces(); got != 0 {
		t.Errorf("%d files of pieces that nobody waits for", got)
	}
}
