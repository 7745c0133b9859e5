package inspect

import (
	"fmt"
	"io"
	"math"
)

// root is the file as the caller gave it. Whatever its reader does wrong ends
// the inspection; that it ends early is a finding.
type root struct {
	scan *scan
	r    io.ReaderAt
}

func (f *root) ReadAt(p []byte, off int64) (int, error) {
	s := f.scan
	if err := s.charge(int64(len(p))); err != nil {
		return 0, err
	}
	n, err := f.r.ReadAt(p, off)
	switch {
	case n < 0 || n > len(p):
		s.failed = fmt.Errorf("its reader returned %d bytes for %d", n, len(p))
		return 0, s.failed
	case n == len(p):
		return n, nil
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return n, errShort
	case err == nil:
		err = io.ErrNoProgress
	}
	s.failed = err
	return n, err
}

// charge takes bytes off what may be read and unpacked.
func (s *scan) charge(n int64) error {
	if err := s.ctx.Err(); err != nil {
		s.failed = err
		return err
	}
	if n > s.limits.Bytes-s.used {
		return errLimit
	}
	if !s.limits.Total.take(n) {
		return errTotal
	}
	s.used += n
	return nil
}

// source is something to look at: the file, a stored member, or the beginning
// of a compressed one.
type source struct {
	r    io.ReaderAt
	base int64 // where it begins in r
	size int64 // unknownSize if nobody said
	have int64 // bytes that r can give
}

// unknownSize is the size of what was unpacked in part and announced nothing.
const unknownSize = math.MaxInt64

func (f *source) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= f.size {
		return 0, io.EOF
	}
	want, end := int64(len(p)), error(nil)
	if want > f.size-off {
		want, end = f.size-off, io.EOF
	}
	if off >= f.have {
		return 0, errBeyond
	}
	if want > f.have-off {
		want, end = f.have-off, errBeyond
	}
	n, err := f.r.ReadAt(p[:want], f.base+off)
	if err != nil && int64(n) < want {
		return n, err
	}
	return n, end
}

// part is a piece of it that lies there as it is.
func (f *source) part(off, size int64) (*source, error) {
	if off < 0 || size < 0 || off > f.size || size > f.size-off {
		return nil, errTooFar
	}
	return &source{r: f, base: off, size: size, have: size}, nil
}

// head is its beginning, at most n bytes.
func (f *source) head(n int64) ([]byte, error) {
	b := make([]byte, min(n, f.size, f.have))
	if len(b) == 0 {
		return b, nil
	}
	got, err := f.ReadAt(b, 0)
	if got == len(b) {
		return b, nil
	}
	return b[:got], err
}

// stream reads it from an offset on.
func (f *source) stream(off int64) io.Reader { return io.NewSectionReader(f, off, f.size-off) }
