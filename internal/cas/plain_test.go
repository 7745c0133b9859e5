package cas_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/packhof/packhof/internal/cas"
)

// TestReadPlain puts everything into the place of a file that can be there. None
// of it keeps the reader waiting.
func TestReadPlain(t *testing.T) {
	// A socket has a short path.
	dir, err := os.MkdirTemp("", "plain")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Chdir(dir)
	for name, put := range map[string]func(path string) error{
		"a folder":         func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":           func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link to a pipe": func(path string) error { return errors.Join(syscall.Mkfifo("pipe", 0o600), os.Symlink("pipe", path)) },
		"a link to a device": func(path string) error {
			return os.Symlink("/dev/zero", path)
		},
		"a link to a file": func(path string) error {
			return errors.Join(os.WriteFile("file", []byte("x"), 0o600), os.Symlink("file", path))
		},
		"a socket": func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { _ = l.Close() })
			}
			return err
		},
		"too much": func(path string) error { return os.WriteFile(path, make([]byte, 11), 0o600) },
	} {
		path := name
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		var notPlain *cas.NotPlainError
		if _, err := cas.ReadPlain(path, 10); !errors.As(err, &notPlain) || notPlain.Code() != "file/not-plain" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cas.ReadPlain("none", 10); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile("enough", []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := cas.ReadPlain("enough", 10); err != nil || string(b) != "0123456789" {
		t.Errorf("%q, %v", b, err)
	}
}
