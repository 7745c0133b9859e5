package bundle

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// volumeContent is the content of volumes that were held against their
// manifest: blobs put together from their pieces, wherever these lie.
type volumeContent map[Digest]*pieced

// pieced is a blob and the pieces of it that there are, by offset.
type pieced struct {
	size   int64
	pieces []located
}

// located is a piece of a blob in a volume.
type located struct {
	volume *volume
	entry  entry
	offset int64 // of the piece within its blob
}

func (l located) end() int64 { return l.offset + l.entry.size }

// contentOf needs volumes whose info is set.
func contentOf(volumes []*volume, m *Manifest) volumeContent {
	c := volumeContent{}
	for _, v := range volumes {
		list := entriesOf(m, v.info)
		blobs := v.entries[len(v.entries)-1-len(list):] // the last one is SHA256SUMS
		for i, e := range list {
			s := c[e.Blob]
			if s == nil {
				s = &pieced{size: e.blob.Size}
				c[e.Blob] = s
			}
			piece := located{v, blobs[i], e.Offset}
			if e.whole() && len(s.pieces) == 1 && s.pieces[0].entry.size == s.size {
				s.pieces[0] = piece // metadata stands in every volume: one is enough
				continue
			}
			s.pieces = append(s.pieces, piece)
		}
	}
	for _, s := range c {
		slices.SortStableFunc(s.pieces, func(a, b located) int { return cmp.Compare(a.offset, b.offset) })
	}
	return c
}

// gaps lists what of the blob is in no piece.
func (s *pieced) gaps() []Piece {
	var gaps []Piece
	var at int64
	for _, p := range s.pieces {
		if p.offset > at {
			gaps = append(gaps, Piece{Offset: at, Length: p.offset - at})
		}
		at = max(at, p.end())
	}
	if at < s.size {
		gaps = append(gaps, Piece{Offset: at, Length: s.size - at})
	}
	return gaps
}

// seams lists the chunks that are all there and lie across pieces.
func (s *pieced) seams() []int {
	var seams []int
	asked := map[int]bool{}
	for _, p := range s.pieces {
		for _, at := range []int64{p.offset, p.end()} {
			n := int(at / ChunkSize)
			if at%ChunkSize == 0 || at == s.size || asked[n] {
				continue
			}
			asked[n] = true
			if s.covers(n) {
				seams = append(seams, n)
			}
		}
	}
	return seams
}

// covered lists the chunks that are all there.
func (s *pieced) covered() []int {
	var chunks []int
	for n := range int((s.size + ChunkSize - 1) / ChunkSize) {
		if s.covers(n) {
			chunks = append(chunks, n)
		}
	}
	return chunks
}

// covers tells whether all of chunk n is in some piece.
func (s *pieced) covers(n int) bool {
	at := int64(n) * ChunkSize
	for end := min(at+ChunkSize, s.size); at < end; {
		p, ok := s.find(at)
		if !ok {
			return false
		}
		at = p.end()
	}
	return true
}

// Has implements Content: every byte is there.
func (c volumeContent) Has(d Digest) (bool, error) {
	s, ok := c[d]
	return ok && len(s.gaps()) == 0, nil
}

// Open implements Content. What it gives can seek.
func (c volumeContent) Open(d Digest) (io.ReadCloser, error) {
	if there, _ := c.Has(d); !there {
		return nil, fmt.Errorf("blob %s in these volumes: %w", d, fs.ErrNotExist)
	}
	s := c[d]
	return struct {
		*io.SectionReader
		io.Closer
	}{io.NewSectionReader(s, 0, s.size), io.NopCloser(nil)}, nil
}

// ReadAt reads across pieces.
func (s *pieced) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) && at < s.size {
		piece, ok := s.find(at)
		if !ok {
			return n, fmt.Errorf("byte %d of the blob is in no volume: %w", at, fs.ErrNotExist)
		}
		part := p[n:min(int64(len(p)), int64(n)+piece.end()-at)]
		m, err := piece.volume.file.ReadAt(part, piece.entry.offset+at-piece.offset)
		n, at = n+m, at+int64(m)
		if m < len(part) {
			return n, cmp.Or(err, io.ErrUnexpectedEOF)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// find gives a piece that holds the byte.
func (s *pieced) find(at int64) (located, bool) {
	after, _ := slices.BinarySearchFunc(s.pieces, at+1, func(p located, at int64) int { return cmp.Compare(p.offset, at) })
	for i := after - 1; i >= 0; i-- {
		if at < s.pieces[i].end() {
			return s.pieces[i], true
		}
	}
	return located{}, false
}

// Lacks lists what of the manifest's blobs is in none of the volumes here.
func (b *Bundle) Lacks() []Piece {
	c, inVolumes := b.content.(volumeContent)
	if !inVolumes {
		return nil
	}
	var lacks []Piece
	for _, blob := range b.manifest.Blobs {
		s := c[blob.Digest]
		if s == nil {
			lacks = append(lacks, Piece{Blob: blob.Digest, Length: blob.Size})
			continue
		}
		for _, g := range s.gaps() {
			lacks = append(lacks, Piece{Blob: blob.Digest, Offset: g.Offset, Length: g.Length})
		}
	}
	return lacks
}

func (v *volume) section(e entry) *io.SectionReader {
	return io.NewSectionReader(v.file, e.offset, e.size)
}
