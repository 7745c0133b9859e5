package gate

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/packhof/packhof/internal/problem"
)

// TestUnreadable: errors of the medium are told from those of the gate's disk.
func TestUnreadable(t *testing.T) {
	onMedium := unreadable(problem.New("x/y", "copy: %w", &fs.PathError{Op: "read", Path: "/media/usb/a.tar", Err: syscall.EIO}), "/media/usb/a.tar")
	if p := asProblem(onMedium); p.Code != "receive/unreadable" || !strings.HasPrefix(p.What, "a.tar cannot be read") || !errors.Is(onMedium, syscall.EIO) {
		t.Errorf("%+v", p)
	}
	ours := &fs.PathError{Op: "write", Path: "/data/store/a", Err: syscall.EIO}
	if err := unreadable(ours, "/media/usb/a.tar"); err != error(ours) {
		t.Errorf("an error of the gate's disk became %v", err)
	}
}
