package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/packhof/packhof/internal/cas"
)

// CopyTo brings every blob into the store and proves what Check proves,
// reading each byte once: nothing comes under its name before it is whole and
// the right one. Blobs that the store has already are proven there, and brought
// anew when they have rotted, so a copy that was interrupted goes on. Pieces of
// blobs that other volumes hold the rest of wait in the store's assemblies.
// observe, when given, is told of every piece, those that were there included.
//
// The medium is only read. Whether all of the bundle is there afterwards,
// StoreLacks tells.
func (b *Bundle) CopyTo(ctx context.Context, store *cas.Store, observe func(n int64)) error {
	copied := b.copyBlobs
	if b.sealed.volumes != nil {
		copied = b.copyVolumes
	}
	if err := copied(ctx, store, observe); err != nil {
		return err
	}
	if err := store.SyncAll(); err != nil {
		return err
	}
	content := StoreContent(store)
	there, err := hasMetadata(b.manifest, content)
	if err != nil || !there {
		return err // it comes with another volume
	}
	if err := checkChunkLists(ctx, b.manifest, content); err != nil {
		return err
	}
	return checkGraph(b.manifest, content)
}

// waitFrom is the size from which a blob is worth a wait for the disk of its
// own; smaller ones share the one at the end, since a tree may have a hundred
// thousand of them. After a power cut soundBlob finds what did not last.
const waitFrom = 8 << 20

// ingest begins a blob of this size.
func ingest(store *cas.Store, size int64) (*cas.Ingest, error) {
	if size < waitFrom {
		store = store.Lazy()
	}
	return store.Ingest()
}

