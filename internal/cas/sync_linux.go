package cas

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// SyncAll makes everything last that was put before, names included, also by a
// Lazy store: one wait for the whole file system in place of one for each blob.
func (s *Store) SyncAll() error {
	d, err := os.Open(s.BlobsDir())
	if err != nil {
		return err
	}
	err = errors.Join(unix.Syncfs(int(d.Fd())), d.Close())
	if err != nil {
		return fmt.Errorf("sync the file system of %s: %w", s.dir, err)
	}
	return nil
}
