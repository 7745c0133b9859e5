package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Zip archives are read here and not by archive/zip, since the ways in which
// an archive is broken are what is looked for: readers differ in which of two
// contradicting directories they believe.

const (
	zipEnd       = "PK\x05\x06"
	zipEnd64     = "PK\x06\x06"
	zipLocator64 = "PK\x06\x07"
	zipCentral   = "PK\x01\x02"
	zipLocal     = "PK\x03\x04"
	endSize      = 22
	mostComment  = 65535
)

// zipDirectory is where the central directory of an archive lies.
type zipDirectory struct {
	begin, size int64
	shift       int64 // what must be added to the archive's own offsets
	end         int64 // where the end record begins
}

// endsInZip tells whether a source that begins as something else ends with a
// directory of a zip archive. Of members only the plain form is looked for.
func (s *scan) endsInZip(f *source, at place) (bool, error) {
	if f.size < endSize {
		return false, nil
	}
	most := int64(endSize)
	if at.depth == 0 {
		most += mostComment
	}
	tail, from, err := zipTail(f, most)
	if err != nil {
		return false, err
	}
	i := bytes.LastIndex(tail, []byte(zipEnd))
	if i < 0 || len(tail)-i < endSize {
		return false, nil
	}
	d, err := readEnd(f, tail[i:], from+int64(i))
	if err != nil {
		return false, skipMalformed(s, err)
	}
	var sign [4]byte
	if d.size == 0 {
		return false, nil
	}
	if err := f.cursor(d.begin).fill(sign[:]); err != nil {
		return false, skipMalformed(s, err)
	}
	return string(sign[:]) == zipCentral, nil
}

// skipMalformed drops an error that only says that this is no zip archive.
func skipMalformed(s *scan, err error) error {
	if s.failed != nil || isBound(err) {
		return err
	}
	return nil
}

func zipTail(f *source, most int64) (tail []byte, from int64, err error) {
	from = max(0, f.size-most)
	tail = make([]byte, f.size-from)
	return tail, from, f.cursor(from).fill(tail)
}

// findEnd looks for the end record as most readers do: from the end.
func (s *scan) findEnd(f *source, at place) (zipDirectory, error) {
	if f.size == unknownSize {
		return zipDirectory{}, errBeyond
	}
	tail, from, err := zipTail(f, endSize+mostComment)
	if err != nil {
		return zipDirectory{}, err
	}
	i := bytes.LastIndex(tail, []byte(zipEnd))
	if i < 0 || len(tail)-i < endSize {
		return zipDirectory{}, errors.New("it has no end record")
	}
	comment := int(binary.LittleEndian.Uint16(tail[i+20:]))
	if rest := len(tail) - i - endSize; rest != comment {
		s.find(at, CodeZipTrailing, "%d bytes follow the end record, and %d are announced", rest, comment)
	}
	d, err := readEnd(f, tail[i:], from+int64(i))
	if err != nil {
		return d, err
	}
	if behind := max(d.begin+d.size-from, 0); behind < int64(i) && bytes.Contains(tail[behind:i], []byte(zipEnd)) {
		s.find(at, CodeZipMismatch, "there is more than one end record")
	}
	return d, nil
}

// readEnd reads the end record at an offset, and the larger one in front of it.
func readEnd(f *source, record []byte, off int64) (zipDirectory, error) {
	d := zipDirectory{size: int64(binary.LittleEndian.Uint32(record[12:])), end: off}
	begin := uint64(binary.LittleEndian.Uint32(record[16:]))
	if off >= 20 {
		var locator [20]byte
		if err := f.cursor(off - 20).fill(locator[:]); err != nil {
			return d, err
		}
		if string(locator[:4]) == zipLocator64 {
			return readEnd64(f, off-20, binary.LittleEndian.Uint64(locator[8:]))
		}
	}
	return d.placed(begin)
}

