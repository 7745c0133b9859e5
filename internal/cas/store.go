// Package cas is a content-addressed store: blobs in a directory, each named
// by its SHA-256, with readers that verify and files that last.
//
// A blob is under its name only when it is whole and, unless the store is Lazy,
// synced; that the names last too, SyncNames makes sure of, once for many. The store never trusts what
// it holds: Open hashes while it is read, since disks rot and people edit. It
// knows nothing of what the bytes mean.
//
// On disk (an OCI image layout may point its blobs folder here):
//
//	packhof-store        marks the folder as a store
//	blobs/sha256/<hex>   one file a blob, mode 0444
//	notes/<name>/<hex>   what was computed from a blob once
//	ingest/<random>      being written; swept by Sweep
//	assembly/<hex>       comes in pieces; <hex>.json says which are there
package cas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Store is a directory of blobs. It is safe for use by several goroutines,
// and by several processes that only read or put.
type Store struct {
	dir  string
	tap  func(size int64) Tap
	lazy bool
}

// Tap sees the bytes of a blob on their way in, so that whatever else is to be
// known of them needs no second reading.
type Tap interface {
	io.Writer
	// Finish is called once the blob is in the store under its name.
	Finish(d Digest) error
}

// WithTap returns a store on the same directory that asks tap, for every blob
// of a known size, whether somebody wants to look on; nil means nobody does.
func (s *Store) WithTap(tap func(size int64) Tap) *Store {
	return &Store{dir: s.dir, tap: tap, lazy: s.lazy}
}

// Lazy returns a store on the same directory that does not wait for the disk
// when a blob is put from a reader. It is for content that can be had again: a
// power cut may leave other bytes under a name, which whoever reads them finds
// out and DropIfRotten takes away. PutBytes still waits.
func (s *Store) Lazy() *Store { return &Store{dir: s.dir, tap: s.tap, lazy: true} }

// NotFoundError says that the store has no such blob.
type NotFoundError struct{ Digest Digest }

func (e *NotFoundError) Error() string { return fmt.Sprintf("blob %s is not in the store", e.Digest) }

// Code is the stable code of this error.
func (e *NotFoundError) Code() string { return "store/missing" }

// Is lets errors.Is(err, fs.ErrNotExist) hold.
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// marker is the file that makes a folder a store. A store sweeps its folder;
// nobody's files may ever be swept by a wrong path in a configuration.
const (
	marker     = "packhof-store"
	maxMarker  = 4 << 10 // bytes
	markerText = "This folder belongs to packhof, which deletes in it as it likes.\n"
)

// ForeignError says that a folder holds files and is no store.
type ForeignError struct{ Dir, Found string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s holds files and is no store of ours", e.Dir)
}

// Code is the stable code of this error.
func (e *ForeignError) Code() string { return "store/foreign" }

// Evidence names one of the files.
func (e *ForeignError) Evidence() []string { return []string{"found:  " + e.Found} }

// Remedy says which folders a store may be.
func (e *ForeignError) Remedy() string {
	return "name an empty folder, or one that does not exist yet, as the store"
}

// claim marks a new or empty folder as a store, and refuses any other.
func claim(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(there) == 0 {
		return WriteBytes(filepath.Join(dir, marker), 0o644, []byte(markerText))
	}
	text, err := ReadPlain(filepath.Join(dir, marker), maxMarker)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if string(text) != markerText {
		return &ForeignError{Dir: dir, Found: there[0].Name()}
	}
	return nil
}

// OpenStore opens the store at dir, making it when dir is absent or empty. Any
// other folder is refused with a ForeignError.
func OpenStore(dir string) (*Store, error) {
	s := &Store{dir: dir}
	if err := claim(dir); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	for _, sub := range []string{s.BlobsDir(), s.ingestDir()} {
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	return s, nil
}

// Dir is the store's own directory.
func (s *Store) Dir() string { return s.dir }

// BlobsDir is the folder whose files are named by 64 hex digits.
func (s *Store) BlobsDir() string { return filepath.Join(s.dir, "blobs", "sha256") }

func (s *Store) ingestDir() string { return filepath.Join(s.dir, "ingest") }

// Path is where the blob is, or would be.
func (s *Store) Path(d Digest) string { return filepath.Join(s.BlobsDir(), d.Hex()) }

// Size is the blob's size; NotFoundError if it is not here.
func (s *Store) Size(d Digest) (int64, error) {
	info, err := os.Lstat(s.Path(d))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, &NotFoundError{Digest: d}
	}
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, &blobNotPlain{NotPlainError{s.Path(d), kindOf(info.Mode())}}
	}
	return info.Size(), nil
}

