package depot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

const (
	// proofAge is how long a proof holds for a file that did not change:
	// disks rot without a trace in the file system.
	proofAge = time.Hour
	// maxProofs bounds what is remembered.
	maxProofs = 1 << 16
)

// prover reads blobs to the end to see whether they are what their names
// promise: each once at a time, however many clients wait for it.
type prover struct {
	open    func(context.Context, bundle.Digest) (io.ReadSeekCloser, error)
	clock   func() time.Time // nil: nothing is remembered
	buffers sync.Pool

	mu      sync.Mutex
	proven  map[bundle.Digest]proven
	running map[bundle.Digest]*proving
}

// proven says that the file had the right bytes.
type proven struct {
	file fs.FileInfo
	at   time.Time
}

// proving is a proof under way, or one that is known already. It ends early
// when nobody waits for it any more.
type proving struct {
	prover *prover
	digest bundle.Digest
	cancel context.CancelFunc // nil: it was known
	joined int                // guarded by prover.mu

	done chan struct{}
	file fs.FileInfo // set before done is closed, as err is
	err  error
}

func newProver(open func(context.Context, bundle.Digest) (io.ReadSeekCloser, error), clock func() time.Time) *prover {
	return &prover{
		open: open, clock: clock,
		buffers: sync.Pool{New: func() any { return new([256 << 10]byte) }},
		proven:  map[bundle.Digest]proven{}, running: map[bundle.Digest]*proving{},
	}
}

// join gives the proof of a blob: the remembered one if the file is still the
// same, the one that is under way, or a new one. Every join needs a leave.
func (p *prover) join(d bundle.Digest, size int64, file fs.FileInfo) *proving {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.proven[d]; ok && unchanged(known.file, file) && p.clock().Sub(known.at) < proofAge {
		v := &proving{prover: p, digest: d, file: known.file, done: make(chan struct{}), joined: 1}
		close(v.done)
		return v
	}
	if v, ok := p.running[d]; ok {
		v.joined++
		return v
	}
	// The work is for all who join, so that it outlives the first request.
	ctx, cancel := context.WithCancel(context.Background())
	v := &proving{prover: p, digest: d, cancel: cancel, joined: 1, done: make(chan struct{})}
	p.running[d] = v
	go v.run(ctx, size)
	return v
}

// leave ends the work when nobody is left who waits for it.
func (v *proving) leave() {
	v.prover.mu.Lock()
	defer v.prover.mu.Unlock()
	v.joined--
	if v.joined > 0 || v.cancel == nil {
		return
	}
	v.cancel()
	v.forget()
}

// forget makes the next request for the blob start anew.
func (v *proving) forget() {
	if v.prover.running[v.digest] == v {
		delete(v.prover.running, v.digest)
	}
}

// wait waits for the proof and compares the file it was made of with the one
// that is being sent, which was info when it was opened.
func (v *proving) wait(ctx context.Context, f opened, info fs.FileInfo) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-v.done:
	}
	if v.err != nil {
		return v.err
	}
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if !unchanged(v.file, info) || !unchanged(info, now) {
		return fmt.Errorf("the stored file of %s changed while it was read", v.digest)
	}
	return nil
}

func (v *proving) run(ctx context.Context, size int64) {
	v.file, v.err = v.prover.read(ctx, v.digest, size)
	v.prover.mu.Lock()
	v.forget()
	if v.err == nil {
		v.prover.remember(v.digest, v.file)
	}
	v.prover.mu.Unlock()
	close(v.done)
}

// remember keeps a proof. A full memory is emptied: what is asked for again is
// proven again.
func (p *prover) remember(d bundle.Digest, file fs.FileInfo) {
	if p.clock == nil {
		return
	}
	if len(p.proven) >= maxProofs {
		clear(p.proven)
	}
	p.proven[d] = proven{file: file, at: p.clock()}
}

// read reads the blob to the end and gives the file that it was.
func (p *prover) read(ctx context.Context, d bundle.Digest, size int64) (_ fs.FileInfo, err error) {
	content, err := p.open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	f, before, err := asFile(content)
	if err != nil {
		return nil, err
	}
	if err := p.drain(ctx, cas.Verify(f, d, size, "the stored blob")); err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err == nil && !unchanged(before, after) {
		err = fmt.Errorf("the stored file of %s changed while it was proven", d)
	}
	return after, err
}

// drain reads to the end.
func (p *prover) drain(ctx context.Context, r io.Reader) error {
	buffer := p.buffers.Get().(*[256 << 10]byte)
	defer p.buffers.Put(buffer)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, err := r.Read(buffer[:])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// unchanged tells whether two looks at a file saw the same one, untouched.
func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && changeTime(a) == changeTime(b)
}
