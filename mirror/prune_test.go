package mirror_test

import (
	"os"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/mirror"
)

func (y *yard) survey(t *testing.T, l *mirror.Lock) *mirror.Cache {
	t.Helper()
	c, err := mirror.Survey(y.store, y.ledger(t), y.gates(t), l)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// contentOf lists the content of a serial, by the store's manifest.
func (y *yard) contentOf(t *testing.T, s *mirror.Summary) (content, metadata []bundle.Blob) {
	t.Helper()
	b, err := y.store.ReadAll(s.Manifest, bundle.MaxManifestSize)
	if err != nil {
		t.Fatal(err)
	}
	m, err := bundle.ParseManifestUnsafe(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range m.Blobs {
		if b.Role == bundle.RoleContent {
			content = append(content, b)
		} else {
			metadata = append(metadata, b)
		}
	}
	return content, metadata
}

func (y *yard) has(t *testing.T, b bundle.Blob) bool {
	t.Helper()
	ok, err := y.store.Has(b.Digest, b.Size)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestPruneWaitsForReceipts(t *testing.T) {
	y := newYard(t)
	s, before := y.export(t, y.plan(t))
	content, metadata := y.contentOf(t, s)
	free := func(what string, want int) {
		t.Helper()
		if got := y.survey(t, nil); got.Free.Blobs != want || len(got.Prunable) != want {
			t.Errorf("%s: %+v can go, want %d blobs", what, got.Free, want)
		}
	}
	free("no receipt", 0)
	y.keep(t, y.receiptOf(t, y.now, bundle.Reads()))
	free("a receipt that does not list it", 0)
	y.keep(t, y.receiptOf(t, y.now.Add(time.Minute), bundle.Reads(), heldAs(s, bundle.HoldsNone)))
	free("nothing of it is there", 0)
	y.keep(t, y.receiptOf(t, y.now.Add(2*time.Minute), bundle.Reads(), heldAs(s, bundle.HoldsPart, bundle.Piece{Blob: content[0].Digest, Length: 1})))
	free("one blob is lacking there", len(content)-1)
	y.keep(t, y.receiptOf(t, y.now.Add(3*time.Minute), bundle.Reads(), heldAs(s, bundle.HoldsAll)))
	free("all of it is there", len(content))
	if got := y.survey(t, y.plan(t)); got.Free.Blobs != 0 || got.Locked.Blobs < len(content) {
		t.Errorf("the lock needs it: %+v can go, %+v is locked", got.Free, got.Locked)
	}
	if err := y.survey(t, nil).Prune(t.Context(), y.store); err != nil {
		t.Fatal(err)
	}
	for _, b := range content {
		if y.has(t, b) {
			t.Errorf("%s is still there", b.Digest)
		}
	}
	for _, b := range metadata {
		if !y.has(t, b) {
			t.Errorf("the metadata %s is gone", b.Digest)
		}
	}
	lock, shipped, err := mirror.SealedLock(y.store, y.ledger(t), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	e := y.exporter(t)
	e.VolumeSizes = shipped.Sizes
	if _, after := exportWith(t, e, lock); string(after) != string(before) {
		t.Error("sent again after a prune, it has other bytes")
	}
}

// TestPruneKeepsWhatIsSharedWithAnotherSerial: content of two serials stays until nobody
// waits for either, and a serial that was given up waits for nobody.
func TestPruneKeepsWhatIsSharedWithAnotherSerial(t *testing.T) {
	y := newYard(t)
	first, _ := y.export(t, y.plan(t))
	y.spec.Audience = nil
	y.shelf.trees["a"]["new.txt"] = []byte("new")
	second, _ := y.export(t, y.plan(t))
	content, _ := y.contentOf(t, second)
	y.keep(t, y.receiptOf(t, y.now, bundle.Reads(), heldAs(first, bundle.HoldsAll)))
	if got := y.survey(t, nil); got.Awaited.Blobs != 1 {
		t.Errorf("%+v is awaited, want the one new file: the gate has the rest from the first serial", got.Awaited)
	}
	if err := y.ledger(t).Abandon(1, 2, "wrong", true, y.gates(t), y.now); err != nil {
		t.Fatal(err)
	}
	if got := y.survey(t, nil); got.Awaited.Blobs != 0 || got.Free.Blobs != len(content) {
		t.Errorf("given up: %+v is awaited, %+v can go", got.Awaited, got.Free)
	}
}

func TestPruneNeedsEveryManifest(t *testing.T) {
	y := newYard(t)
	s, _ := y.export(t, y.plan(t))
	if err := os.Remove(y.store.Path(s.Manifest)); err != nil {
		t.Fatal(err)
	}
	_, err := mirror.Survey(y.store, y.ledger(t), y.gates(t), nil)
	wantCode(t, "a manifest is lost", err, "cache/manifest-lost")
}

// TestPruneKeepsWhatOthersSealed: two projects with one store.
func TestPruneKeepsWhatOthersSealed(t *testing.T) {
	y := newYard(t)
	s, _ := y.export(t, y.plan(t))
	y.keep(t, y.receiptOf(t, y.now, bundle.Reads(), heldAs(s, bundle.HoldsAll)))
	if err := os.Remove(y.ledgerPath()); err != nil {
		t.Fatal(err)
	}
	if err := mirror.CreateLedger(y.ledgerPath(), channel); err != nil {
		t.Fatal(err)
	}
	content, _ := y.contentOf(t, s)
	if got := y.survey(t, nil); got.Free.Blobs != 0 || got.Awaited.Blobs < len(content) {
		t.Errorf("of a serial that another project sealed %+v can go, %+v is awaited", got.Free, got.Awaited)
	}
	if err := os.Remove(y.store.Path(s.Manifest)); err != nil {
		t.Fatal(err)
	}
	_, err := mirror.Survey(y.store, y.ledger(t), y.gates(t), nil)
	wantCode(t, "another project's manifest is lost", err, "cache/manifest-lost")
}

func TestRemoveWhatIsNotThere(t *testing.T) {
	y := newYard(t)
	if err := y.store.Remove(cas.DigestOf([]byte("nothing"))); err != nil {
		t.Error(err)
	}
}