// Has reports whether the blob is here with this size. It looks at the name
// and the size only; reading is what verifies.
func (s *Store) Has(d Digest, size int64) (bool, error) {
	got, err := s.Size(d)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && got == size, err
}

// Open reads the blob through a Verifier: reading to io.EOF proves it.
func (s *Store) Open(d Digest) (io.ReadCloser, error) {
	f, err := s.OpenUnsafe(d)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &verifiedFile{Verifier: Verify(f, d, info.Size(), s.Path(d)), file: f}, nil
}

type verifiedFile struct {
	*Verifier
	file *os.File
}

func (v *verifiedFile) Close() error { return v.file.Close() }

// OpenUnsafe gives the file as it is, unverified; the caller hashes.
func (s *Store) OpenUnsafe(d Digest) (*os.File, error) {
	f, err := OpenPlain(s.Path(d), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotFoundError{Digest: d}
	}
	return f, err
}

// ReadAll reads a blob of at most limit bytes into memory and verifies it.
func (s *Store) ReadAll(d Digest, limit int64) ([]byte, error) {
	size, err := s.Size(d)
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("blob %s has %d bytes, more than the %d allowed here", d, size, limit)
	}
	r, err := s.Open(d)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

// PutBytes stores bytes in memory and returns their name.
func (s *Store) PutBytes(ctx context.Context, b []byte) (Digest, error) {
	d := DigestOf(b)
	// A copy that rotted is replaced, since the bytes are at hand.
	if there, err := s.ReadAll(d, int64(len(b))); err == nil && bytes.Equal(there, b) {
		return d, nil
	}
	waiting := &Store{dir: s.dir, tap: s.tap}
	return d, waiting.Put(ctx, bytes.NewReader(b), d, int64(len(b)), d.String())
}

// DropIfRotten removes a blob whose bytes are not those of its name, and
// reports whether it did. A sound or absent blob is left as it is. Every writer
// in also is given the bytes that were read.
func (s *Store) DropIfRotten(ctx context.Context, d Digest, also ...io.Writer) (bool, error) {
	r, err := s.Open(d)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = io.CopyBuffer(io.MultiWriter(also...), contextReader{ctx, r}, make([]byte, copyBuffer))
	err = errors.Join(err, r.Close())
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) {
		return false, err
	}
	return true, os.Remove(s.Path(d))
}

// Put stores what r brings if it is exactly the blob d of that size; else it
// returns a CorruptError naming what, and keeps nothing.
//
// Every writer in also is given the same bytes.
func (s *Store) Put(ctx context.Context, r io.Reader, d Digest, size int64, what string, also ...io.Writer) error {
	in, err := s.Ingest()
	if err != nil {
		return err
	}
	tap := s.startTap(size)
	if tap != nil {
		also = append(also, tap)
	}
	// One byte more than promised is enough to know that there are too many.
	limited := io.LimitReader(contextReader{ctx, r}, size+1)
	into := io.MultiWriter(append([]io.Writer{in}, also...)...)
	if _, err := io.CopyBuffer(into, limited, make([]byte, copyBuffer)); err != nil {
		return errors.Join(err, in.Abort())
	}
	if err := in.Commit(ctx, d, size, what); err != nil || tap == nil {
		return err
	}
	return tap.Finish(d)
}

func (s *Store) startTap(size int64) Tap {
	if s.tap == nil {
		return nil
	}
	return s.tap(size)
}

const copyBuffer = 256 << 10

