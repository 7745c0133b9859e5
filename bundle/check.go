package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/packhof/packhof/internal/cas"
)

// Check reads every byte of the bundle and proves it: entries against
// SHA256SUMS, blobs against their digests or, where they are large, against the
// chunk list that the manifest names, and the graph of every artifact from its
// root and what the packs of trees hold. Of the volumes of an incomplete set it proves what is there; Lacks tells
// what is not. observe, when given, is told of every piece read, by one
// goroutine at a time.
func (b *Bundle) Check(ctx context.Context, observe func(n int64)) error {
	return b.CheckOn(ctx, 0, observe)
}

// CheckOn is Check with so many cores that hash; 0 is all of them.
func (b *Bundle) CheckOn(ctx context.Context, jobs int, observe func(n int64)) error {
	if b.sealed.volumes == nil {
		if err := b.checkBlobs(ctx, observe); err != nil {
			return err
		}
	} else if err := checkVolumes(ctx, b.sealed.volumes, b.manifest, jobs, observe); err != nil {
		return err
	}
	there, err := hasMetadata(b.manifest, b.content)
	if err != nil || !there {
		return err // a volume of many: the metadata lies in another one
	}
	if err := checkChunkLists(ctx, b.manifest, b.content); err != nil {
		return err
	}
	if err := checkGraph(b.manifest, b.content); err != nil {
		return err
	}
	for i := range b.manifest.Artifacts {
		a := &b.manifest.Artifacts[i]
		if !a.Kind.IsTree() {
			continue
		}
		if err := checkPacks(ctx, a, b.content); err != nil {
			return fmt.Errorf("artifact %.200q: %w", a.Name, err)
		}
	}
	return nil
}

// HasMetadata tells whether what the bundle is described by is all here: it may
// lie in another volume.
func (b *Bundle) HasMetadata() (bool, error) { return hasMetadata(b.manifest, b.content) }

// hasMetadata tells whether what stands before the content is all there.
func hasMetadata(m *Manifest, content Content) (bool, error) {
	for _, b := range metadataOf(m, 1) {
		if there, err := content.Has(b.Digest); err != nil || !there {
			return false, err
		}
	}
	return true, nil
}