func (b *Bundle) copyBlobs(ctx context.Context, store *cas.Store, observe func(int64)) error {
	for _, blob := range b.manifest.Blobs {
		if there, err := haveBlob(ctx, store, blob, observe); err != nil || there {
			if err != nil {
				return err
			}
			continue
		}
		r, err := b.content.Open(blob.Digest)
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

// copyVolumes copies the entries of each volume in their order.
func (b *Bundle) copyVolumes(ctx context.Context, store *cas.Store, observe func(int64)) error {
	for _, v := range b.sealed.volumes {
		listed, sums, err := v.listedSums()
		if err != nil {
			return err
		}
		c := &copier{store: store, volume: v, manifest: b.manifest, observe: observe}
		if err := c.entries(ctx, listed, sums); err != nil {
			return err
		}
	}
	return nil
}

// copier copies the entries of one volume.
type copier struct {
	store    *cas.Store
	volume   *volume
	manifest *Manifest
	observe  func(int64)
}

// entries copies every entry and holds it against its line of SHA256SUMS.
func (c *copier) entries(ctx context.Context, listed []entry, sums []Digest) error {
	blobs := entriesOf(c.manifest, c.volume.info)
	small := len(listed) - len(blobs)
	for i, e := range listed[:small] {
		if err := c.volume.prove(ctx, e, sums[i], nil); err != nil {
			return err
		}
	}
	for i := 0; i < len(blobs); {
		run := runOf(blobs[i:])
		if err := c.run(ctx, blobs[i:i+run], listed[small+i:], sums[small+i:]); err != nil {
			return err
		}
		i += run
	}
	return nil
}

// runOf counts the entries at the beginning that belong to one blob.
func runOf(blobs []plannedEntry) int {
	n := 1
	for n < len(blobs) && blobs[n].Blob == blobs[0].Blob {
		n++
	}
	return n
}

// run copies the pieces of one blob that this volume holds.
func (c *copier) run(ctx context.Context, pieces []plannedEntry, listed []entry, sums []Digest) error {
	blob := pieces[0].blob
	if pieces[0].whole() && sums[0] != blob.Digest {
		return c.volume.mismatch(listed[0], blob.Digest, sums[0])
	}
	there, err := soundBlob(ctx, c.store, blob)
	if err != nil {
		return err
	}
	if there {
		if c.observe != nil {
			for _, p := range pieces {
				c.observe(p.Length)
			}
		}
		return nil
	}
	if !joins(pieces) {
		return c.assemble(ctx, pieces, listed, sums)
	}
	return c.stream(ctx, pieces, listed, sums)
}

// joins tells whether pieces are all of their blob, one behind the other.
func joins(pieces []plannedEntry) bool {
	var at int64
	for _, p := range pieces {
		if p.Offset != at {
			return false
		}
		at += p.Length
	}
	return at == pieces[0].blob.Size
}

// stream copies a blob that is all in this volume. It is hashed on its way into
// the store, and a piece of it beside that.
func (c *copier) stream(ctx context.Context, pieces []plannedEntry, listed []entry, sums []Digest) error {
	in, err := ingest(c.store, pieces[0].blob.Size)
	if err != nil {
		return err
	}
	for i := range pieces {
		if err := c.pour(ctx, in, pieces[i], listed[i], sums[i]); err != nil {
			return errors.Join(err, in.Abort())
		}
	}
	blob := pieces[0].blob
	err = in.Commit(ctx, blob.Digest, blob.Size, "blob "+blob.Digest.String())
	var corrupt *cas.CorruptError
	if errors.As(err, &corrupt) {
		return c.volume.mismatch(listed[0], blob.Digest, corrupt.Got)
	}
	return err
}

// pour writes one entry and compares a piece's sum; that of a whole blob is its
// digest, which is compared when it gets its name.
func (c *copier) pour(ctx context.Context, in io.Writer, p plannedEntry, e entry, sum Digest) error {
	if p.whole() {
		_, err := pump(ctx, in, c.volume.section(e), c.observe)
		return err
	}
	h := sha256.New()
	if _, err := pump(ctx, io.MultiWriter(in, h), c.volume.section(e), c.observe); err != nil {
		return err
	}
	if got := Digest(h.Sum(nil)); got != sum {
		return c.volume.mismatch(e, sum, got)
	}
	return nil
}

// assemble keeps pieces of a blob whose rest lies in other volumes, and makes
// the blob of them when the last one has come.
func (c *copier) assemble(ctx context.Context, pieces []plannedEntry, listed []entry, sums []Digest) error {
	blob := pieces[0].blob
	a, err := c.store.Assemble(blob.Digest, blob.Size)
	if err != nil {
		return err
	}
	for i, p := range pieces {
		if err := c.keep(ctx, a, p, listed[i], sums[i]); err != nil {
			return errors.Join(err, a.Close())
		}
	}
	err = a.Finish(ctx)
	var corrupt *cas.CorruptError
	if errors.As(err, &corrupt) {
		return c.volume.mismatch(listed[0], blob.Digest, corrupt.Got)
	}
	return err
}

func (c *copier) keep(ctx context.Context, a *cas.Assembly, p plannedEntry, e entry, sum Digest) error {
	if a.Holds(p.Offset, p.Length) {
		if c.observe != nil {
			c.observe(p.Length)
		}
		return nil
	}
	if err := c.pour(ctx, a.At(p.Offset), p, e, sum); err != nil {
		return err
	}
	return a.Keep(p.Offset, p.Length)
}

// whole copies a blob from one reader.
func (c *copier) whole(ctx context.Context, r io.Reader, blob Blob, observe func(int64)) error {
	in, err := ingest(c.store, blob.Size)
	if err != nil {
		return err
	}
	if _, err := pump(ctx, in, r, observe); err != nil {
		return errors.Join(err, in.Abort())
	}
	return in.Commit(ctx, blob.Digest, blob.Size, "blob "+blob.Digest.String())
}

// StoreLacks lists what of the bundle the store has not: blobs, or runs of
// bytes where volumes have brought a part. It looks at names and sizes only.
func (b *Bundle) StoreLacks(store *cas.Store) ([]Piece, error) {
	var lacks []Piece
	for _, blob := range b.manifest.Blobs {
		there, err := store.Has(blob.Digest, blob.Size)
		if err != nil {
			return nil, err
		}
		if there {
			continue
		}
		gaps, err := store.Gaps(blob.Digest, blob.Size)
		if err != nil {
			return nil, err
		}
		for _, g := range gaps {
			lacks = append(lacks, Piece{Blob: blob.Digest, Offset: g.Offset, Length: g.Length})
		}
	}
	return lacks, nil
}