// contextReader makes a long copy end when its context does.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// Ingest is a blob on its way in. Write to it, then Commit or Abort,
// each of which ends it.
type Ingest struct {
	store   *Store
	file    *os.File
	hash    hash.Hash
	written int64
	started int64 // how much the disk has been told to begin with
	lazy    bool  // do not wait for the disk
}

// Ingest begins a blob whose name may not be known yet.
func (s *Store) Ingest() (*Ingest, error) {
	f, err := os.CreateTemp(s.ingestDir(), "")
	if err != nil {
		return nil, err
	}
	return &Ingest{store: s, file: f, hash: sha256.New(), lazy: s.lazy}, nil
}

// Write appends and hashes. It starts the disk early on what has been
// written, so that the sync at the end has little left to wait for.
func (in *Ingest) Write(p []byte) (int, error) {
	n, err := in.writeAndHash(p)
	in.written += int64(n)
	if !in.lazy && in.written-in.started >= writebackEvery {
		startWriteback(in.file, in.started, in.written-in.started)
		in.started = in.written
	}
	return n, err
}

const writebackEvery = 8 << 20

// worthTwo is how much must be there to write before hashing beside writing
// gains more than it costs.
const worthTwo = 256 << 10

// writeAndHash does both at the same time where that is worth it: together they
// take as long as the slower of the two.
func (in *Ingest) writeAndHash(p []byte) (int, error) {
	if len(p) < worthTwo {
		n, err := in.file.Write(p)
		_, _ = in.hash.Write(p[:n]) // a hash never fails
		return n, err
	}
	hashed := make(chan struct{})
	go func() {
		_, _ = in.hash.Write(p) // a hash never fails; after a short write nobody asks for it
		close(hashed)
	}()
	n, err := in.file.Write(p)
	<-hashed
	return n, err
}

// Commit names the blob d, or drops it and returns a CorruptError naming what
// when other bytes were written.
func (in *Ingest) Commit(ctx context.Context, d Digest, size int64, what string) error {
	got := in.Sum()
	if in.written != size || got != d {
		corrupt := &CorruptError{What: what, Want: d, Got: got, WantSize: size, GotSize: in.written}
		return errors.Join(corrupt, in.Abort())
	}
	return in.commit(ctx, d)
}

// Sum is the digest of what was written so far.
func (in *Ingest) Sum() (d Digest) {
	in.hash.Sum(d[:0])
	return d
}

func (in *Ingest) commit(ctx context.Context, d Digest) error {
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), in.Abort())
	}
	err := in.file.Chmod(0o444)
	if !in.lazy {
		err = errors.Join(err, in.file.Sync())
	}
	err = errors.Join(err, in.file.Close())
	if err == nil {
		err = os.Rename(in.file.Name(), in.store.Path(d))
	}
	if err != nil {
		return errors.Join(err, os.Remove(in.file.Name()))
	}
	return nil
}

// Abort drops the file.
func (in *Ingest) Abort() error {
	return errors.Join(in.file.Close(), os.Remove(in.file.Name()))
}

// SyncNames makes the names of all blobs last that were put before. Without it
// a power cut can take names away, never bytes from under a name.
func (s *Store) SyncNames() error { return SyncDir(s.BlobsDir()) }

// Sweep removes what a killed process left behind in ingest. The caller makes
// sure that no other process is putting at the same time.
func (s *Store) Sweep() error {
	left, err := os.ReadDir(s.ingestDir())
	if err != nil {
		return err
	}
	for _, entry := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.ingestDir(), entry.Name())))
	}
	return err
}

// Each tells of every blob here, in no order, with its size.
func (s *Store) Each(tell func(d Digest, size int64)) error {
	entries, err := os.ReadDir(s.BlobsDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		d, err := ParseHex(entry.Name())
		if err != nil {
			continue // nothing that Open would find
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		tell(d, info.Size())
	}
	return nil
}

// Remove takes a blob away; one that is not here is fine. The caller makes sure
// that nobody needs it, and that no other process is working in the store.
func (s *Store) Remove(d Digest) error { return removeIfThere(s.Path(d)) }
