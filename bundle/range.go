package bundle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/packhof/packhof/internal/cas"
)

// openRange reads length bytes of a blob from offset on and proves them: by the
// digest when it is the whole blob, chunk by chunk when it has a chunk list,
// and by reading all of the blob otherwise. Wrong content ends with a
// cas.CorruptError; reading to io.EOF is what judges. The reader may have to
// read more than it gives.
func openRange(content Content, m *Manifest, b Blob, offset, length int64) (io.ReadCloser, error) {
	if offset == 0 && length == b.Size {
		return openBlob(content, b.Digest, b.Size)
	}
	if b.Chunks == nil {
		r, err := openBlob(content, b.Digest, b.Size)
		if err != nil {
			return nil, err
		}
		return &window{Closer: r, r: r, skip: offset, left: length}, nil
	}
	list, err := readChunkList(content, m, b)
	if err != nil {
		return nil, err
	}
	f, err := content.Open(b.Digest)
	if err != nil {
		return nil, err
	}
	first := offset / ChunkSize
	if err := skipTo(f, first*ChunkSize); err != nil {
		return nil, errors.Join(fmt.Errorf("read the blob %s: %w", b.Digest, err), f.Close())
	}
	chunks := &chunkReader{r: f, blob: b, list: list, next: first, hash: sha256.New()}
	return &window{Closer: f, r: chunks, skip: offset - first*ChunkSize, left: length}, nil
}

// readChunkList reads the chunk list of a blob that has one.
func readChunkList(content Content, m *Manifest, b Blob) (*ChunkList, error) {
	entry, _ := m.Blob(*b.Chunks)
	data, err := readBlob(content, *b.Chunks, entry.Size, maxChunkListSize)
	if err != nil {
		return nil, err
	}
	return ParseChunkList(data, b.Digest, b.Size)
}

// skipTo goes to an offset, by reading where the reader cannot seek.
func skipTo(r io.Reader, offset int64) error {
	if s, ok := r.(io.Seeker); ok {
		_, err := s.Seek(offset, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, r, offset)
	return err
}

// window gives a part of what a judging reader reads, and at its end reads on
// until that has judged.
type window struct {
	io.Closer
	r          io.Reader
	skip, left int64
}

func (w *window) Read(p []byte) (int, error) {
	if w.skip > 0 {
		n, err := io.CopyN(io.Discard, w.r, w.skip)
		w.skip -= n
		if err != nil {
			return 0, err
		}
	}
	if w.left == 0 {
		_, err := io.Copy(io.Discard, stopAtChunk{w.r})
		if err == nil {
			err = io.EOF
		}
		return 0, err
	}
	n, err := w.r.Read(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	if err == io.EOF && w.left == 0 {
		err = nil // said again after the judgement
	}
	return n, err
}

// stopAtChunk reads to the next place at which the reader has judged: the end
// of a chunk, or of everything.
type stopAtChunk struct{ io.Reader }

func (s stopAtChunk) Read(p []byte) (int, error) {
	if c, ok := s.Reader.(*chunkReader); ok {
		if c.seen == 0 {
			return 0, io.EOF
		}
		p = p[:min(int64(len(p)), c.rest())]
	}
	return s.Reader.Read(p)
}

// chunkReader reads chunks and judges each as it ends, before it gives its last
// bytes away.
type chunkReader struct {
	r    io.Reader
	blob Blob
	list *ChunkList
	next int64 // number of the chunk being read
	seen int64 // bytes of it
	hash hash.Hash
}

// rest is how much of the current chunk is still to come.
func (c *chunkReader) rest() int64 {
	return min(ChunkSize, c.blob.Size-c.next*ChunkSize) - c.seen
}

func (c *chunkReader) Read(p []byte) (int, error) {
	if c.next*ChunkSize >= c.blob.Size {
		return 0, io.EOF
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.rest())])
	_, _ = c.hash.Write(p[:n]) // a hash never fails
	c.seen += int64(n)
	if c.rest() > 0 {
		if err == io.EOF {
			return n, c.corrupt()
		}
		return n, err
	}
	if Digest(c.hash.Sum(nil)) != c.list.Chunks[c.next] {
		return 0, c.corrupt()
	}
	c.next, c.seen = c.next+1, 0
	c.hash.Reset()
	return n, nil
}

func (c *chunkReader) corrupt() error {
	want := min(ChunkSize, c.blob.Size-c.next*ChunkSize)
	return &cas.CorruptError{
		What: fmt.Sprintf("blob %s, from byte %d on", c.blob.Digest, c.next*ChunkSize), Want: c.list.Chunks[c.next], Got: Digest(c.hash.Sum(nil)),
		WantSize: want, GotSize: c.seen, Within: c.blob.Digest,
	}
}
