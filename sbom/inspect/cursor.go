package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// cursor reads a source forwards, with a small buffer, and can skip what it
// need not see.
type cursor struct {
	f     *source
	off   int64
	buf   []byte // from start on
	start int64
}

// The buffer begins small, since many members are looked at no further.
const (
	firstBuffer = 512
	mostBuffer  = 32 << 10
)

func (f *source) cursor(off int64) *cursor { return &cursor{f: f, off: off} }

// left is what follows.
func (c *cursor) left() int64 { return c.f.size - c.off }

// window gives at least one byte at the offset.
func (c *cursor) window() ([]byte, error) {
	if i := c.off - c.start; i >= 0 && i < int64(len(c.buf)) {
		return c.buf[i:], nil
	}
	if n := min(mostBuffer, max(firstBuffer, 2*cap(c.buf))); n > cap(c.buf) {
		c.buf = make([]byte, n)
	}
	c.buf, c.start = c.buf[:min(int64(cap(c.buf)), max(c.left(), 0))], c.off
	n, err := c.f.ReadAt(c.buf, c.off)
	c.buf = c.buf[:n]
	if n > 0 {
		return c.buf, nil
	}
	if err == nil {
		err = io.EOF
	}
	return nil, err
}

func (c *cursor) byte() (byte, error) {
	w, err := c.window()
	if err != nil {
		return 0, err
	}
	c.off++
	return w[0], nil
}

// fill reads exactly len(p) bytes.
func (c *cursor) fill(p []byte) error {
	for len(p) > 0 {
		w, err := c.window()
		if err != nil {
			return err
		}
		n := copy(p, w)
		p = p[n:]
		c.off += int64(n)
	}
	return nil
}

var errTooFar = errors.New("a length leads behind its end")

// skip passes over n bytes.
func (c *cursor) skip(n uint64) error {
	if c.left() < 0 || n > uint64(c.left()) {
		return errTooFar
	}
	c.off += int64(n)
	return nil
}

// text reads n bytes and gives the first keep of them.
func (c *cursor) text(n uint64, keep int) (string, error) {
	if c.left() < 0 || n > uint64(c.left()) {
		return "", errTooFar
	}
	b := make([]byte, min(n, uint64(keep)))
	if err := c.fill(b); err != nil {
		return "", err
	}
	return string(b), c.skip(n - uint64(len(b)))
}

// line reads to a line feed, which is not part of it, and gives the first keep
// bytes.
func (c *cursor) line(keep int) (line string, cut bool, err error) {
	var b []byte
	for {
		w, err := c.window()
		if err != nil {
			return "", false, err
		}
		end := bytes.IndexByte(w, '\n')
		found := end >= 0
		if !found {
			end = len(w)
		}
		take := min(end, keep-len(b))
		cut = cut || take < end
		b = append(b, w[:take]...)
		c.off += int64(end)
		if found {
			c.off++
			return string(b), cut, nil
		}
	}
}

// little reads an unsigned number of 1, 2, 4 or 8 bytes, little endian.
func (c *cursor) little(width int) (uint64, error) {
	var b [8]byte
	if err := c.fill(b[:width]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// varint reads a number as protobuf and xz write it.
func (c *cursor) varint() (uint64, error) {
	var v uint64
	for shift := uint(0); shift < 64; shift += 7 {
		b, err := c.byte()
		if err != nil {
			return 0, err
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, errors.New("a number is too long")
}
