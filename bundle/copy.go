package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"strings"

	"github.com/packhof/packhof/internal/cas"
)

// CopyTo brings every blob into the store and proves what Check proves,
// reading each byte once: nothing comes under its name before it is whole and
// the right one. Blobs that the store has already are proven there, and brought
// anew when they have rotted, so a copy that was interrupted goes on. observe, when given, is told of every piece,
// those that were there included.
//
// The medium is only read.
func (b *Bundle) CopyTo(ctx context.Context, store *cas.Store, observe func(n int64)) error {
	copied := b.copyBlobs
	if b.sealed.volume != nil {
		copied = b.copyVolume
	}
	if err := copied(ctx, store, observe); err != nil {
		return err
	}
	if err := store.SyncNames(); err != nil {
		return err
	}
	content := StoreContent(store)
	if err := checkChunkLists(ctx, b.manifest, content); err != nil {
		return err
	}
	return checkGraph(b.manifest, content)
}

func (b *Bundle) copyBlobs(ctx context.Context, store *cas.Store, observe func(int64)) error {
	for _, blob := range b.manifest.Blobs {
		if there, err := haveBlob(ctx, store, blob, observe); err != nil || there {
			if err != nil {
				return err
			}
			continue
		}
		r, err := b.sealed.content.Open(blob.Digest)
		if err != nil {
			return err
		}
		c := copier{store: store}
		err = c.whole(ctx, r, blob, observe)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

func haveBlob(ctx context.Context, store *cas.Store, blob Blob, observe func(int64)) (bool, error) {
	there, err := soundBlob(ctx, store, blob)
	if there && observe != nil {
		observe(blob.Size)
	}
	return there, err
}

// soundBlob tells whether the store has the blob, every byte of it.
func soundBlob(ctx context.Context, store *cas.Store, blob Blob) (bool, error) {
	there, err := store.Has(blob.Digest, blob.Size)
	if err != nil || !there {
		return false, err
	}
	rotten, err := store.DropIfRotten(ctx, blob.Digest)
	return !rotten, err
}

// copyVolume copies the entries of a volume in their order.
func (b *Bundle) copyVolume(ctx context.Context, store *cas.Store, observe func(int64)) error {
	v := b.sealed.volume
	listed, sums, err := v.listedSums()
	if err != nil {
		return err
	}
	c := &copier{store: store, volume: v}
	for i, e := range listed {
		if err := c.entry(ctx, b.manifest, e, sums[i], observe); err != nil {
			return errors.Join(err, c.abort())
		}
	}
	return c.abort()
}

// copier copies the entries of one volume. in is a blob on its way that comes
// in several pieces.
type copier struct {
	store  *cas.Store
	volume *volume
	in     *cas.Ingest
	seen   int64
}

func (c *copier) abort() error {
	if c.in == nil {
		return nil
	}
	in := c.in
	c.in = nil
	return in.Abort()
}

// entry copies one entry and holds it against its line of SHA256SUMS.
func (c *copier) entry(ctx context.Context, m *Manifest, e entry, sum Digest, observe func(int64)) error {
	hexDigits, isBlob := strings.CutPrefix(e.name, dirBlobs)
	if !isBlob {
		h := sha256.New()
		if _, err := pump(ctx, h, c.volume.section(e), nil); err != nil {
			return err
		}
		return c.compare(e, sum, Digest(h.Sum(nil)))
	}
	hexDigits, piece, cut := strings.Cut(hexDigits, ".s")
	d, err := cas.ParseHex(hexDigits)
	if err != nil {
		return err
	}
	blob, _ := m.Blob(d)
	if !cut {
		return c.wholeEntry(ctx, e, blob, sum, observe)
	}
	return c.piece(ctx, e, blob, piece, sum, observe)
}

func (c *copier) compare(e entry, want, got Digest) error {
	if want != got {
		return c.volume.mismatch(e, want, got)
	}
	return nil
}

func (c *copier) wholeEntry(ctx context.Context, e entry, blob Blob, sum Digest, observe func(int64)) error {
	if err := c.compare(e, sum, blob.Digest); err != nil {
		return err
	}
	if there, err := haveBlob(ctx, c.store, blob, observe); err != nil || there {
		return err
	}
	err := c.whole(ctx, c.volume.section(e), blob, observe)
	var corrupt *cas.CorruptError
	if errors.As(err, &corrupt) {
		return c.volume.mismatch(e, blob.Digest, corrupt.Got)
	}
	return err
}

// whole copies a blob from one reader.
func (c *copier) whole(ctx context.Context, r io.Reader, blob Blob, observe func(int64)) error {
	in, err := c.store.Ingest()
	if err != nil {
		return err
	}
	if _, err := pump(ctx, in, r, observe); err != nil {
		return errors.Join(err, in.Abort())
	}
	return in.Commit(ctx, blob.Digest, blob.Size, "blob "+blob.Digest.String())
}

// piece copies one entry of a blob that is cut into several. The blob is
// hashed on its way into the store, the piece beside that.
func (c *copier) piece(ctx context.Context, e entry, blob Blob, number string, sum Digest, observe func(int64)) error {
	if number == "0000" {
		if err := c.begin(ctx, blob); err != nil {
			return err
		}
	}
	if c.in == nil { // the blob is there already
		if observe != nil {
			observe(e.size)
		}
		return nil
	}
	h := sha256.New()
	n, err := pump(ctx, io.MultiWriter(c.in, h), c.volume.section(e), observe)
	if err != nil {
		return err
	}
	if err := c.compare(e, sum, Digest(h.Sum(nil))); err != nil {
		return err
	}
	if c.seen += n; c.seen < blob.Size {
		return nil
	}
	in := c.in
	c.in = nil
	err = in.Commit(ctx, blob.Digest, blob.Size, "blob "+blob.Digest.String())
	var corrupt *cas.CorruptError
	if errors.As(err, &corrupt) {
		return c.volume.mismatch(e, blob.Digest, corrupt.Got)
	}
	return err
}

// begin starts a blob in pieces, unless the store has it.
func (c *copier) begin(ctx context.Context, blob Blob) error {
	if err := c.abort(); err != nil {
		return err
	}
	c.seen = 0
	there, err := soundBlob(ctx, c.store, blob)
	if err != nil || there {
		return err
	}
	c.in, err = c.store.Ingest()
	return err
}
