package files

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// readIn reads a file right below an opened folder into b. It follows no link.
// A file of its own for each of very many small ones would cost more than
// reading them.
func readIn(folder *os.File, name string, b []byte) (n int, err error) {
	fd, err := syscall.Openat(int(folder.Fd()), name, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, syscall.Close(fd)) }()
	for n < len(b) {
		m, err := syscall.Read(fd, b[n:])
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return n, err
		case m == 0:
			return n, io.EOF
		default:
			n += m
		}
	}
	return n, nil
}
