package cas

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// PartialSuffix marks a file that is being written. Nothing that ends in it
// is ever complete, and nothing that lacks it is ever half-written.
const PartialSuffix = ".partial"

// WriteFile replaces the file at path by what write produces, or leaves path
// as it was: temporary name in the same directory, sync, checked close,
// rename, sync of the directory. The temporary file is gone after an error.
func WriteFile(path string, perm fs.FileMode, write func(io.Writer) error) error {
	tmp, err := os.OpenFile(path+PartialSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	err = errors.Join(writeAndSync(tmp, write), tmp.Close())
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return SyncDir(filepath.Dir(path))
}

// WriteBytes is WriteFile for bytes in memory.
func WriteBytes(path string, perm fs.FileMode, b []byte) error {
	return WriteFile(path, perm, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

func writeAndSync(f *os.File, write func(io.Writer) error) error {
	if err := write(f); err != nil {
		return err
	}
	return f.Sync()
}

// SyncDir makes renames and new names in dir last.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = errors.Join(d.Sync(), d.Close())
	if err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}
