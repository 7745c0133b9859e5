package bundle

import (
	"context"
	"crypto/sha256"
	"io"

	"github.com/packhof/packhof/internal/problem"
)

// ChunkSize is the unit in which damage to large content is localised.
const ChunkSize = 64 << 20

// TypeChunkList is the format of a chunk list.
const TypeChunkList = "packhof.chunks/v1"

const maxChunkListSize = 16 << 20

// ChunkList gives the SHA-256 of each ChunkSize piece of a blob, the last one
// shorter.
type ChunkList struct {
	Format    string   `json:"format"`
	Blob      Digest   `json:"blob"`
	Size      int64    `json:"size"`
	ChunkSize int64    `json:"chunkSize"`
	Chunks    []Digest `json:"chunks"`
}

// HashChunks reads a blob and makes the canonical bytes of its chunk list.
// Give it a verifying reader: it reads to the end.
func HashChunks(ctx context.Context, r io.Reader, blob Digest, size int64) ([]byte, error) {
	var chunks []Digest
	for left := size; left > 0; left -= ChunkSize {
		h := sha256.New()
		if _, err := pump(ctx, h, io.LimitReader(r, min(left, ChunkSize)), nil); err != nil {
			return nil, err
		}
		chunks = append(chunks, Digest(h.Sum(nil)))
	}
	// The end of a verifying reader is where it judges.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	return EncodeChunkList(blob, size, chunks)
}

// EncodeChunkList makes the canonical bytes of a chunk list.
func EncodeChunkList(blob Digest, size int64, chunks []Digest) ([]byte, error) {
	b, err := encodeCanonical(&ChunkList{Format: TypeChunkList, Blob: blob, Size: size, ChunkSize: ChunkSize, Chunks: chunks})
	if err != nil {
		return nil, err
	}
	_, err = ParseChunkList(b, blob, size)
	return b, err
}

// ParseChunkList parses the chunk list of this blob.
func ParseChunkList(b []byte, blob Digest, size int64) (*ChunkList, error) {
	var list ChunkList
	if err := decodeStrict("the chunk list of "+blob.String(), b, maxChunkListSize, &list); err != nil {
		return nil, err
	}
	count := (size + ChunkSize - 1) / ChunkSize
	if list.Format != TypeChunkList || list.Blob != blob || list.Size != size || list.ChunkSize != ChunkSize || int64(len(list.Chunks)) != count {
		return nil, problem.New("format/invalid", "the chunk list of %s belongs to another blob or size", blob)
	}
	return &list, nil
}
