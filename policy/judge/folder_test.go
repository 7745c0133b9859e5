package judge

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFoldersOfTheKilledAreRemoved: what nobody holds goes, and nothing else.
func TestFoldersOfTheKilledAreRemoved(t *testing.T) {
	parent := t.TempDir()
	running, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	killed, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := killed.held.Close(); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	file, other := filepath.Join(parent, folderPrefix+"file"), filepath.Join(parent, "other")
	link, target := filepath.Join(parent, folderPrefix+"link"), t.TempDir()
	for _, err := range []error{os.WriteFile(file, nil, 0o600), os.Mkdir(other, 0o700), os.Symlink(target, link), os.WriteFile(filepath.Join(killed.path, "left"), nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	next, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(killed.path); !os.IsNotExist(err) {
		t.Errorf("the folder of the killed one: %v", err)
	}
	for _, path := range []string{running.path, next.path, file, other, link, target} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	for _, f := range []*folder{running, next} {
		if err := f.remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(f.path); !os.IsNotExist(err) {
			t.Errorf("%s is there still: %v", f.path, err)
		}
	}
}

func TestAFolderIsHeldOnce(t *testing.T) {
	f, err := newFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := hold(f.path); again != nil || err != nil {
		t.Errorf("held twice: %v", err)
	}
	if err := f.remove(); err != nil {
		t.Fatal(err)
	}
	if gone, err := hold(f.path); gone != nil || err != nil {
		t.Errorf("held, and gone: %v", err)
	}
}
