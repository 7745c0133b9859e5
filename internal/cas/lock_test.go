package cas_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/packhof/packhof/internal/cas"
)

// TestUnlock gives a lock back that another descriptor of the same opening still
// has, as a child does that is just being started.
func TestUnlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f, next := open(), open()
	child, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if err := cas.Unlock(f); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(next.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Errorf("the child still has it: %v", err)
	}
	if err := errors.Join(syscall.Close(child), next.Close()); err != nil {
		t.Fatal(err)
	}
}
