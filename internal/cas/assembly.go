package cas

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Span is a run of bytes of a blob.
type Span struct {
	Offset int64 `json:"offset"`
	Length int64 `json:"length"`
}

func (s Span) end() int64 { return s.Offset + s.Length }

// Assembly is a blob that comes in pieces, in any order and over any time. What
// was kept survives a restart; nothing of it is under the blob's name before
// all of it is there and has the right digest. One assembly of a blob is open
// at a time.
type Assembly struct {
	store *Store
	want  Digest
	size  int64
	file  *os.File
	kept  []Span // ascending, none touching another
}

// listSuffix is that of the list of what is there of an assembly.
const listSuffix = ".json"

// maxSpans bounds the list of an assembly: more pieces than a volume set has.
const maxSpans = 100_000

func (s *Store) assemblyDir() string { return filepath.Join(s.dir, "assembly") }

func (s *Store) assemblyPath(d Digest) string { return filepath.Join(s.assemblyDir(), d.Hex()) }

// BusyError says that the blob is being put together by somebody else.
type BusyError struct{ Digest Digest }

func (e *BusyError) Error() string {
	return fmt.Sprintf("blob %s is being brought by somebody else at the same time", e.Digest)
}

// Code is the stable code of this error.
func (e *BusyError) Code() string { return "store/busy" }

// Remedy says what to do.
func (e *BusyError) Remedy() string { return "run the same command again when that has ended" }

