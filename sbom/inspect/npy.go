package inspect

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Npy: a magic number, a version, the length of a header in two or four bytes,
// a Python dictionary as header, and the elements. Elements that are Python
// objects are a pickle.

// plainType is an element type that cannot be an object, where the header has
// one type for all of an element.
var plainType = regexp.MustCompile(`'descr'\s*:\s*'[<>|=]?(\?|b1|[iu][1248]|f(2|4|8|12|16)|c(8|16|24|32)|[SUaV]\d+|[mM]8(\[\d*[a-zA-Zμ]+\])?)'`)

// objectType is a type, or part of one, that is or could be spelt to be an
// object.
var objectType = regexp.MustCompile(`['"][<>|=]?O|(?i)object|\\`)

const mostNpyHeader = 64 << 10

func (s *scan) npy(f *source, at place) error {
	c := f.cursor(6)
	version, err := c.little(2)
	if err != nil {
		return err
	}
	width := 4
	if version&0xff == 1 {
		width = 2
	}
	n, err := c.little(width)
	if err != nil {
		return err
	}
	if n > mostNpyHeader {
		return fmt.Errorf("%w: a header of %d bytes", errTooMany, n)
	}
	header, err := c.text(n, int(n))
	if err != nil {
		return err
	}
	switch {
	case plainType.MatchString(header) && strings.Count(header, "descr") == 1:
		return nil
	case !strings.Contains(header, "descr"):
		return errors.New("a header without the type of its elements")
	case !objectType.MatchString(header):
		return nil
	}
	s.find(at, CodePickle, "its elements are Python objects")
	if c.left() <= 0 {
		return nil
	}
	part, err := f.part(c.off, c.left())
	if err != nil {
		return err
	}
	return s.settle(at, Pickle, s.pickles(part, 0, at))
}
