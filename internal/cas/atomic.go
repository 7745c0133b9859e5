package cas

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// PartialSuffix marks a file that is being written. Nothing that ends in it
// is ever complete, and nothing that lacks it is ever half-written.
const PartialSuffix = ".partial"

// WriteFile replaces the file at path by what write produces, or leaves path
// as it was: temporary name in the same directory, sync, checked close,
// rename, sync of the directory. The temporary file is gone after an error.
func WriteFile(path string, perm fs.FileMode, write func(io.Writer) error) error {
	tmp, err := CreatePartial(path, perm)
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

// CreatePartial makes the partial file of path anew, for reading and writing.
// What stands there is removed first, so that a link somebody put there leads
// nowhere.
func CreatePartial(path string, perm fs.FileMode) (*os.File, error) {
	partial := path + PartialSuffix
	if err := syscall.Unlink(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &fs.PathError{Op: "remove", Path: partial, Err: err}
	}
	return os.OpenFile(partial, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
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
