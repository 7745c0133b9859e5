package inspect

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// packed looks into a compressed file: at the archive in it, or at the
// beginning of what else it is.
func (s *scan) packed(f *source, format Format, at place) error {
	name := strings.TrimSuffix(path.Base(at.name), path.Ext(at.name))
	if strings.EqualFold(path.Ext(at.name), ".tgz") || strings.EqualFold(path.Ext(at.name), ".txz") {
		name += ".tar"
	}
	within := at.inside(name)
	if within.depth > s.limits.Depth {
		return fmt.Errorf("%w: archives in archives, deeper than %d", errTooMany, s.limits.Depth)
	}
	if err := s.enter(); err != nil {
		return err
	}
	r, done, err := s.decoder(format, f.stream(0), at.depth)
	if err != nil {
		return err
	}
	defer done()
	_, _, err = s.lookStream(r, unknownSize, within)
	return err
}

// decoder unpacks one of the formats of a single compressed stream.
func (s *scan) decoder(format Format, r io.Reader, depth int) (plain io.Reader, done func(), err error) {
	window := s.limits.Window
	if depth > 0 {
		window = min(window, s.limits.Buffer)
	}
	done = func() {}
	in := bufio.NewReaderSize(r, mostBuffer)
	switch format {
	case Gzip:
		plain, err = gzip.NewReader(in)
	case Bzip2:
		plain = costly{s, bzip2.NewReader(in), costBzip2}
	case Zlib:
		plain, err = zlib.NewReader(in)
	case XZ:
		plain, err = s.newXZ(in, window)
		plain = costly{s, plain, costXZ}
	case Zstd:
		var d *zstd.Decoder
		d, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(window)))
		if err == nil {
			plain, done = d, d.Close
		}
	default:
		err = fmt.Errorf("no decoder for %s", format)
	}
	return plain, done, err
}

// What a byte out of a slow decoder takes of Limits.Bytes: the bound is there
// for the time as well. With the default it ends at 64 MiB out of bzip2 and
// 256 MiB out of xz, all members together.
const (
	costBzip2 = 16
	costXZ    = 4
)

// costly takes what comes out of a decoder for more than it is. The one time
// that every decoder pays is charged by unpacking.
type costly struct {
	scan *scan
	r    io.Reader
	cost int64
}

func (c costly) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if limit := c.scan.charge(int64(max(n, 0)) * (c.cost - 1)); limit != nil {
		return 0, limit
	}
	return n, err
}

// unpacking counts what comes out of a decoder. A decoder that panics, as
// some did over hostile input, says no more than that the input is malformed.
type unpacking struct {
	scan *scan
	r    io.Reader
}

func (u unpacking) Read(p []byte) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, fmt.Errorf("its decoder gave up: %v", r)
		}
	}()
	n, err = u.r.Read(p)
	if limit := u.scan.charge(int64(max(n, 0))); limit != nil {
		return 0, limit
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		err = fmt.Errorf("%w: %w", errTooMany, err)
	}
	return n, err
}

// lookStream looks at what can only be read once. A tar archive is followed to
// its end; of anything else the beginning is kept and looked at. whole tells
// that this was all of it.
func (s *scan) lookStream(r io.Reader, size int64, at place) (format Format, whole bool, err error) {
	in := bufio.NewReaderSize(unpacking{s, r}, mostBuffer)
	head, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return Unknown, false, s.settleStream(at, err)
	}
	if looksTar(head) {
		return Tar, false, s.tarStream(in, at)
	}
	begin, broken := io.ReadAll(io.LimitReader(in, s.limits.Buffer))
	if s.failed != nil {
		return Unknown, false, s.failed
	}
	f := &source{r: bytes.NewReader(begin), size: size, have: int64(len(begin))}
	whole = f.have < s.limits.Buffer && broken == nil
	if size != unknownSize && (f.have > size || whole && f.have < size) {
		s.find(at, CodeZipMismatch, "%d bytes are announced, and others come out", size)
		f.size = unknownSize
	}
	if whole {
		f.size = f.have
	}
	if format, err = s.look(f, at); err != nil {
		return format, whole, err
	}
	return format, whole, s.settleStream(at, broken)
}

// tarStream follows an archive that comes out of a decoder.
func (s *scan) tarStream(in *bufio.Reader, at place) error {
	head, err := in.Peek(in.Buffered())
	if err != nil {
		return err
	}
	begin := &source{r: bytes.NewReader(bytes.Clone(head)), size: unknownSize, have: int64(len(head))}
	if s.walk(begin, 0).convincing(begin.size) {
		if _, err := s.pickleBesides(begin, Tar, at); err != nil {
			return err
		}
	}
	if err := s.settle(at, Tar, s.tar(in, nil, at)); err != nil {
		return err
	}
	s.remark(Tar, at)
	return nil
}

// settleStream says of a broken stream that it is, whatever it would hold.
func (s *scan) settleStream(at place, err error) error {
	return s.settle(at, "archive", err)
}
