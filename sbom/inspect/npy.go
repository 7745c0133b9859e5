package inspect

import (
	"errors"
	"fmt"
)

// Npy: a magic number, a version, the length of a header in two or four bytes,
// a Python dictionary as header, and the elements. Elements that are Python
// objects are a pickle.

const (
	npyMagic      = "\x93NUMPY"
	mostNpyHeader = 64 << 10
)

// npy looks at the arrays from the beginning on, one after the other, as
// programs read them that save several into one file.
func (s *scan) npy(f *source, at place) error {
	for off := int64(0); ; {
		if off > 0 {
			if err := s.enter(); err != nil {
				return err
			}
		}
		end, err := s.npyArray(f, off, at)
		if err != nil || end >= f.size {
			return err
		}
		var sign [len(npyMagic)]byte
		err = f.cursor(end).fill(sign[:min(int64(len(sign)), f.size-end)])
		if err != nil {
			return err
		}
		if string(sign[:]) != npyMagic {
			s.find(at, CodeTrailing, "after the last array")
			return s.npyBehind(f, end, at)
		}
		off = end
	}
}

// npyArray looks at one array and says where it ends. Behind a header that
// cannot be read, and for objects, that is the end of the file.
func (s *scan) npyArray(f *source, off int64, at place) (end int64, err error) {
	c := f.cursor(off + int64(len(npyMagic)))
	text, err := npyHeaderText(c)
	if err != nil {
		return 0, err
	}
	header, err := readNpyHeader(text)
	switch {
	case err != nil:
		s.find(at, CodePickle, "its elements may be Python objects")
		return f.size, errors.Join(err, s.npyBehind(f, c.off, at))
	case header.objects:
		s.find(at, CodePickle, "its elements are Python objects")
		if c.left() <= 0 {
			return f.size, nil
		}
		part, err := f.part(c.off, c.left())
		if err != nil {
			return 0, err
		}
		return f.size, s.settle(at, Pickle, s.pickles(part, 0, at))
	case c.left() < 0 || header.bytes > uint64(c.left()):
		return 0, errors.New("it has fewer elements than its header says")
	}
	return c.off + int64(header.bytes), nil
}

func npyHeaderText(c *cursor) (string, error) {
	version, err := c.little(2)
	if err != nil {
		return "", err
	}
	width := 4
	if version&0xff == 1 {
		width = 2
	}
	n, err := c.little(width)
	if err != nil {
		return "", err
	}
	if n > mostNpyHeader {
		return "", fmt.Errorf("%w: a header of %d bytes", errTooMany, n)
	}
	return c.text(n, int(n))
}

// npyBehind looks at what follows the arrays as at a file of its own.
func (s *scan) npyBehind(f *source, off int64, at place) error {
	if off >= f.size {
		return nil
	}
	within := at.inside(fmt.Sprintf("bytes at %d", off))
	within.name = ""
	if within.depth > s.limits.Depth {
		return fmt.Errorf("%w: files in files, deeper than %d", errTooMany, s.limits.Depth)
	}
	if err := s.enter(); err != nil {
		return err
	}
	part, err := f.part(off, f.size-off)
	if err != nil {
		return err
	}
	_, err = s.look(part, within)
	return err
}
