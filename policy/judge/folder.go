package judge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// folderPrefix begins the name of the folder of each run.
const folderPrefix = "packhof-judge-"

// folder is an empty folder for one run of a judge. It is locked for as long
// as this process has it, however that ends: folders of judges that were killed
// are those which nobody holds.
type folder struct {
	path string
	held *os.File
}

// newFolder makes a folder in parent ("": the system's for what is temporary),
// and removes there what killed processes of this user have left.
func newFolder(parent string) (*folder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	if err := sweep(parent); err != nil {
		return nil, err
	}
	const tries = 10 // somebody else may sweep a new folder away before it is held
	for range tries {
		path, err := os.MkdirTemp(parent, folderPrefix)
		if err != nil {
			return nil, err
		}
		held, err := hold(path)
		if held != nil || err != nil {
			return &folder{path, held}, err
		}
	}
	return nil, fmt.Errorf("%s: folders are removed as soon as they are made", parent)
}

// hold locks a folder; nil if somebody else holds it, or it is gone.
func hold(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = nil
		}
		return nil, errors.Join(err, f.Close())
	}
	opened, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	there, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(opened, there) {
		return nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// remove removes the folder and lets go of it.
func (f *folder) remove() error { return errors.Join(os.RemoveAll(f.path), f.held.Close()) }

// sweep removes folders of runs that nobody holds any more. Those of other
// users are theirs.
func sweep(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
			continue
		}
		path := filepath.Join(parent, e.Name())
		held, err := hold(path)
		if err == nil && held != nil {
			err = (&folder{path, held}).remove()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
