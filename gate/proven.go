package gate

import (
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// provenBlobs are the files of the store that were read or written to their
// end, and so proven, while a case is being received or released.
type provenBlobs struct {
	store *cas.Store
	mu    sync.Mutex
	files map[bundle.Digest]fileIdentity
}

// fileIdentity changes when somebody writes to a file, or puts another in its
// place: the time of the last change of status is the kernel's own.
type fileIdentity struct {
	device, inode    uint64
	size             int64
	modified, status syscall.Timespec
}

func (p *provenBlobs) identity(d bundle.Digest) (fileIdentity, bool) {
	info, err := os.Stat(p.store.Path(d))
	if err != nil {
		return fileIdentity{}, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileIdentity{}, false
	}
	return fileIdentity{uint64(s.Dev), s.Ino, s.Size, s.Mtim, s.Ctim}, true
}

// still tells whether the file of a blob is the very one that was proven.
func (p *provenBlobs) still(d bundle.Digest) bool {
	now, ok := p.identity(d)
	p.mu.Lock()
	defer p.mu.Unlock()
	proven, was := p.files[d]
	return ok && was && proven == now
}

// Add implements bundle.Proofs: what has its name this very moment is proven.
func (p *provenBlobs) Add(d bundle.Digest) {
	if now, ok := p.identity(d); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.files[d] = now
	}
}

// Has implements bundle.Proofs.
func (p *provenBlobs) Has(d bundle.Digest) bool { return p.still(d) }

// begunProofs are the proven blobs of bundles that are not all here yet, so
// that the last of their volumes has nobody read again what the ones before
// brought. They last no longer than the process; whatever is not known is read.
type begunProofs struct {
	mu    sync.Mutex
	of    map[bundle.Digest]*provenBlobs
	order []bundle.Digest // of their first volumes
}

// mostBegun bounds of how many bundles proofs are kept: they take memory.
const mostBegun = 4

// begin gives what is proven of a bundle so far.
func (b *begunProofs) begin(manifest bundle.Digest, store *cas.Store) *provenBlobs {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.of[manifest]; p != nil {
		return p
	}
	if len(b.order) == mostBegun {
		delete(b.of, b.order[0])
		b.order = b.order[1:]
	}
	if b.of == nil {
		b.of = map[bundle.Digest]*provenBlobs{}
	}
	p := &provenBlobs{store: store, files: map[bundle.Digest]fileIdentity{}}
	b.of[manifest], b.order = p, append(b.order, manifest)
	return p
}

// end forgets a bundle that is all here.
func (b *begunProofs) end(manifest bundle.Digest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, manifest)
	b.order = slices.DeleteFunc(b.order, func(d bundle.Digest) bool { return d == manifest })
}

// watch notes the blob as proven when its verifying reader comes to a good end,
// unless the file was changed meanwhile.
func (p *provenBlobs) watch(content io.ReadCloser, d bundle.Digest) (io.ReadCloser, error) {
	before, ok := p.identity(d)
	if !ok {
		return content, nil // what cannot be told apart is read every time
	}
	return &provingReader{ReadCloser: content, proven: p, digest: d, before: before}, nil
}

type provingReader struct {
	io.ReadCloser
	proven *provenBlobs
	digest bundle.Digest
	before fileIdentity
}

func (r *provingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if now, ok := r.proven.identity(r.digest); ok && now == r.before {
		r.proven.mu.Lock()
		defer r.proven.mu.Unlock()
		r.proven.files[r.digest] = now
	}
	return n, err
}