func (b *Bundle) checkBlobs(ctx context.Context, observe func(int64)) error {
	for _, blob := range b.manifest.Blobs {
		r, err := b.Open(ctx, blob.Digest)
		if err != nil {
			return err
		}
		_, err = pump(ctx, io.Discard, r, observe)
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// checkVolumes proves the bytes of volumes whose layout is right.
func checkVolumes(ctx context.Context, volumes []*volume, m *Manifest, jobs int, observe func(int64)) error {
	c := checker{manifest: m, content: contentOf(volumes, m), observe: inTurn(observe)}
	for _, v := range volumes {
		if err := c.plan(v); err != nil {
			return err
		}
	}
	if err := c.planAcross((*pieced).seams); err != nil { // the rest each piece proves by itself
		return err
	}
	return runInOrder(ctx, jobs, c.steps)
}

// inTurn lets several goroutines report to somebody who expects one.
func inTurn(observe func(int64)) func(int64) {
	if observe == nil {
		return nil
	}
	var mu sync.Mutex
	return func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		observe(n)
	}
}

// runInOrder runs steps on several cores and gives the error of the first step
// that fails, the one that a single core would have met: after a failure the
// steps before it are still brought to their end, and those behind it are not.
func runInOrder(ctx context.Context, jobs int, steps []func(context.Context) error) error {
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	r := ordered{first: len(steps), running: map[int]context.CancelFunc{}}
	var group errgroup.Group
	group.SetLimit(jobs)
	for i, step := range steps {
		group.Go(func() error {
			inner, wanted := r.begin(ctx, i)
			if wanted {
				r.end(i, step(inner))
			}
			return nil
		})
	}
	_ = group.Wait() // the steps report to r
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.err
}

// ordered knows which step failed first, by its place and not by the clock.
type ordered struct {
	mu      sync.Mutex
	first   int // place of the first step that failed so far
	err     error
	running map[int]context.CancelFunc
}

func (r *ordered) begin(ctx context.Context, i int) (context.Context, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i > r.first || ctx.Err() != nil {
		return nil, false
	}
	inner, cancel := context.WithCancel(ctx)
	r.running[i] = cancel
	return inner, true
}

func (r *ordered) end(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[i]()
	delete(r.running, i)
	if err == nil || i > r.first {
		return
	}
	r.first, r.err = i, err
	for j, cancel := range r.running {
		if j > i {
			cancel()
		}
	}
}

// checker collects what has to be hashed.
type checker struct {
	manifest *Manifest
	content  volumeContent
	observe  func(int64)
	steps    []func(context.Context) error
}

// plan collects the steps of one volume.
func (c *checker) plan(v *volume) error {
	listed, sums, err := v.listedSums()
	if err != nil {
		return err
	}
	blobs := entriesOf(c.manifest, v.info)
	small := len(listed) - len(blobs)
	c.steps = append(c.steps, func(ctx context.Context) error {
		for i, e := range listed[:small] {
			if err := v.prove(ctx, e, sums[i], nil); err != nil {
				return err
			}
		}
		return nil
	})
	for i, e := range listed[small:] {
		if err := c.planEntry(v, e, blobs[i], sums[small+i]); err != nil {
			return err
		}
	}
	return nil
}

// prove hashes an entry.
func (v *volume) prove(ctx context.Context, e entry, want Digest, observe func(int64)) error {
	h := sha256.New()
	if _, err := pump(ctx, h, v.section(e), observe); err != nil {
		return err
	}
	if got := Digest(h.Sum(nil)); got != want {
		return v.mismatch(e, want, got)
	}
	return nil
}

// planEntry collects the steps of a blob's entry.
func (c *checker) planEntry(v *volume, e entry, planned plannedEntry, sum Digest) error {
	if planned.whole() && sum != planned.Blob {
		return v.mismatch(e, planned.Blob, sum)
	}
	list, err := c.chunks(planned.blob)
	switch {
	case err != nil:
		return err
	case list == nil:
		c.steps = append(c.steps, func(ctx context.Context) error { return v.prove(ctx, e, sum, c.observe) })
	case planned.whole():
		for n := range list.Chunks {
			c.steps = append(c.steps, func(ctx context.Context) error { return c.proveChunk(ctx, v, e, list, n) })
		}
	default:
		c.steps = append(c.steps, func(ctx context.Context) error { return c.provePiece(ctx, v, e, planned, list, sum) })
	}
	return nil
}

// chunks gives the chunk list of a blob, nil where there is none or it lies in
// a volume that is not here.
func (c *checker) chunks(b Blob) (*ChunkList, error) {
	if b.Chunks == nil {
		return nil, nil
	}
	if there, err := c.content.Has(*b.Chunks); err != nil || !there {
		return nil, err
	}
	return readChunkList(c.content, c.manifest, b)
}

// proveChunk hashes chunk n of a blob that is one entry.
func (c *checker) proveChunk(ctx context.Context, v *volume, e entry, list *ChunkList, n int) error {
	part := entry{name: e.name, offset: e.offset + int64(n)*ChunkSize, size: min(ChunkSize, e.size-int64(n)*ChunkSize)}
	return v.prove(ctx, part, list.Chunks[n], c.observe)
}

// provePiece hashes a piece, and beside that every chunk that lies in it.
func (c *checker) provePiece(ctx context.Context, v *volume, e entry, planned plannedEntry, list *ChunkList, sum Digest) error {
	proof := pieceProof{volume: v, entry: e, piece: planned, list: list, sum: sum, also: io.Discard, observe: c.observe}
	return proof.run(ctx)
}

// pieceProof reads a piece once and holds it against its sum and, chunk by
// chunk, against the signed list. also is given the bytes on the way.
type pieceProof struct {
	volume  *volume
	entry   entry
	piece   plannedEntry
	list    *ChunkList
	sum     Digest
	also    io.Writer
	observe func(int64)
}

func (p *pieceProof) run(ctx context.Context) error {
	whole := sha256.New()
	for at := int64(0); at < p.entry.size; {
		blobAt := p.piece.Offset + at
		length := min(p.entry.size-at, ChunkSize-blobAt%ChunkSize)
		part := entry{name: p.entry.name, offset: p.entry.offset + at, size: length}
		chunk := sha256.New()
		if _, err := pump(ctx, io.MultiWriter(p.also, whole, chunk), p.volume.section(part), p.observe); err != nil {
			return err
		}
		if blobAt%ChunkSize == 0 && (length == ChunkSize || blobAt+length == p.piece.blob.Size) {
			if want, got := p.list.Chunks[blobAt/ChunkSize], Digest(chunk.Sum(nil)); want != got {
				return p.volume.mismatch(part, want, got)
			}
		}
		at += length
	}
	if got := Digest(whole.Sum(nil)); got != p.sum {
		return p.volume.mismatch(p.entry, p.sum, got)
	}
	return nil
}

// planAcross collects the proofs of cut blobs: those of their chunks that are
// named by number, and of blobs that have no chunk list the whole.
func (c *checker) planAcross(chunks func(*pieced) []int) error {
	for _, b := range c.manifest.Blobs {
		s := c.content[b.Digest]
		if s == nil || len(s.pieces) == 0 || s.pieces[0].entry.size == b.Size {
			continue
		}
		list, err := c.chunks(b)
		if err != nil {
			return err
		}
		if list == nil {
			if there, _ := c.content.Has(b.Digest); there {
				c.seam(s, entry{size: b.Size}, b.Digest)
			}
			continue
		}
		for _, n := range chunks(s) {
			at := int64(n) * ChunkSize
			c.seam(s, entry{offset: at, size: min(ChunkSize, b.Size-at)}, list.Chunks[n])
		}
	}
	return nil
}

// seam is a step over a run of a blob's bytes, across pieces.
func (c *checker) seam(s *pieced, run entry, want Digest) {
	c.steps = append(c.steps, func(ctx context.Context) error {
		h := sha256.New()
		if _, err := pump(ctx, h, io.NewSectionReader(s, run.offset, run.size), nil); err != nil {
			return err
		}
		got := Digest(h.Sum(nil))
		if got == want {
			return nil
		}
		first, _ := s.find(run.offset)
		first.entry.offset += run.offset - first.offset
		return first.volume.mismatch(first.entry, want, got)
	})
}

// listedSums gives all entries but the last, which is SHA256SUMS, and the
// digest that it has for each of them.
func (v *volume) listedSums() ([]entry, []Digest, error) {
	sumsEntry, _ := v.entry(sumsName) // where there is none, its lines are missing
	if sumsEntry.size > maxSums {
		return nil, nil, &DamagedError{Volume: v.name, Entry: sumsName, Offset: sumsEntry.offset, What: "it is too large",
			Want: fmt.Sprintf("at most %d bytes", maxSums), Got: fmt.Sprintf("%d bytes", sumsEntry.size)}
	}
	data, err := v.read(sumsEntry)
	if err != nil {
		return nil, nil, err
	}
	listed := v.entries[:len(v.entries)-1]
	sums, damaged := sumsOf(data, listed)
	if damaged != nil {
		damaged.Volume, damaged.Entry, damaged.Offset = v.name, sumsName, sumsEntry.offset+damaged.Offset
		return nil, nil, damaged
	}
	return listed, sums, nil
}

func (v *volume) mismatch(e entry, want, got Digest) error {
	return &DamagedError{Volume: v.name, Entry: e.name, Offset: e.offset, What: "its bytes are not the right ones", Want: want.String(), Got: got.String()}
}

// checkChunkLists checks that each list is about its blob.
func checkChunkLists(ctx context.Context, m *Manifest, content Content) error {
	for _, b := range m.Blobs {
		if b.Chunks == nil {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := readChunkList(content, m, b); err != nil {
			return err
		}
	}
	return nil
}

func digestOf(b []byte) Digest { return cas.DigestOf(b) }
