package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// medium is the file system that volumes are written to. Tests put one in its
// place that is small, or that fails at a byte of their choice.
type medium interface {
	room(dir string) (room, error)
	through(f *os.File) mediumFile // what a volume is written through
	rename(from, to string) error
	syncDir(dir string) error
	note(path string, b []byte) error // the journal: all of it or as it was
}

// mediumFile is a volume being written.
type mediumFile interface {
	io.Writer
	io.ReaderAt
	Sync() error
	Close() error
}

// room is what a medium can take.
type room struct {
	free   int64 // bytes
	file   int64 // of the largest file
	name   int64 // of the longest name
	ulimit bool  // it is not the medium that bounds the largest file, but this process
}

// realMedium is whatever is mounted.
type realMedium struct{}

func (realMedium) through(f *os.File) mediumFile    { return lockedFile{f} }
func (realMedium) rename(from, to string) error     { return os.Rename(from, to) }
func (realMedium) syncDir(dir string) error         { return cas.SyncDir(dir) }
func (realMedium) note(path string, b []byte) error { return cas.WriteBytes(path, 0o644, b) }

// lockedFile is a file of which one writer has the lock until it closes it.
type lockedFile struct{ *os.File }

// Close gives the lock back as well.
func (f lockedFile) Close() error { return cas.Unlock(f.File) }

// CheckMedium refuses early, with numbers, a medium that cannot take least bytes
// under the name path, in one file or in several.
func CheckMedium(path string, least int64, oneFile bool) error {
	r, err := realMedium{}.room(filepath.Dir(path))
	if err != nil {
		return err
	}
	size := int64(0)
	if oneFile {
		size = least
	}
	if err := r.checkFile(path, size); err != nil {
		return err
	}
	return r.checkSpace(filepath.Dir(path), least)
}

// longestSuffix is what is appended to a volume's name while it is written: that
// of a journal which is itself being replaced.
const longestSuffix = journalSuffix + cas.PartialSuffix

// checkFile refuses early, with numbers, what the medium can never take.
func (r room) checkFile(path string, size int64) error {
	if need := int64(len(filepath.Base(path)) + len(longestSuffix)); need > r.name {
		return problem.New("medium/name-too-long", "the file system of %s does not take names of %d bytes", path, need).
			With(fmt.Sprintf("needed:  %d bytes", need), fmt.Sprintf("limit:   %d bytes", r.name)).
			Hint("write to a file system that takes long names, such as vfat, exFAT or ext4")
	}
	if size > r.file {
		return fileTooLarge(path, size, r)
	}
	return nil
}

// checkSpace does the same for what has no room at the moment.
func (r room) checkSpace(dir string, need int64) error {
	if r.free >= need {
		return nil
	}
	return problem.New("medium/full", "there is not enough space in %s", dir).
		With(fmt.Sprintf("needed:  %d bytes", need), fmt.Sprintf("free:    %d bytes", r.free)).
		Hint("free space there, or write to another folder with --to")
}

func fileTooLarge(path string, need int64, r room) *problem.Problem {
	what, hint := "the file system of %s does not take a file of %d bytes", fmt.Sprintf("write smaller volumes with --volume-size %d, or to a file system without such a limit, such as exFAT or ext4", r.file)
	if r.ulimit {
		what, hint = "the limit of this process does not let it write %s with %d bytes", "raise the limit:  ulimit -f unlimited"
	}
	return problem.New("medium/file-too-large", what, path, need).
		With(fmt.Sprintf("needed:  %d bytes", need), fmt.Sprintf("limit:   %d bytes", r.file)).Hint("%s", hint)
}

// mediumError says what a failed write means for the person at the keyboard.
func mediumError(err error, m medium, path string, need int64) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		p := problem.New("medium/full", "%s does not fit: %w", path, err).With(fmt.Sprintf("needed:  %d bytes", need))
		if r, err := m.room(filepath.Dir(path)); err == nil {
			p = p.With(fmt.Sprintf("free:    %d bytes", r.free))
		}
		return p.Hint("free space there, or write to another folder with --to")
	case errors.Is(err, syscall.EFBIG):
		return problem.New("medium/file-too-large", "the file system of %s does not take a file of %d bytes: %w", path, need, err).
			Hint("write to a file system without such a limit, such as exFAT or ext4")
	case lost(err):
		return problem.New("medium/lost", "the medium that %s is written to does not answer any more: %w", path, err).
			Hint("put it in again and run the same command; what is on it for certain is not written twice")
	}
	return err
}

// lost tells the errors of a medium that broke or was taken away.
func lost(err error) bool {
	var fault onMedium
	if !errors.As(err, &fault) {
		return false
	}
	for _, no := range []syscall.Errno{syscall.EIO, syscall.ENXIO, syscall.ENODEV, syscall.ENOENT, syscall.ESTALE, syscall.ENOMEDIUM, syscall.ENOTCONN, syscall.EREMOTEIO} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// onMedium marks what the medium itself answered, apart from what the source of
// the content did.
type onMedium struct{ error }

func (e onMedium) Unwrap() error { return e.error }

func fromMedium(err error) error {
	if err == nil {
		return nil
	}
	return onMedium{err}
}

// readBackError tells what the medium lost from what has changed since an
// interrupted export wrote it: all before resumedAt.
func readBackError(name string, resumedAt int64, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var damaged *DamagedError
	var unreadable *UnreadableError
	if resumedAt > 0 && !errors.As(err, &unreadable) && (!errors.As(err, &damaged) || damaged.Offset < resumedAt) {
		return leftChanged(name, err)
	}
	p := problem.New("medium/readback", "the medium does not give back what was written to %s: %w", name, err)
	return p.With(evidenceOf(err)...).Hint("use another medium; this one loses data")
}

func evidenceOf(err error) []string {
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		return damaged.Evidence()
	}
	return nil
}

// leftChanged is about the beginning of a volume that another run wrote: who or
// what has changed it since, nobody knows.
func leftChanged(name string, err error) error {
	p := problem.New("medium/left-changed", "%s was begun by an export that was interrupted, and its beginning is not what was written then: %w", name, err)
	return p.With(evidenceOf(err)...).Hint("run the same command again: it begins anew; use another medium if that happens twice")
}
