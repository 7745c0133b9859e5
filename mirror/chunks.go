package mirror

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// noteChunks keeps the hashes of the chunks of large blobs, in hex, a line
// each, so that their chunk lists need no second reading.
const noteChunks = "chunks"

// OpenStore opens the store of a project, which computes the hashes of chunks
// while blobs come in.
func OpenStore(dir string) (*cas.Store, error) {
	s, err := cas.OpenStore(dir)
	if err != nil {
		return nil, err
	}
	// What was fetched can be fetched again; the bundle is what must last.
	s = s.Lazy()
	return s.WithTap(func(size int64) cas.Tap {
		if size <= bundle.ChunkSize {
			return nil
		}
		return &chunkTap{store: s, hash: sha256.New()}
	}), nil
}

type chunkTap struct {
	store *cas.Store
	hash  hash.Hash
	in    int64 // bytes of the present chunk
	sums  bytes.Buffer
}

func (t *chunkTap) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(int64(len(rest)), bundle.ChunkSize-t.in)
		_, _ = t.hash.Write(rest[:n]) // a hash never fails
		rest, t.in = rest[n:], t.in+n
		if t.in == bundle.ChunkSize {
			t.endChunk()
		}
	}
	return len(p), nil
}

func (t *chunkTap) endChunk() {
	t.sums.WriteString(hex.EncodeToString(t.hash.Sum(nil)) + "\n")
	t.hash.Reset()
	t.in = 0
}

func (t *chunkTap) Finish(d cas.Digest) error {
	if t.in > 0 {
		t.endChunk()
	}
	return t.store.SetNote(noteChunks, d, t.sums.Bytes())
}

// chunkList gives the chunk list of a blob in the store: from the note where
// there is one, else by reading and verifying the blob.
func chunkList(ctx context.Context, store *cas.Store, d cas.Digest, size int64) ([]byte, error) {
	note, ok, err := store.Note(noteChunks, d)
	if err != nil {
		return nil, err
	}
	if ok {
		return chunkListFromNote(note, d, size)
	}
	r, err := store.Open(d)
	if err != nil {
		return nil, err
	}
	list, err := bundle.HashChunks(ctx, r, d, size)
	return list, errors.Join(err, r.Close())
}

func chunkListFromNote(note []byte, d cas.Digest, size int64) ([]byte, error) {
	var chunks []cas.Digest
	for line := range bytes.Lines(note) {
		chunk, err := cas.ParseHex(string(bytes.TrimSuffix(line, []byte("\n"))))
		if err != nil {
			return nil, fmt.Errorf("note on the chunks of %s: %w", d, err)
		}
		chunks = append(chunks, chunk)
	}
	return bundle.EncodeChunkList(d, size, chunks)
}
