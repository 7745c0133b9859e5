package bundle_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

func newStore(t testing.TB) *cas.Store {
	t.Helper()
	store, err := cas.OpenStore(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// copyTo opens, verifies and copies a volume, as a gate does.
func copyTo(ctx context.Context, f *testkit.Forged, volume []byte, store *cas.Store) error {
	sealed, err := bundle.Open(bytes.NewReader(volume), int64(len(volume)), "plant-7-000001.tar")
	if sealed == nil {
		return err
	}
	b, err := sealed.Verify(f.Trust, testkit.Noon())
	if err != nil {
		return err
	}
	return b.CopyTo(ctx, store, bundle.CopyOptions{})
}

// names lists what lies in a store under a name, and what is on its way.
func names(t testing.TB, store *cas.Store) (blobs, ingest int) {
	t.Helper()
	list, err := os.ReadDir(store.BlobsDir())
	if err != nil {
		t.Fatal(err)
	}
	rest, err := os.ReadDir(filepath.Join(store.Dir(), "ingest"))
	if err != nil {
		t.Fatal(err)
	}
	return len(list), len(rest)
}

// empty takes everything out of a store, which proves that it all was right:
// what lies under a name is what the name says.
func empty(t *testing.T, store *cas.Store) {
	t.Helper()
	list, err := os.ReadDir(store.BlobsDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		path := filepath.Join(store.BlobsDir(), entry.Name())
		b, err := os.ReadFile(path)
		if err != nil || cas.DigestOf(b).Hex() != entry.Name() {
			t.Fatalf("wrong bytes are under the name %s: %v", entry.Name(), err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCopyToBringsEveryBlobOnce(t *testing.T) {
	f := testkit.Forge(t, nil)
	store := newStore(t)
	b := genuine(t, f)
	for round := range 2 {
		var seen int64
		if err := b.CopyTo(t.Context(), store, bundle.CopyOptions{Observe: func(n int64) { seen += n }}); err != nil {
			t.Fatal(err)
		}
		if seen != f.Manifest.Totals.Bytes {
			t.Errorf("round %d: told of %d bytes, the blobs have %d", round, seen, f.Manifest.Totals.Bytes)
		}
	}
	if blobs, ingest := names(t, store); blobs != len(f.Manifest.Blobs) || ingest != 0 {
		t.Errorf("%d blobs and %d unfinished ones, want %d and none", blobs, ingest, len(f.Manifest.Blobs))
	}
	for _, blob := range f.Manifest.Blobs {
		got, err := store.ReadAll(blob.Digest, blob.Size)
		if err != nil || !bytes.Equal(got, f.Content[blob.Digest]) {
			t.Errorf("blob %s: %v", blob.Digest, err)
		}
	}
	fromStore, err := bundle.OpenSealed("case 1", f.Head, bundle.StoreContent(store)).Verify(f.Trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	if err := fromStore.Check(t.Context(), nil); err != nil {
		t.Errorf("opened from the store: %v", err)
	}
	if err := fromStore.CopyTo(t.Context(), newStore(t), bundle.CopyOptions{}); err != nil {
		t.Errorf("copied from the store: %v", err)
	}
}

// TestT10CopyOfFlippedBytes holds CopyTo to what Check is held to: every
// eleventh byte behind the head, whose bytes never come as far as a copy.
func TestT10CopyOfFlippedBytes(t *testing.T) {
	f := testkit.Forge(t, nil)
	store := newStore(t).Lazy() // thousands of copies need not last
	for i := bytes.Index(f.Volume, []byte("blobs/sha256/")); i < len(f.Volume); i += 11 {
		changed := bytes.Clone(f.Volume)
		changed[i] ^= 1
		if err := copyTo(t.Context(), f, changed, store); err == nil {
			t.Fatalf("byte %d was flipped, and the bundle was copied", i)
		}
		empty(t, store)
	}
	if _, ingest := names(t, store); ingest != 0 {
		t.Errorf("%d unfinished blobs were left", ingest)
	}
}

// TestCopyToGoesOn brings what an interrupted copy left out.
func TestCopyToGoesOn(t *testing.T) {
	f := testkit.Forge(t, nil)
	store := newStore(t)
	ctx, stop := context.WithCancel(t.Context())
	b := genuine(t, f)
	if err := b.CopyTo(ctx, store, bundle.CopyOptions{Observe: func(int64) { stop() }}); !errors.Is(err, context.Canceled) {
		t.Fatalf("stopped in the middle: %v", err)
	}
	before, ingest := names(t, store)
	if before >= len(f.Manifest.Blobs) || ingest != 0 {
		t.Fatalf("after the stop: %d blobs, %d unfinished", before, ingest)
	}
	if err := b.CopyTo(t.Context(), store, bundle.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if after, _ := names(t, store); after != len(f.Manifest.Blobs) {
		t.Errorf("%d blobs, want %d", after, len(f.Manifest.Blobs))
	}
}
