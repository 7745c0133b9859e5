package cas

import (
	"bytes"
	"errors"
	"os"
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
			if err := a.Keep(p.Offset, p.Length); err != nil {
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
		if a.Keep(bad.Offset, bad.Length) == nil {
			t.Errorf("kept %v of 5 bytes", bad)
		}
	}
	if err := a.Keep(0, 5); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if err := a.Finish(t.Context()); !errors.As(err, &corrupt) {
		t.Errorf("wrong bytes were named: %v", err)
	}
	if gaps, err := s.Gaps(d, 5); err != nil || len(gaps) != 1 || gaps[0] != (Span{0, 5}) {
		t.Errorf("after wrong bytes it lacks %v, %v", gaps, err)
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
	if err := errors.Join(a.Keep(0, 3), a.Close()); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"", "[", "{}", `[{"offset":-1,"length":2}]`, `[{"offset":0,"length":0}]`, `[{"offset":0,"length":4}]`, `[{"offset":2,"length":1},{"offset":0,"length":1}]`, `[{"offset":0,"length":9223372036854775807}]`, `[{"offset":1,"length":9223372036854775807}]`} {
		if err := os.WriteFile(s.assemblyPath(d)+".json", []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		if gaps, err := s.Gaps(d, 5); err != nil || len(gaps) != 1 || gaps[0] != (Span{0, 5}) {
			t.Errorf("the list %s: lacks %v, %v", list, gaps, err)
		}
	}
}
