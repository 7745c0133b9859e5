package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// xzReader reads the blocks of an xz stream. The container is taken apart here
// because its blocks name the size of their dictionary, up to 4 GiB, and the
// library allocates what they name. Checksums are not verified: the file as a
// whole has been.
type xzReader struct {
	in     *bufio.Reader
	check  int // bytes of checksum after each block
	window int64
	charge func(int64) error
	block  io.Reader // nil between two blocks
	count  *counting
	err    error // that ended it, io.EOF included
}

func (s *scan) newXZ(in *bufio.Reader, window int64) (*xzReader, error) {
	x := &xzReader{in: in, window: window, charge: s.charge}
	return x, x.header()
}

// header reads the twelve bytes that begin a stream.
func (x *xzReader) header() error {
	var h [12]byte
	if _, err := io.ReadFull(x.in, h[:]); err != nil {
		return err
	}
	if string(h[:6]) != xzMagic || h[6] != 0 || h[7] > 15 {
		return errors.New("no xz stream")
	}
	if h[7] > 0 {
		x.check = []int{4, 8, 16, 32, 64}[(h[7]-1)/3]
	}
	return nil
}

func (x *xzReader) Read(p []byte) (n int, err error) {
	if x.err == nil {
		n, x.err = x.read(p)
	}
	return n, x.err
}

func (x *xzReader) read(p []byte) (int, error) {
	for {
		if x.block == nil {
			if err := x.next(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := x.block.Read(p)
		if errors.Is(err, io.EOF) {
			x.block = nil
			err = x.blockEnd()
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// counting counts what was read, which decides the padding after a block.
type counting struct {
	in *bufio.Reader
	n  int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counting) ReadByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// next begins a block, or comes to the end of the stream: then either another
// one begins, or it returns io.EOF.
func (x *xzReader) next() error {
	size, err := x.in.ReadByte()
	if err != nil {
		return unexpected(err)
	}
	if size == 0 {
		return x.index()
	}
	h := make([]byte, int(size)*4+3) // with the checksum, without the size
	if _, err := io.ReadFull(x.in, h); err != nil {
		return unexpected(err)
	}
	dictionary, err := xzDictionary(h)
	if err != nil {
		return err
	}
	if dictionary > x.window {
		return fmt.Errorf("%w: a dictionary of %d bytes", errTooMany, dictionary)
	}
	// Clearing a dictionary is work as well, and a block may be tiny.
	if err := x.charge(dictionary); err != nil {
		return err
	}
	x.count = &counting{in: x.in}
	x.block, err = lzma.Reader2Config{DictCap: int(max(dictionary, lzma.MinDictCap))}.NewReader2(x.count)
	return err
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// xzDictionary reads the size that a block's only filter, LZMA2, names.
func xzDictionary(h []byte) (int64, error) {
	flags, rest := h[0], h[1:]
	if flags&0x3f != 0 {
		return 0, fmt.Errorf("%w: a block with several filters, or with unknown ones", errTooMany)
	}
	for _, bit := range []byte{0x40, 0x80} { // sizes, packed and unpacked
		if flags&bit == 0 {
			continue
		}
		n := 0
		for n < len(rest) && n < 9 && rest[n] >= 0x80 {
			n++
		}
		if n >= len(rest) {
			return 0, errors.New("a block with a broken header")
		}
		rest = rest[n+1:]
	}
	if len(rest) < 3 || rest[1] != 1 {
		return 0, errors.New("a block with a broken header")
	}
	if rest[0] != 0x21 {
		return 0, fmt.Errorf("%w: a block with the filter %#x", errTooMany, rest[0])
	}
	return lzma.DecodeDictCap(rest[2])
}

// blockEnd passes the padding and the checksum.
func (x *xzReader) blockEnd() error {
	_, err := x.in.Discard(int((4-x.count.n%4)%4) + x.check)
	return unexpected(err)
}

// index passes what ends a stream.
func (x *xzReader) index() error {
	records, err := x.number()
	if err != nil {
		return err
	}
	size := int64(1) + x.length(records)
	for range records {
		for range 2 {
			v, err := x.number()
			if err != nil {
				return err
			}
			size += x.length(v)
		}
	}
	if _, err := x.in.Discard(int((4-size%4)%4) + 4 + 12); err != nil { // padding, checksum, footer
		return unexpected(err)
	}
	return x.another()
}

func (x *xzReader) number() (v uint64, err error) {
	for shift := uint(0); shift < 63; shift += 7 {
		b, err := x.in.ReadByte()
		if err != nil {
			return 0, unexpected(err)
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, errors.New("a number is too long")
}

// length is how many bytes a number takes in its shortest form, the only one
// that the format allows.
func (x *xzReader) length(v uint64) int64 {
	n := int64(1)
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// another begins the next stream; io.EOF if there is none.
func (x *xzReader) another() error {
	for {
		four, err := x.in.Peek(4)
		if len(four) == 0 {
			return err
		}
		if len(four) < 4 {
			return io.ErrUnexpectedEOF
		}
		if string(four) != "\x00\x00\x00\x00" {
			return unexpected(x.header())
		}
		if _, err := x.in.Discard(4); err != nil {
			return err
		}
	}
}