// Assemble begins the assembly of a blob, or goes on with it.
func (s *Store) Assemble(d Digest, size int64) (*Assembly, error) {
	if err := os.MkdirAll(s.assemblyDir(), 0o755); err != nil {
		return nil, err
	}
	f, err := OpenPlain(s.assemblyPath(d), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	kept, err := s.claimAssembly(f, d, size)
	if err != nil {
		return nil, errors.Join(err, Unlock(f))
	}
	return &Assembly{store: s, want: d, size: size, file: f, kept: kept}, nil
}

// claimAssembly makes sure that f is this process's alone and still has its
// place: whoever had it before may have given it its name.
func (s *Store) claimAssembly(f *os.File, d Digest, size int64) ([]Span, error) {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, &BusyError{Digest: d}
	}
	mine, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if there, err := os.Lstat(f.Name()); err != nil || !os.SameFile(there, mine) {
		return nil, &BusyError{Digest: d}
	}
	if mine.Size() == 0 { // a new one: a list is about one that is gone
		if err := removeIfThere(f.Name() + listSuffix); err != nil {
			return nil, err
		}
	}
	return s.keptSpans(d, size)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Assembling lists the blobs of which some was kept and not all has come, in
// ascending order.
func (s *Store) Assembling() ([]Digest, error) {
	entries, err := os.ReadDir(s.assemblyDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var begun []Digest
	for _, e := range entries {
		d, err := ParseDigest("sha256:" + strings.TrimSuffix(e.Name(), listSuffix))
		if err == nil { // other names are not ours
			begun = append(begun, d)
		}
	}
	return slices.Compact(begun), nil // what is there of it, and the list, stand side by side
}

// DropAssembly forgets what was kept of a blob that is not needed in pieces any
// more. One that somebody has open stays.
func (s *Store) DropAssembly(d Digest) error {
	path := s.assemblyPath(d)
	f, err := OpenPlain(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return removeIfThere(path + listSuffix)
	}
	if err != nil {
		return err
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return f.Close()
	}
	return errors.Join(removeIfThere(path+listSuffix), removeIfThere(path), Unlock(f))
}

// keptSpans reads the list of an assembly. A list that cannot be read, or that
// says what cannot be, counts as empty: the pieces are brought again.
func (s *Store) keptSpans(d Digest, size int64) ([]Span, error) {
	b, err := ReadPlain(s.assemblyPath(d)+listSuffix, maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(s.assemblyPath(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var kept []Span
	if json.Unmarshal(b, &kept) != nil || len(kept) > maxSpans {
		return nil, nil
	}
	at := int64(-1)
	for _, k := range kept {
		if k.Offset <= at || k.Length <= 0 || k.Length > min(size, info.Size())-k.Offset {
			return nil, nil
		}
		at = k.end()
	}
	return kept, nil
}

// Gaps lists what an assembly still lacks; all of the blob when there is none.
// A blob without bytes is one gap without bytes.
func (s *Store) Gaps(d Digest, size int64) ([]Span, error) {
	kept, err := s.keptSpans(d, size)
	if err != nil {
		return nil, err
	}
	return gapsOf(kept, size), nil
}

func gapsOf(kept []Span, size int64) []Span {
	if size == 0 {
		return []Span{{}}
	}
	var gaps []Span
	var at int64
	for _, k := range append(slices.Clone(kept), Span{Offset: size}) {
		if k.Offset > at {
			gaps = append(gaps, Span{Offset: at, Length: k.Offset - at})
		}
		at = k.end()
	}
	return gaps
}

// At writes the blob's bytes from offset on. They count when they are kept; what
// was kept before is left as it is, so that bytes which turn out to be wrong
// spoil nothing.
func (a *Assembly) At(offset int64) io.Writer { return &assemblyWriter{a, offset} }

type assemblyWriter struct {
	assembly *Assembly
	at       int64
}

func (w *assemblyWriter) Write(p []byte) (n int, err error) {
	for n < len(p) {
		until, kept := w.assembly.stretch(w.at)
		part := p[n:min(int64(len(p)), int64(n)+until-w.at)]
		if !kept {
			if _, err := w.assembly.file.WriteAt(part, w.at); err != nil {
				return n, err
			}
		}
		n, w.at = n+len(part), w.at+int64(len(part))
	}
	return n, nil
}

// stretch tells whether the byte was kept, and how far that holds.
func (a *Assembly) stretch(at int64) (until int64, kept bool) {
	i, found := slices.BinarySearchFunc(a.kept, at, func(k Span, at int64) int { return cmp.Compare(k.Offset, at) })
	if !found {
		i--
	}
	if i >= 0 && at < a.kept[i].end() {
		return a.kept[i].end(), true
	}
	if i+1 < len(a.kept) {
		return a.kept[i+1].Offset, false
	}
	return 1 << 62, false
}

// Holds tells whether these bytes were kept.
func (a *Assembly) Holds(offset, length int64) bool {
	for _, k := range a.kept {
		if k.Offset <= offset && offset+length <= k.end() {
			return true
		}
	}
	return false
}

// Keep makes bytes last that were written.
func (a *Assembly) Keep(spans ...Span) error {
	for _, s := range spans {
		if s.Offset < 0 || s.Length <= 0 || s.Length > a.size-s.Offset {
			return fmt.Errorf("bytes %d and %d more are not in a blob of %d", s.Offset, s.Length, a.size)
		}
	}
	if err := a.file.Sync(); err != nil {
		return err
	}
	kept := joinSpans(append(slices.Clone(a.kept), spans...))
	if len(kept) > maxSpans {
		return fmt.Errorf("the blob %s comes in more than %d pieces", a.want, maxSpans)
	}
	if err := a.writeList(kept); err != nil {
		return err
	}
	a.kept = kept
	return nil
}

func (a *Assembly) writeList(kept []Span) error {
	b, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return WriteBytes(a.file.Name()+listSuffix, 0o600, b)
}

// joinSpans sorts spans and joins those that touch or overlap.
func joinSpans(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Offset, b.Offset) })
	var joined []Span
	for _, s := range spans {
		if n := len(joined) - 1; n >= 0 && s.Offset <= joined[n].end() {
			joined[n].Length = max(joined[n].Length, s.end()-joined[n].Offset)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// Whole tells whether nothing is lacking any more. The bytes are proven by
// Finish alone.
func (a *Assembly) Whole() bool { return len(gapsOf(a.kept, a.size)) == 0 }

// Finish proves the blob and names it when nothing is lacking any more, and
// closes the assembly in any case, unless the bytes are wrong: that ends with a
// CorruptError, and the caller either sifts or drops what was kept.
func (a *Assembly) Finish(ctx context.Context) error {
	if !a.Whole() {
		return a.Close()
	}
	if err := a.prove(ctx); err != nil {
		var corrupt *CorruptError
		if errors.As(err, &corrupt) {
			return err
		}
		return errors.Join(err, a.Close())
	}
	// The list goes first: without it the file counts for nothing, and with the
	// blob's name it needs none. No Sync: Keep has waited for the disk.
	err := removeIfThere(a.file.Name() + listSuffix)
	if err == nil {
		err = os.Rename(a.file.Name(), a.store.Path(a.want))
	}
	if err == nil {
		err = a.file.Chmod(0o444)
	}
	return errors.Join(err, Unlock(a.file)) // the lock ends after the rename
}

func (a *Assembly) prove(ctx context.Context) error {
	r := Verify(io.NewSectionReader(a.file, 0, 1<<62), a.want, a.size, "blob "+a.want.String())
	_, err := io.CopyBuffer(io.Discard, contextReader{ctx, r}, make([]byte, copyBuffer))
	return err
}

// Sift keeps, of an assembly with wrong bytes, the chunks of this size that have
// the given digests, forgets the others, and closes it.
func (a *Assembly) Sift(ctx context.Context, chunkSize int64, chunks []Digest) error {
	var sound []Span
	for i, want := range chunks {
		at := int64(i) * chunkSize
		span := Span{at, min(chunkSize, a.size-at)}
		h := sha256.New()
		if _, err := io.CopyBuffer(h, contextReader{ctx, io.NewSectionReader(a.file, span.Offset, span.Length)}, make([]byte, copyBuffer)); err != nil {
			return errors.Join(err, a.Close())
		}
		if Digest(h.Sum(nil)) == want {
			sound = append(sound, span)
		}
	}
	return errors.Join(a.writeList(joinSpans(sound)), a.Close())
}

// Drop forgets all that was kept, and closes the assembly.
func (a *Assembly) Drop() error {
	return errors.Join(removeIfThere(a.file.Name()+listSuffix), removeIfThere(a.file.Name()), Unlock(a.file))
}

// Close keeps what was kept for another time.
func (a *Assembly) Close() error { return Unlock(a.file) }
