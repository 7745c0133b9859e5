//go:build !linux

package cas

import (
	"errors"
	"os"
	"path/filepath"
)

// SyncAll makes everything last that was put before, names included, also by a
// Lazy store.
func (s *Store) SyncAll() error {
	blobs, err := os.ReadDir(s.BlobsDir())
	if err != nil {
		return err
	}
	for _, b := range blobs {
		f, err := os.Open(filepath.Join(s.BlobsDir(), b.Name()))
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return s.SyncNames()
}
