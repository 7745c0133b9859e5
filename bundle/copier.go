package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// copyVolumes copies the entries of each volume in their order.
func (b *Bundle) copyVolumes(ctx context.Context, store *cas.Store, o CopyOptions) error {
	for _, v := range b.sealed.volumes {
		listed, sums, err := v.listedSums()
		if err != nil {
			return err
		}
		c := &copier{store: store, volume: v, manifest: b.manifest, known: o.Known, observe: o.Observe}
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
	known    Proofs
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
	there, err := c.hasAlready(ctx, pieces[0])
	if err != nil {
		return err
	}
	if there {
		if err := c.store.DropAssembly(blob.Digest); err != nil {
			return err
		}
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
	if err := c.stream(ctx, pieces, listed, sums); err != nil {
		return err
	}
	return c.store.DropAssembly(blob.Digest)
}

// hasAlready tells whether the store has the blob of a piece. It is proven with
// the first piece only: the others would read all of it again.
func (c *copier) hasAlready(ctx context.Context, p plannedEntry) (bool, error) {
	if p.Offset > 0 {
		return c.store.Has(p.blob.Digest, p.blob.Size)
	}
	return soundBlob(ctx, c.store, p.blob, c.known, nil)
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
	return c.proven(blob, err)
}

// proven remembers a blob that has its name without an error.
func (c *copier) proven(blob Blob, err error) error {
	if err == nil {
		c.known.Add(blob.Digest)
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
	list, err := c.chunks(blob)
	if err != nil {
		return err
	}
	a, err := c.store.Assemble(blob.Digest, blob.Size)
	if err != nil {
		return err
	}
	if err := c.keepAll(ctx, a, pieces, list, listed, sums); err != nil {
		return errors.Join(err, a.Close())
	}
	return c.finishAssembly(ctx, a, blob, list)
}

// keepEvery is how much is copied between two waits for the disk: pieces may be
// tiny, and many.
const keepEvery = 64 << 20

// keepAll copies pieces. Those before a wrong one stay.
func (c *copier) keepAll(ctx context.Context, a *cas.Assembly, pieces []plannedEntry, list *ChunkList, listed []entry, sums []Digest) error {
	var fresh []cas.Span
	var bytes int64
	flush := func() (err error) {
		if len(fresh) > 0 {
			err = a.Keep(fresh...)
		}
		fresh, bytes = nil, 0
		return err
	}
	for i, p := range pieces {
		if a.Holds(p.Offset, p.Length) {
			if c.observe != nil {
				c.observe(p.Length)
			}
			continue
		}
		if err := c.prove(ctx, a.At(p.Offset), p, list, listed[i], sums[i]); err != nil {
			return errors.Join(err, flush())
		}
		fresh = append(fresh, cas.Span{Offset: p.Offset, Length: p.Length})
		if bytes += p.Length; bytes >= keepEvery {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// chunks is the chunk list of a blob that has one, if it has come already: the
// metadata may lie in another volume.
func (c *copier) chunks(blob Blob) (*ChunkList, error) {
	if blob.Chunks == nil {
		return nil, nil
	}
	content := StoreContent(c.store)
	if there, err := content.Has(*blob.Chunks); err != nil || !there {
		return nil, err
	}
	return readChunkList(content, c.manifest, blob)
}

// finishAssembly names a blob whose pieces are all there. When they do not make
// the blob, those that the signed chunk list proves stay.
func (c *copier) finishAssembly(ctx context.Context, a *cas.Assembly, blob Blob, list *ChunkList) error {
	whole := a.Whole()
	err := a.Finish(ctx)
	var corrupt *cas.CorruptError
	switch {
	case err == nil && whole:
		c.known.Add(blob.Digest)
		return nil
	case !errors.As(err, &corrupt):
		return err
	}
	wrong := problem.New("volume/pieces-wrong", "the segments of the blob %s, which came in several volumes, do not make that blob", blob.Digest).
		With(corrupt.Evidence()...).Hint("receive all the volumes again; nothing tells which of them is wrong")
	if list == nil {
		return errors.Join(wrong, a.Drop())
	}
	return errors.Join(wrong, a.Sift(ctx, ChunkSize, list.Chunks))
}

// prove copies one piece and holds it against its sum and, as far as the signed
// chunk list tells, against that.
func (c *copier) prove(ctx context.Context, into io.Writer, p plannedEntry, list *ChunkList, e entry, sum Digest) error {
	if list == nil {
		return c.pour(ctx, into, p, e, sum)
	}
	proof := pieceProof{volume: c.volume, entry: e, piece: p, list: list, sum: sum, also: into, observe: c.observe}
	return proof.run(ctx)
}

// whole copies a blob from one reader.
func (c *copier) whole(ctx context.Context, r io.Reader, blob Blob) error {
	in, err := ingest(c.store, blob.Size)
	if err != nil {
		return err
	}
	if _, err := pump(ctx, in, r, c.observe); err != nil {
		return errors.Join(err, in.Abort())
	}
	return c.proven(blob, in.Commit(ctx, blob.Digest, blob.Size, "blob "+blob.Digest.String()))
}
