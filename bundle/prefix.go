package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"path/filepath"
)

// proveStart proves that the bytes before the mark are those that were written
// there, by the digests that manifest, chunk lists and journal name. They may
// have been lost with the power, or edited by anybody.
func (p *VolumePlan) proveStart(ctx context.Context, u *unfinished, content Content, observe func(int64)) error {
	dropCache(u.file)
	s := startProof{volume: &volume{name: filepath.Base(u.partial())}, observe: observe}
	s.volume.file = &named{u.through, s.volume}
	err := s.run(ctx, p, &u.mark, content)
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		return leftChanged(p.FileName(), err)
	}
	return err
}

// startProof reads the beginning of a volume.
type startProof struct {
	volume  *volume
	at      int64
	observe func(int64)
}

func (s *startProof) run(ctx context.Context, p *VolumePlan, m *mark, content Content) error {
	for _, e := range p.head {
		if err := s.bytes(e.name, headerOf(e.name, int64(len(e.data)))); err != nil {
			return err
		}
		if err := s.bytes(e.name, append(bytes.Clone(e.data), make([]byte, padding(int64(len(e.data))))...)); err != nil {
			return err
		}
	}
	for _, e := range p.blobs[:m.Entry] {
		sum := e.Blob
		if !e.whole() {
			sum = m.Pieces[e.Entry]
		}
		if err := errors.Join(s.bytes(e.Entry, headerOf(e.Entry, e.Length)), s.data(ctx, e.Entry, e.Length, sum)); err != nil {
			return err
		}
		if err := s.bytes(e.Entry, make([]byte, padding(e.Length))); err != nil {
			return err
		}
	}
	if m.Offset == 0 {
		return nil
	}
	return s.part(ctx, p, m, content)
}

// part proves what is there of the entry that the mark stands in: chunk by chunk
// when it is a whole blob, and by the saved hash when it is a piece.
func (s *startProof) part(ctx context.Context, p *VolumePlan, m *mark, content Content) error {
	e := p.blobs[m.Entry]
	if err := s.bytes(e.Entry, headerOf(e.Entry, e.Length)); err != nil {
		return err
	}
	if !e.whole() {
		return s.saved(ctx, e.Entry, m)
	}
	list, err := readChunkList(content, p.manifest, e.blob)
	if err != nil {
		return err
	}
	for n := range int(m.Offset / ChunkSize) {
		if err := s.data(ctx, e.Entry, ChunkSize, list.Chunks[n]); err != nil {
			return err
		}
	}
	return nil
}

// saved compares with the state in which the hash of a piece was saved.
func (s *startProof) saved(ctx context.Context, name string, m *mark) error {
	from := s.at
	h, err := s.hash(ctx, name, m.Offset)
	if err != nil {
		return err
	}
	state, err := saveHash(h)
	if err != nil {
		return err
	}
	if bytes.Equal(state, m.Hash) {
		return nil
	}
	then, err := savedHash(m.Hash)
	if err != nil {
		return err
	}
	return s.volume.mismatch(entry{name: name, offset: from}, Digest(then.Sum(nil)), Digest(h.Sum(nil)))
}

func (s *startProof) data(ctx context.Context, name string, length int64, want Digest) error {
	from := s.at
	h, err := s.hash(ctx, name, length)
	if err != nil {
		return err
	}
	if got := Digest(h.Sum(nil)); got != want {
		return s.volume.mismatch(entry{name: name, offset: from}, want, got)
	}
	return nil
}

func (s *startProof) hash(ctx context.Context, name string, length int64) (hash.Hash, error) {
	h := sha256.New()
	_, err := pump(ctx, h, s.volume.section(entry{name: name, offset: s.at, size: length}), s.observe)
	s.at += length
	return h, err
}

// bytes compares with bytes that there is no choice about.
func (s *startProof) bytes(name string, want []byte) error {
	got := make([]byte, len(want))
	if _, err := s.volume.file.ReadAt(got, s.at); err != nil && err != io.EOF {
		return err
	}
	at := s.at
	s.at += int64(len(want))
	if !bytes.Equal(got, want) {
		return s.volume.mismatch(entry{name: name, offset: at}, digestOf(want), digestOf(got))
	}
	return nil
}

func headerOf(name string, size int64) []byte {
	h := header(name, size)
	return h[:]
}