func readEnd64(f *source, locator int64, at uint64) (zipDirectory, error) {
	var record [56]byte
	for _, off := range []int64{locator - 56, int64(at)} { // where it should lie, and where it is said to
		if off < 0 || off > locator-56 {
			continue
		}
		if err := f.cursor(off).fill(record[:]); err != nil {
			return zipDirectory{}, err
		}
		if string(record[:4]) != zipEnd64 {
			continue
		}
		size := binary.LittleEndian.Uint64(record[40:])
		if size > uint64(off) {
			return zipDirectory{}, errTooFar
		}
		return zipDirectory{size: int64(size), end: off}.placed(binary.LittleEndian.Uint64(record[48:]))
	}
	return zipDirectory{}, errors.New("its large end record is not where it should be")
}

// placed computes where the directory must lie: right in front of its end.
func (d zipDirectory) placed(begin uint64) (zipDirectory, error) {
	d.begin = d.end - d.size
	if d.begin < 0 || begin > uint64(d.begin) {
		return d, errors.New("its directory lies outside of it")
	}
	d.shift = d.begin - int64(begin)
	return d, nil
}

// zip looks at an archive and its entries.
func (s *scan) zip(f *source, at place) (Format, error) {
	d, err := s.findEnd(f, at)
	if err != nil {
		return Zip, err
	}
	entries, err := s.zipEntries(f, d, at)
	if err != nil {
		return Zip, err
	}
	if err := s.zipLocals(f, d, entries, at); err != nil {
		return Zip, err
	}
	var kinds []Format
	for i := range entries {
		kind, err := s.zipMember(f, &entries[i], at)
		if err != nil {
			return Zip, err
		}
		kinds = append(kinds, kind)
	}
	return s.zipKind(entries, kinds, at), nil
}

// zipKind says what the archive is for, by what its entries are.
func (s *scan) zipKind(entries []zipEntry, kinds []Format, at place) Format {
	npy, names, torch := len(entries) > 0, map[string]bool{}, false
	for i, e := range entries {
		npy = npy && kinds[i] == Npy
		names[e.name] = true
		_, below, _ := strings.Cut(e.name, "/")
		torch = torch || e.name == "data.pkl" || below == "data.pkl"
	}
	switch {
	case torch:
		for _, e := range entries {
			if _, below, _ := strings.Cut(e.name, "/"); strings.HasPrefix(below, "code/") || below == "constants.pkl" {
				s.find(at, CodeTorchScript, "%s", e.name)
				break
			}
		}
		return TorchZip
	case npy:
		return Npz
	case names["config.json"] && names["metadata.json"]:
		return Keras
	}
	return Zip
}

// zipLocals holds the headers in front of the entries against the directory,
// and looks for bytes that belong to no entry.
func (s *scan) zipLocals(f *source, d zipDirectory, entries []zipEntry, at place) error {
	order := make([]*zipEntry, len(entries))
	for i := range entries {
		order[i] = &entries[i]
	}
	slices.SortFunc(order, func(a, b *zipEntry) int { return int(max(-1, min(1, a.off-b.off))) })
	end := int64(0)
	for i, e := range order {
		if err := s.zipLocal(f, e, at); err != nil {
			return err
		}
		switch gap := e.off - end; {
		case i == 0 && gap > 0:
			s.find(at, CodeZipPrefix, "%d bytes stand in front of the archive", gap)
		case gap < 0:
			s.find(at, CodeZipMismatch, "entries overlap: %.100q", e.name)
		case gap > 24 || gap > 0 && e.descriptorBefore(order, i): // a data descriptor has 12 to 24 bytes
			s.find(at, CodeZipHidden, "%d bytes in front of %.100q belong to no entry", gap, e.name)
		}
		end = max(end, e.data+e.packed)
	}
	if d.begin < end {
		return fmt.Errorf("entries reach into its directory")
	}
	if gap := d.begin - end; len(order) > 0 && (gap > 24 || gap > 0 && !order[len(order)-1].described()) {
		s.find(at, CodeZipHidden, "%d bytes in front of the directory belong to no entry", gap)
	} else if len(order) == 0 && gap > 0 {
		s.find(at, CodeZipPrefix, "%d bytes stand in front of the archive", gap)
	}
	return nil
}

// descriptorBefore tells that the entry before this one has no data
// descriptor, so that nothing may stand between the two.
func (e *zipEntry) descriptorBefore(order []*zipEntry, i int) bool {
	return i > 0 && !order[i-1].described()
}
