package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"sync"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// CopyOptions tell of a copy while it goes on. All of them may be nil.
type CopyOptions struct {
	Observe func(n int64) // told of every run of bytes that is copied, or was there
	Proving func(n int64) // told of every run that is read to prove what this copy did not bring
	Known   Proofs        // told of every blob that is proven; what it knows is not read again for that
}

// Proofs remembers the blobs of a store that are proven, as long as they last.
// It is safe for use by several goroutines.
type Proofs interface {
	Add(d Digest)
	Has(d Digest) bool
}

// CopyTo brings every blob into the store and proves what Check proves,
// reading each byte once: nothing comes under its name before it is whole and
// the right one. Blobs that the store has already are proven there, and brought
// anew when they have rotted, so a copy that was interrupted goes on. Segments
// of blobs that other volumes hold the rest of wait in the store's assemblies.
//
// What this copy did not bring is read and proven as soon as nothing of the
// bundle is lacking by its name, on all cores: what has rotted is dropped then,
// and lacks. So when StoreLacks tells of nothing afterwards, every byte of the
// bundle was held against its digest.
//
// The medium is only read.
func (b *Bundle) CopyTo(ctx context.Context, store *cas.Store, o CopyOptions) error {
	if o.Known == nil {
		o.Known = &provenNow{blobs: map[Digest]bool{}}
	}
	copied := b.copyBlobs
	if b.sealed.volumes != nil {
		copied = b.copyVolumes
	}
	if err := copied(ctx, store, o); err != nil {
		return err
	}
	if err := b.finishAssemblies(ctx, store, o.Known); err != nil {
		return err
	}
	if err := store.SyncAll(); err != nil {
		return err
	}
	if err := b.proveHeld(ctx, store, o); err != nil {
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

// provenNow is what a single copy has proven.
type provenNow struct {
	mu    sync.Mutex
	blobs map[Digest]bool
}

// Add implements Proofs.
func (p *provenNow) Add(d Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blobs[d] = true
}

// Has implements Proofs.
func (p *provenNow) Has(d Digest) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blobs[d]
}

// proveHeld reads what the store had before: all of it once nothing is lacking,
// and before that the metadata, which the graph is checked by.
func (b *Bundle) proveHeld(ctx context.Context, store *cas.Store, o CopyOptions) error {
	blobs := b.manifest.Blobs
	lacks, err := b.StoreLacks(store)
	if err != nil {
		return err
	}
	observe := inTurn(o.Proving)
	if len(lacks) > 0 {
		blobs, observe = metadataOf(b.manifest, 1), nil
	}
	var known int64
	var steps []func(context.Context) error
	for _, blob := range blobs {
		if o.Known.Has(blob.Digest) {
			known += blob.Size
			continue
		}
		steps = append(steps, func(ctx context.Context) error {
			_, err := soundBlob(ctx, store, blob, o.Known, observe)
			return err
		})
	}
	if observe != nil && len(steps) > 0 {
		observe(known)
	}
	return runInOrder(ctx, 0, steps)
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

func (b *Bundle) copyBlobs(ctx context.Context, store *cas.Store, o CopyOptions) error {
	for _, blob := range b.manifest.Blobs {
		if there, err := haveBlob(ctx, store, blob, o); err != nil || there {
			if err != nil {
				return err
			}
			continue
		}
		r, err := b.content.Open(blob.Digest)
		if err != nil {
			return err
		}
		c := copier{store: store, known: o.Known, observe: o.Observe}
		err = c.whole(ctx, r, blob)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

func haveBlob(ctx context.Context, store *cas.Store, blob Blob, o CopyOptions) (bool, error) {
	there, err := soundBlob(ctx, store, blob, o.Known, nil)
	if there && o.Observe != nil {
		o.Observe(blob.Size)
	}
	return there, err
}

// soundBlob tells whether the store has the blob, every byte of it. What has
// rotted is dropped.
func soundBlob(ctx context.Context, store *cas.Store, blob Blob, known Proofs, observe func(int64)) (bool, error) {
	there, err := store.Has(blob.Digest, blob.Size)
	if err != nil || !there {
		return false, err
	}
	rotten, err := store.DropIfRotten(ctx, blob.Digest, counted(observe))
	if err != nil || rotten {
		return false, err
	}
	known.Add(blob.Digest)
	return true, nil
}

// counted is a writer that only tells how much it was given.
type counted func(n int64)

// Write implements io.Writer.
func (c counted) Write(p []byte) (int, error) {
	if c != nil {
		c(int64(len(p)))
	}
	return len(p), nil
}

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

// finishAssemblies names blobs whose pieces had all come, and whose proof was
// interrupted.
func (b *Bundle) finishAssemblies(ctx context.Context, store *cas.Store, known Proofs) error {
	for _, blob := range b.manifest.Blobs {
		there, err := store.Has(blob.Digest, blob.Size)
		if err != nil {
			return err
		}
		if there || blob.Size == 0 {
			continue
		}
		if gaps, err := store.Gaps(blob.Digest, blob.Size); err != nil {
			return err
		} else if len(gaps) > 0 {
			continue
		}
		c := copier{store: store, manifest: b.manifest, known: known}
		list, err := c.chunks(blob)
		if err != nil {
			return err
		}
		a, err := store.Assemble(blob.Digest, blob.Size)
		if err != nil {
			return err
		}
		if err := c.finishAssembly(ctx, a, blob, list); err != nil {
			return err
		}
	}
	return nil
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

// StoreLacks lists what of the bundle the store has not: blobs, or runs of
// bytes where volumes have brought a part. It looks at names and sizes only. A
// blob whose pieces are all there is lacking until it is proven and named.
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
		if len(gaps) == 0 {
			gaps = []cas.Span{{Length: blob.Size}}
		}
		for _, g := range gaps {
			lacks = append(lacks, Piece{Blob: blob.Digest, Offset: g.Offset, Length: g.Length})
		}
	}
	return lacks, nil
}
