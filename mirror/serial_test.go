package mirror_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
)

// A serial has one manifest, whatever happens to the files around it.

func TestLedgerThatChangesUnderAnExport(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	e := y.exporter(t)
	y.shelf.step = func() { // as a pull from version control would
		y.shelf.step = nil
		if err := open(t, y.ledgerPath()).Seal(entry(1, 1, "a colleague's")); err != nil {
			t.Error(err)
		}
	}
	dir := t.TempDir()
	_, err := e.Export(t.Context(), l, dir)
	wantCode(t, "the ledger changed", err, "ledger/changed")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	if last, _ := y.ledger(t).Last(); last != entry(1, 1, "a colleague's") {
		t.Errorf("the colleague's line is gone: %+v", last)
	}
}

func TestLockThatSkipsInTheChannel(t *testing.T) {
	other := cas.DigestOf([]byte("another"))
	for name, change := range map[string]func(*mirror.Lock){
		"a serial too far":   func(l *mirror.Lock) { l.Serial = 5 },
		"another previous":   func(l *mirror.Lock) { l.Previous = &other },
		"no previous":        func(l *mirror.Lock) { l.Previous = nil },
		"roots with a gap":   func(l *mirror.Lock) { l.Roots = []int64{1, 3} },
		"roots that end low": func(l *mirror.Lock) { l.Roots = nil },
		"a root of nobody":   func(l *mirror.Lock) { l.Roots = []int64{1, 2, 3, 4} },
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.export(t, y.plan(t))
			l := y.plan(t)
			change(l)
			if _, err := y.exporter(t).Export(t.Context(), l, t.TempDir()); problem.CodeOf(err) != "lock/position" && problem.CodeOf(err) != "lock/trust-changed" {
				t.Errorf("exported: %v", err)
			}
			if last, _ := y.ledger(t).Last(); last.Serial != 1 {
				t.Errorf("it took up serial %d", last.Serial)
			}
		})
	}
}

func TestLedgerThatWasTakenBack(t *testing.T) {
	y := newYard(t)
	fresh, err := os.ReadFile(y.ledgerPath())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := y.exporter(t).Export(t.Context(), y.plan(t), dir); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "plant-7-000001.tar"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, y.ledgerPath(), fresh)
	y.shelf.trees["a"]["new.txt"] = []byte("other content")
	l := y.plan(t)
	_, err = y.exporter(t).Export(t.Context(), l, dir)
	wantCode(t, "the medium has another manifest of the serial", err, "serial/changed")
	_, err = y.exporter(t).Export(t.Context(), l, t.TempDir())
	wantCode(t, "the store remembers another manifest of the serial", err, "serial/changed")
	after, err := os.ReadFile(filepath.Join(dir, "plant-7-000001.tar"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the bundle on the medium was replaced, %v", err)
	}
}

func TestEpochBeginsSerialsAnew(t *testing.T) {
	y := newYard(t)
	for range 2 {
		y.export(t, y.plan(t))
	}
	sealed, _ := y.ledger(t).Last()
	draft := y.trust(t).Trust.Root().Next(testkit.Noon().AddDate(1, 0, 0))
	if err := draft.RaiseEpoch(channel); err != nil {
		t.Fatal(err)
	}
	raised, err := draft.Sign(t.Context(), y.signer)
	if err != nil {
		t.Fatal(err)
	}
	next := int64(y.trust(t).Trust.Root().Version()) + 1
	write(t, mirror.TrustFile(filepath.Join(y.dir, "trust"), "root", next), raised)
	l := y.plan(t)
	if l.Epoch != 2 || l.Serial != 1 || l.Previous == nil || *l.Previous != sealed.Manifest {
		t.Fatalf("epoch %d, serial %d, previous %v", l.Epoch, l.Serial, l.Previous)
	}
	s, volume := y.export(t, l)
	if filepath.Base(s.Path) != "plant-7-e2-000001.tar" || y.verify(t, volume).Manifest().Epoch != 2 {
		t.Errorf("summary %+v", s)
	}
}

func TestSealedSerialOutlivesNewRevocations(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	_, volume := y.export(t, l)
	draft := y.trust(t).Trust.Revocations().Next(testkit.Noon())
	if err := draft.RevokeDigest(cas.DigestOf([]byte("elsewhere")).String(), "not ours"); err != nil {
		t.Fatal(err)
	}
	list, err := draft.Sign(t.Context(), y.signer)
	if err != nil {
		t.Fatal(err)
	}
	write(t, mirror.TrustFile(filepath.Join(y.dir, "trust"), "revocations", 2), list)
	if _, again := y.export(t, l); !bytes.Equal(volume, again) {
		t.Error("exported again it differs")
	}
}

func TestNamesThatTheRootDoesNotAllow(t *testing.T) {
	y := newYard(t)
	if err := os.RemoveAll(filepath.Join(y.dir, "trust")); err != nil {
		t.Fatal(err)
	}
	writeTrust(t, filepath.Join(y.dir, "trust"), "line/")
	_, err := y.planner(t).Plan(t.Context(), y.spec)
	wantCode(t, "names outside the prefixes", err, "config/invalid")
}

func TestRottenFileIsNeverDescribed(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	for _, p := range l.Artifacts {
		if err := y.shelf.Fetch(t.Context(), p, y.store); err != nil {
			t.Fatal(err)
		}
	}
	path := y.store.Path(cas.DigestOf(testkit.Bytes("weights", 9000)))
	remove(t, path)
	write(t, path, make([]byte, 9000)) // right size, wrong bytes
	e := y.exporter(t)
	e.NoScan, e.Scanner = "", scanner(t, y, "good")
	e.Sources = map[string]mirror.Source{"files": stocked{}}
	_, err := e.Export(t.Context(), l, t.TempDir())
	wantCode(t, "a rotten file", err, "store/rotten")
	if _, sealed := y.ledger(t).Last(); sealed {
		t.Error("its SBOM was sealed")
	}
}

// stocked is a source whose content is in the store already.
type stocked struct{}

func (stocked) Resolve(context.Context, mirror.Request, *cas.Store) (mirror.Pinned, error) {
	return mirror.Pinned{}, errors.New("nothing to resolve")
}

func (stocked) Fetch(context.Context, mirror.Pinned, *cas.Store) error { return nil }
