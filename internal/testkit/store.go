package testkit

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/packhof/packhof/internal/cas"
)

// CheckStore makes sure that every blob in a store is what its name says and
// that none is left half written, and returns how many there are.
func CheckStore(t testing.TB, store *cas.Store) int {
	t.Helper()
	entries, err := os.ReadDir(store.BlobsDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		d, err := cas.ParseHex(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		r, err := store.Open(d)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, r)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Errorf("in the store: %v", err)
		}
	}
	left, err := os.ReadDir(filepath.Join(store.Dir(), "ingest"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%d files are left in ingest", len(left))
	}
	return len(entries)
}
