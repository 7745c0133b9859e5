package cas

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAssembly brings a blob in pieces, out of order and over restarts.
func TestAssembly(t *testing.T) {
	s := newStore(t)
	blob := bytes.Repeat([]byte("0123456789"), 100)
	d := DigestOf(blob)
	bring := func(spans ...Span) error {
		a, err := s.Assemble(d, int64(len(blob)))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range spans {
			if _, err := a.At(p.Offset).Write(blob[p.Offset:p.end()]); err != nil {
				t.Fatal(err)
			}
			if err := a.Keep(p); err != nil {
				t.Fatal(err)
			}
		}
		return a.Finish(t.Context())
	}
	lacks := func(want ...Span) {
		t.Helper()
		got, err := s.Gaps(d, int64(len(blob)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("it lacks (-want +got):\n%s", diff)
		}
	}
	lacks(Span{0, 1000})
	if err := bring(Span{900, 100}, Span{100, 50}); err != nil {
		t.Fatal(err)
	}
	lacks(Span{0, 100}, Span{150, 750})
	if err := bring(Span{0, 300}); err != nil {
		t.Fatal(err)
	}
	lacks(Span{300, 600})
	if there, err := s.Has(d, 1000); err != nil || there {
		t.Error("the blob has its name before it is whole")
	}
	if err := bring(Span{290, 620}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.ReadAll(d, 1000); err != nil || !bytes.Equal(got, blob) {
		t.Errorf("the blob: %v", err)
	}
	left, err := os.ReadDir(s.assemblyDir())
	if err != nil || len(left) != 0 {
		t.Errorf("left in assembly: %v, %v", left, err)
	}
}

func TestAssemblyOfWrongBytes(t *testing.T) {
	s := newStore(t)
	d := DigestOf([]byte("right"))
	a, err := s.Assemble(d, 5)
	if err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if _, err := s.Assemble(d, 5); !errors.As(err, &busy) {
		t.Errorf("a second assembly of the blob: %v", err)
	}
	if _, err := a.At(0).Write([]byte("wrong")); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []Span{{-1, 2}, {0, 6}, {5, 1}, {0, 0}} {
		if a.Keep(bad) == nil {
			t.Errorf("kept %v of 5 bytes", bad)
		}
	}
	if err := a.Keep(Span{0, 5}); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if err := a.Finish(t.Context()); !errors.As(err, &corrupt) {
		t.Errorf("wrong bytes were named: %v", err)
	}
	if err := a.Sift(t.Context(), 2, []Digest{DigestOf([]byte("wr")), DigestOf([]byte("xx")), DigestOf([]byte("g"))}); err != nil {
		t.Fatal(err)
	}
	if gaps, err := s.Gaps(d, 5); err != nil || len(gaps) != 1 || gaps[0] != (Span{2, 2}) {
		t.Errorf("after sifting it lacks %v, %v", gaps, err)
	}
	if a, err = s.Assemble(d, 5); err != nil {
		t.Fatal(err)
	}
	if err := a.Drop(); err != nil {
		t.Fatal(err)
	}
	if gaps, err := s.Gaps(d, 5); err != nil || len(gaps) != 1 || gaps[0] != (Span{0, 5}) {
		t.Errorf("after wrong bytes it lacks %v, %v", gaps, err)
	}
}

// TestAssemblyIsAPlainFile puts something else into the place of an assembly: it is
// neither written to nor waited for.
func TestAssemblyIsAPlainFile(t *testing.T) {
	s := newStore(t)
	d := DigestOf([]byte("12345"))
	other := filepath.Join(t.TempDir(), "other")
	if err := os.MkdirAll(s.assemblyDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(path string) error{
		"a pipe":            func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link":            func(path string) error { return os.Symlink(other, path) },
		"a link to nothing": func(path string) error { return os.Symlink(other+"2", path) },
	} {
		if err := errors.Join(os.WriteFile(other, []byte("other"), 0o600), put(s.assemblyPath(d))); err != nil {
			t.Fatal(err)
		}
		var notPlain *NotPlainError
		if _, err := s.Assemble(d, 5); !errors.As(err, &notPlain) {
			t.Errorf("%s is gone on with: %v", name, err)
		}
		if err := s.DropAssembly(d); !errors.As(err, &notPlain) {
			t.Errorf("%s is dropped: %v", name, err)
		}
		if _, err := os.Lstat(other + "2"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the other file was made: %v", name, err)
		}
		if err := os.Remove(s.assemblyPath(d)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAssemblyListsThatLie: a list that cannot be true counts as empty.
func TestAssemblyListsThatLie(t *testing.T) {
	s := newStore(t)
	d := DigestOf([]byte("12345"))
	a, err := s.Assemble(d, 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.At(0).Write([]byte("123")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Keep(Span{0, 3}), a.Close()); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"", "[", "{}", `[{"offset":-1,"length":2}]`, `[{"offset":0,"length":0}]`, `[{"offset":0,"length":4}]`, `[{"offset":2,"length":1},{"offset":0,"length":1}]`, `[{"offset":0,"length":9223372036854775807}]`, `[{"offset":1,"length":9223372036854775807}]`} {
		if err := os.WriteFile(s.assemblyPath(d)+listSuffix, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		if gaps, err := s.Gaps(d, 5); err != nil || len(gaps) != 1 || gaps[0] != (Span{0, 5}) {
			t.Errorf("the list %s: lacks %v, %v", list, gaps, err)
		}
	}
}

// TestAssembliesOfAnotherTime: a list without its file, a file that got its name
// meanwhile, and dropping.
func TestAssembliesOfAnotherTime(t *testing.T) {
	s := newStore(t)
	d := DigestOf([]byte("12345"))
	a, err := s.Assemble(d, 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.At(0).Write([]byte("12345")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Keep(Span{0, 5}), a.Close()); err != nil {
		t.Fatal(err)
	}
	if there, err := s.Has(d, 5); err != nil || there {
		t.Error("it has its name before it was proven")
	}
	// Its file is gone, the list is not: a new one begins with nothing.
	if err := os.Remove(s.assemblyPath(d)); err != nil {
		t.Fatal(err)
	}
	if a, err = s.Assemble(d, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := a.At(4).Write([]byte("5")); err != nil {
		t.Fatal(err)
	}
	if a.Holds(0, 1) || a.Whole() {
		t.Error("the list of another file counts")
	}
	if err := s.DropAssembly(d); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.assemblyPath(d)); err != nil {
		t.Errorf("one that is open was dropped: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.DropAssembly(d); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(s.assemblyDir()); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := s.DropAssembly(d); err != nil {
		t.Errorf("where there is none: %v", err)
	}
}

// TestAssemblyKeepsWhatItHas: bytes that come over kept ones do not touch them.
func TestAssemblyKeepsWhatItHas(t *testing.T) {
	s := newStore(t)
	d := DigestOf([]byte("0123456789"))
	a, err := s.Assemble(d, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{2, 6} {
		if _, err := a.At(at).Write([]byte("0123456789")[at : at+2]); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Keep(Span{2, 2}, Span{6, 2}); err != nil {
		t.Fatal(err)
	}
	w := a.At(0)
	for _, part := range []string{"x", "xxxx", "", "xxxxx"} { // never kept
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := a.At(0).Write([]byte("01xx45xx89")); err != nil {
		t.Fatal(err)
	}
	if err := a.Keep(Span{0, 10}); err != nil {
		t.Fatal(err)
	}
	if err := a.Finish(t.Context()); err != nil {
		t.Error(err)
	}
}
