package cas

import (
	"cmp"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	f, err := os.OpenFile(s.assemblyPath(d), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(&BusyError{Digest: d}, f.Close())
	}
	kept, err := s.keptSpans(d, size)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Assembly{store: s, want: d, size: size, file: f, kept: kept}, nil
}

// keptSpans reads the list of an assembly. A list that cannot be read, or that
// says what cannot be, counts as empty: the pieces are brought again.
func (s *Store) keptSpans(d Digest, size int64) ([]Span, error) {
	b, err := os.ReadFile(s.assemblyPath(d) + ".json")
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

// At writes the blob's bytes from offset on. They count when they are kept.
func (a *Assembly) At(offset int64) io.Writer { return io.NewOffsetWriter(a.file, offset) }

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
func (a *Assembly) Keep(offset, length int64) error {
	if offset < 0 || length <= 0 || offset+length > a.size {
		return fmt.Errorf("bytes %d and %d more are not in a blob of %d", offset, length, a.size)
	}
	if err := a.file.Sync(); err != nil {
		return err
	}
	kept := joinSpans(append(slices.Clone(a.kept), Span{offset, length}))
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
	return WriteBytes(a.file.Name()+".json", 0o600, b)
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

// Finish names the blob when nothing is lacking any more, and closes the
// assembly in any case. Wrong bytes end with a CorruptError; all pieces have to
// be brought again then, since nobody knows which was wrong.
func (a *Assembly) Finish(ctx context.Context) error {
	if len(gapsOf(a.kept, a.size)) > 0 {
		return a.Close()
	}
	if err := a.prove(ctx); err != nil {
		var corrupt *CorruptError
		if errors.As(err, &corrupt) {
			return errors.Join(err, a.drop())
		}
		return errors.Join(err, a.Close())
	}
	// No Sync: Keep has waited for the disk.
	if err := errors.Join(a.file.Chmod(0o444), a.file.Close()); err != nil {
		return err
	}
	if err := os.Rename(a.file.Name(), a.store.Path(a.want)); err != nil {
		return err
	}
	return os.Remove(a.file.Name() + ".json")
}

func (a *Assembly) prove(ctx context.Context) error {
	r := Verify(io.NewSectionReader(a.file, 0, 1<<62), a.want, a.size, "blob "+a.want.String())
	_, err := io.CopyBuffer(io.Discard, contextReader{ctx, r}, make([]byte, copyBuffer))
	return err
}

func (a *Assembly) drop() error {
	return errors.Join(a.file.Close(), os.Remove(a.file.Name()), os.Remove(a.file.Name()+".json"))
}

// Close keeps what was kept for another time.
func (a *Assembly) Close() error { return a.file.Close() }
