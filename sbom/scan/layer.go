package scan

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/packhof/packhof/sbom"
)

// maxWindow is the largest zstd window taken, that of "zstd --ultra -22".
const maxWindow = 128 << 20

// layer is one layer of a layout, a v1.Layer.
type layer struct {
	layout     *layout
	descriptor v1.Descriptor
	diffID     v1.Hash
}

func (l *layer) Digest() (v1.Hash, error)            { return l.descriptor.Digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.diffID, nil }
func (l *layer) Size() (int64, error)                { return l.descriptor.Size, nil }
func (l *layer) MediaType() (types.MediaType, error) { return l.descriptor.MediaType, nil }
func (l *layer) Compressed() (io.ReadCloser, error)  { return l.layout.open(l.descriptor) }

// Uncompressed goes by the first bytes of the layer, not by its media type,
// as container runtimes do.
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	blob, err := l.Compressed()
	if err != nil {
		return nil, err
	}
	packed := bufio.NewReaderSize(blob, 64<<10)
	plain, done, err := decompress(packed)
	if err != nil {
		return nil, errors.Join(broken(l.descriptor.Digest, packed, err), blob.Close())
	}
	return &unpacked{name: l.descriptor.Digest, plain: plain, packed: packed, blob: blob, done: done, left: l.layout.left}, nil
}

func decompress(packed *bufio.Reader) (plain io.Reader, done func(), err error) {
	start, err := packed.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		plain, err = gzip.NewReader(packed)
		return plain, func() {}, err
	case bytes.Equal(start, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		decoder, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return decoder, decoder.Close, nil
	}
	return packed, func() {}, nil
}

// unpacked reads a layer's tar. It ends only if the blob did too and was the right one.
type unpacked struct {
	name   v1.Hash
	plain  io.Reader
	packed io.Reader
	blob   io.Closer
	done   func()
	left   *budget
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.plain.Read(p)
	if !u.left.take(n) {
		return 0, &Error{Kind: codeUnpacked, Text: fmt.Sprintf("layers unpack to more than the %d bytes allowed (in layer %s)", u.left.total, u.name)}
	}
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, broken(u.name, u.packed, err)
	}
	// Bytes after the last frame still belong to the blob and its digest.
	if _, rest := io.Copy(io.Discard, u.packed); rest != nil {
		return n, rest
	}
	return n, io.EOF
}

// broken says why a layer cannot be unpacked: because its blob is not what it
// should be, which only reading to its end can tell, or else because of cause.
func broken(name v1.Hash, packed io.Reader, cause error) error {
	if _, ours := errors.AsType[*Error](cause); ours {
		return cause
	}
	if _, err := io.Copy(io.Discard, packed); err != nil {
		return err
	}
	return unlike(cause, "layer %s cannot be unpacked", name)
}

func (u *unpacked) Close() error {
	u.done()
	return u.blob.Close()
}

// budget is the number of bytes that all layers of an image may still unpack to.
type budget struct {
	total int64
	left  atomic.Int64
}

func newBudget(total int64) *budget {
	if total == 0 {
		total = sbom.DefaultMaxUnpacked
	}
	b := &budget{total: total}
	b.left.Store(total)
	return b
}

func (b *budget) take(n int) bool { return b.left.Add(-int64(n)) >= 0 }
