package bundle

import (
	"context"
	"errors"
	"sync"

	"github.com/packhof/packhof/internal/cas"
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
