package inspect

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"
)

// zipEntry is one entry as the central directory has it.
type zipEntry struct {
	name         string
	flags        uint16
	method       uint16
	crc          uint32
	packed, size int64
	off          int64 // of its local header in the file
	data         int64 // of its content
}

const (
	flagEncrypted  = 0x1
	flagDescriptor = 0x8
	flagStrong     = 0x40
	methodStored   = 0
	methodDeflated = 8
)

func (e *zipEntry) described() bool { return e.flags&flagDescriptor != 0 }

func (s *scan) zipEntries(f *source, d zipDirectory, at place) ([]zipEntry, error) {
	if d.size > s.limits.Header {
		return nil, fmt.Errorf("%w: a directory of %d bytes", errTooMany, d.size)
	}
	var entries []zipEntry
	names := map[string]bool{}
	for c := f.cursor(d.begin); c.off < d.begin+d.size; {
		if err := s.enter(); err != nil {
			return nil, err
		}
		e, err := readEntry(c, d)
		if err != nil {
			return nil, err
		}
		if names[e.name] {
			s.find(at, CodeZipDuplicate, "%.200q", e.name)
		}
		names[e.name] = true
		s.zipName(e, at)
		entries = append(entries, e)
	}
	return entries, nil
}

// zipName finds names that an unpacking program might follow out of its
// folder.
func (s *scan) zipName(e zipEntry, at place) {
	if leadsOut(e.name) {
		s.find(at, CodeArchivePath, "%.200q", e.name)
	}
	if e.flags&(flagEncrypted|flagStrong) != 0 {
		s.unread(at, CodeZipEncrypted, "the entry %.200q is encrypted", e.name)
	}
}

func leadsOut(name string) bool {
	slashed := strings.ReplaceAll(name, "\\", "/")
	clean := path.Clean(slashed)
	return strings.HasPrefix(slashed, "/") || clean == ".." || strings.HasPrefix(clean, "../") || len(name) > 1 && name[1] == ':' || strings.ContainsRune(name, 0)
}

func readEntry(c *cursor, d zipDirectory) (zipEntry, error) {
	var h [46]byte
	if err := c.fill(h[:]); err != nil {
		return zipEntry{}, err
	}
	if string(h[:4]) != zipCentral {
		return zipEntry{}, errors.New("its directory has something else than entries")
	}
	short := func(off int) uint16 { return binary.LittleEndian.Uint16(h[off:]) }
	long := func(off int) uint64 { return uint64(binary.LittleEndian.Uint32(h[off:])) }
	name, err := c.text(uint64(short(28)), 65535)
	if err != nil {
		return zipEntry{}, err
	}
	extra, err := c.text(uint64(short(30)), 65535)
	if err != nil {
		return zipEntry{}, err
	}
	if err := c.skip(uint64(short(32))); err != nil {
		return zipEntry{}, err
	}
	sizes := [3]uint64{long(24), long(20), long(42)}
	if err := largeSizes(extra, sizes[:]); err != nil {
		return zipEntry{}, err
	}
	for _, n := range sizes {
		if n > uint64(d.end) && n != sizes[0] { // the size unpacked may be larger than the archive
			return zipEntry{}, errTooFar
		}
	}
	if sizes[0] >= unknownSize {
		return zipEntry{}, errTooFar
	}
	return zipEntry{
		name: name, flags: short(8), method: short(10), crc: uint32(long(16)),
		size: int64(sizes[0]), packed: int64(sizes[1]), off: int64(sizes[2]) + d.shift,
	}, nil
}

// largeSizes takes from the extra field what had no place in 32 bits.
func largeSizes(extra string, sizes []uint64) error {
	for len(extra) >= 4 {
		id, n := binary.LittleEndian.Uint16([]byte(extra)), int(binary.LittleEndian.Uint16([]byte(extra[2:])))
		extra = extra[4:]
		if n > len(extra) {
			return nil // padding that is no list: many writers do this
		}
		field := extra[:n]
		extra = extra[n:]
		if id != 1 {
			continue
		}
		for i := range sizes {
			if sizes[i] != 0xffffffff {
				continue
			}
			if len(field) < 8 {
				return errors.New("a large entry without its size")
			}
			sizes[i], field = binary.LittleEndian.Uint64([]byte(field)), field[8:]
		}
		return nil
	}
	return nil
}

// zipLocal reads the header in front of an entry.
func (s *scan) zipLocal(f *source, e *zipEntry, at place) error {
	var h [30]byte
	c := f.cursor(e.off)
	if err := c.fill(h[:]); err != nil {
		return err
	}
	if string(h[:4]) != zipLocal {
		return fmt.Errorf("the entry %.100q is not where the directory says", e.name)
	}
	name, err := c.text(uint64(binary.LittleEndian.Uint16(h[26:])), 65535)
	if err != nil {
		return err
	}
	if err := c.skip(uint64(binary.LittleEndian.Uint16(h[28:]))); err != nil {
		return err
	}
	e.data = c.off
	if e.packed > f.size-e.data {
		return errTooFar
	}
	flags, method := binary.LittleEndian.Uint16(h[6:]), binary.LittleEndian.Uint16(h[8:])
	crc, packed := binary.LittleEndian.Uint32(h[14:]), binary.LittleEndian.Uint32(h[18:])
	sized := flags&flagDescriptor == 0 && packed != 0xffffffff
	switch {
	case name != e.name:
		s.find(at, CodeZipMismatch, "the directory says %.100q, the entry itself %.100q", e.name, name)
		if leadsOut(name) {
			s.find(at, CodeArchivePath, "%.200q", name)
		}
	case method != e.method || (flags^e.flags)&(flagEncrypted|flagDescriptor) != 0:
		s.find(at, CodeZipMismatch, "the directory and the entry itself differ in how %.100q is stored", e.name)
	case sized && (int64(packed) != e.packed || crc != e.crc):
		s.find(at, CodeZipMismatch, "the directory and the entry itself differ in size or checksum of %.100q", e.name)
	}
	return nil
}

// zipMember looks into one entry. What its flags say is not believed: readers
// exist that ignore them.
func (s *scan) zipMember(f *source, e *zipEntry, at place) (Format, error) {
	if strings.HasSuffix(e.name, "/") && e.size == 0 && e.packed == 0 {
		return Empty, nil
	}
	within := at.inside(e.name)
	if within.depth > s.limits.Depth {
		s.unread(within, CodeArchiveLimit, "archives in archives, deeper than %d", s.limits.Depth)
		return Unknown, nil
	}
	packed, err := f.part(e.data, e.packed)
	if err != nil {
		return Unknown, err
	}
	switch e.method {
	case methodStored:
		if e.size != e.packed {
			s.find(at, CodeZipMismatch, "the stored entry %.100q has two sizes", e.name)
		}
		return s.look(packed, within)
	case methodDeflated:
		r := flate.NewReader(bufio.NewReader(packed.stream(0)))
		sum := crc32.NewIEEE()
		format, whole, err := s.lookStream(io.TeeReader(r, sum), e.size, within)
		if err == nil && whole && sum.Sum32() != e.crc {
			s.find(within, CodeZipCRC, "")
		}
		return format, err
	}
	s.unread(within, CodeOpaque, "entries with the compression method %d cannot be looked into here", e.method)
	return Unknown, nil
}
