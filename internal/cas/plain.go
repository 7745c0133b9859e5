package cas

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// NotPlainError says that something else than a plain file of a bearable size is
// where such a file should be: a folder, a pipe, a device, or a link to whatever.
type NotPlainError struct{ Path, Found string }

func (e *NotPlainError) Error() string { return e.Path + " is not a plain file, but " + e.Found }

// Code is the stable code of this error.
func (e *NotPlainError) Code() string { return "file/not-plain" }

// Evidence says what is there.
func (e *NotPlainError) Evidence() []string {
	return []string{"file:   " + e.Path, "found:  " + e.Found}
}

// Remedy says what to do.
func (e *NotPlainError) Remedy() string { return "bring the file back from a backup" }

// blobNotPlain is what lies in the place of a blob. Its content comes again, so
// nobody needs a backup.
type blobNotPlain struct{ NotPlainError }

// Unwrap gives the error of any such file.
func (e *blobNotPlain) Unwrap() error { return &e.NotPlainError }

// Remedy says what to do.
func (e *blobNotPlain) Remedy() string {
	return "remove it, then bring its content again as it came: receive the bundle again, or plan and export again"
}

// OpenPlain opens a file of ours as os.OpenFile does, and nothing else than a
// plain file: nothing that is put into its place, such as a pipe that nobody
// writes to, keeps whoever opens it waiting.
func OpenPlain(path string, flags int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, perm)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, &NotPlainError{path, "a link"}
	case errors.Is(err, syscall.EISDIR):
		return nil, &NotPlainError{path, "a folder"}
	case errors.Is(err, syscall.ENXIO):
		return nil, &NotPlainError{path, "a socket, a pipe or a device"}
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &NotPlainError{path, kindOf(info.Mode())}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	}
	return "something else"
}

// ReadPlain reads a file of ours of at most so many bytes, opened by OpenPlain.
func ReadPlain(path string, most int64) ([]byte, error) {
	f, err := OpenPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, &NotPlainError{path, fmt.Sprintf("one of more than %d bytes", most)}
	}
	return b, nil
}
