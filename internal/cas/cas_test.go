package cas_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/packhof/packhof/internal/cas"
)

func open(t *testing.T) *cas.Store {
	t.Helper()
	s, err := cas.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestT03DigestAsPath(t *testing.T) {
	good := "sha256:" + strings.Repeat("0a", 32)
	d, err := cas.ParseDigest(good)
	if err != nil || d.String() != good {
		t.Fatalf("ParseDigest(%q) = %v, %v", good, d, err)
	}
	for _, bad := range []string{
		"", "sha256:", "sha256:../../etc/passwd", "sha256:" + strings.Repeat("A", 64), "sha256:" + strings.Repeat("a", 63),
		"sha256:" + strings.Repeat("a", 65), "sha512:" + strings.Repeat("a", 64), "SHA256:" + strings.Repeat("a", 64),
		"sha256:" + strings.Repeat("a", 62) + "٣", " " + good, good + "\n", strings.Repeat("a", 64), "sha256:" + strings.Repeat("a", 62) + "/a",
	} {
		var malformed *cas.DigestError
		if got, err := cas.ParseDigest(bad); !errors.As(err, &malformed) {
			t.Errorf("ParseDigest(%q) = %v, %v, want a *DigestError", bad, got, err)
		}
	}
}

func FuzzParseDigest(f *testing.F) {
	f.Add("sha256:" + strings.Repeat("0a", 32))
	f.Add("sha256:../x")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := cas.ParseDigest(s); err == nil && d.String() != s {
			t.Errorf("%q was accepted and is written %q", s, d)
		}
	})
}

func TestPutRefusesOtherBytes(t *testing.T) {
	content := []byte("what was promised")
	d := cas.DigestOf(content)
	for name, got := range map[string][]byte{
		"same size":  []byte("what was PROMISED"),
		"too short":  content[:5],
		"too long":   append(bytes.Clone(content), 'x'),
		"nothing":    nil,
		"other name": bytes.Repeat([]byte{0}, len(content)),
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			err := s.Put(t.Context(), bytes.NewReader(got), d, int64(len(content)), "the upstream file")
			var corrupt *cas.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Want != d || len(corrupt.Evidence()) != 2 {
				t.Fatalf("Put = %v, want a CorruptError with evidence", err)
			}
			if ok, _ := s.Has(d, int64(len(content))); ok {
				t.Error("the store has the blob all the same")
			}
			assertNoIngest(t, s)
		})
	}
}

func TestPutSurvivesOddReaders(t *testing.T) {
	content := bytes.Repeat([]byte("packhof "), 100_000)
	d := cas.DigestOf(content)
	for name, r := range map[string]io.Reader{
		"one byte":     iotest.OneByteReader(bytes.NewReader(content)),
		"data and EOF": iotest.DataErrReader(bytes.NewReader(content)),
	} {
		s := open(t)
		if err := s.Put(t.Context(), r, d, int64(len(content)), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, err := s.ReadAll(d, int64(len(content)))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: read back %d bytes, %v", name, len(got), err)
		}
	}
	s := open(t)
	broken := errors.New("connection reset")
	if err := s.Put(t.Context(), iotest.ErrReader(broken), d, 3, "x"); !errors.Is(err, broken) {
		t.Errorf("Put = %v, want the reader's error", err)
	}
	assertNoIngest(t, s)
}

func TestPutEndsWithItsContext(t *testing.T) {
	s := open(t)
	cause := errors.New("pressed Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := s.Put(ctx, strings.NewReader("x"), cas.DigestOf([]byte("x")), 1, "x"); !errors.Is(err, cause) {
		t.Errorf("Put = %v, want the cause", err)
	}
	assertNoIngest(t, s)
}

func TestOpenFindsRot(t *testing.T) {
	s := open(t)
	d, err := s.PutBytes(t.Context(), []byte("sound"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.Path(d), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path(d), []byte("rotte"), 0o644); err != nil {
		t.Fatal(err)
	}
	var corrupt *cas.CorruptError
	if _, err := s.ReadAll(d, 100); !errors.As(err, &corrupt) {
		t.Errorf("ReadAll of a rotten blob = %v, want a CorruptError", err)
	}
}

func TestMissingAndTooLarge(t *testing.T) {
	s := open(t)
	if _, err := s.Open(cas.DigestOf(nil)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a missing blob = %v", err)
	}
	d, err := s.PutBytes(t.Context(), []byte("four"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadAll(d, 3); err == nil {
		t.Error("ReadAll above its limit succeeded")
	}
}

// A store sweeps its folder, so a wrong path in a configuration must never make
// a store of somebody's files.
func TestOnlyOurFoldersAreStores(t *testing.T) {
	theirs := t.TempDir()
	precious := filepath.Join(theirs, "work", "thesis.txt")
	if err := os.MkdirAll(filepath.Dir(precious), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(precious, []byte("years"), 0o644); err != nil {
		t.Fatal(err)
	}
	var foreign *cas.ForeignError
	if _, err := cas.OpenStore(theirs); !errors.As(err, &foreign) || len(foreign.Evidence()) != 1 || foreign.Remedy() == "" {
		t.Errorf("a folder with files became a store: %v", err)
	}
	if left, err := os.ReadDir(theirs); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	ours := filepath.Join(t.TempDir(), "new")
	for range 2 {
		if _, err := cas.OpenStore(ours); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPartialFileIsNoLink(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "bundle.tar")
	if err := os.WriteFile(victim, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path+cas.PartialSuffix); err != nil {
		t.Fatal(err)
	}
	if err := cas.WriteBytes(path, 0o644, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(victim); err != nil || string(got) != "precious" {
		t.Errorf("the victim holds %q, %v", got, err)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the file is %v, %v", info, err)
	}
}

func TestSweepTakesOnlyIngest(t *testing.T) {
	s := open(t)
	d, err := s.PutBytes(t.Context(), []byte("stays"))
	if err != nil {
		t.Fatal(err)
	}
	in, err := s.Ingest()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(); err != nil {
		t.Fatal(err)
	}
	assertNoIngest(t, s)
	if _, err := s.ReadAll(d, 10); err != nil {
		t.Error(err)
	}
}

func TestNoteThatRottedIsAbsent(t *testing.T) {
	s := open(t)
	d := cas.DigestOf([]byte("blob"))
	if _, ok, err := s.Note("sha512", d); ok || err != nil {
		t.Fatalf("a note nobody set: %v, %v", ok, err)
	}
	if err := s.SetNote("sha512", d, []byte("abc")); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := s.Note("sha512", d); !ok || err != nil || string(got) != "abc" {
		t.Fatalf("Note = %q, %v, %v", got, ok, err)
	}
	path := filepath.Join(s.Dir(), "notes", "sha512", d.Hex())
	if err := os.WriteFile(path, []byte(d.String()+"\nabd"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := s.Note("sha512", d); ok || err != nil {
		t.Errorf("a rotten note: %q, %v, %v", got, ok, err)
	}
}

func TestLazyStoreChecksAllTheSame(t *testing.T) {
	s := open(t).Lazy()
	d := cas.DigestOf([]byte("right"))
	var corrupt *cas.CorruptError
	if err := s.Put(t.Context(), strings.NewReader("wrong"), d, 5, "x"); !errors.As(err, &corrupt) {
		t.Errorf("other bytes: %v", err)
	}
	if err := s.Put(t.Context(), strings.NewReader("right"), d, 5, "x"); err != nil {
		t.Fatal(err)
	}
	if dropped, err := s.DropIfRotten(t.Context(), d); dropped || err != nil {
		t.Errorf("a sound blob: dropped %v, %v", dropped, err)
	}
	if err := os.Chmod(s.Path(d), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path(d), make([]byte, 5), 0o644); err != nil { // as after a power cut
		t.Fatal(err)
	}
	if dropped, err := s.DropIfRotten(t.Context(), d); !dropped || err != nil {
		t.Errorf("a torn blob: dropped %v, %v", dropped, err)
	}
	if ok, err := s.Has(d, 5); ok || err != nil {
		t.Errorf("it is still there: %v, %v", ok, err)
	}
	if got, err := s.PutBytes(t.Context(), []byte("right")); err != nil || got != d {
		t.Errorf("PutBytes: %v, %v", got, err)
	}
}

type recordingTap struct {
	bytes.Buffer
	finished []cas.Digest
}

func (r *recordingTap) Finish(d cas.Digest) error {
	r.finished = append(r.finished, d)
	return nil
}

func TestTapSeesTheBytesAndOnlyGoodBlobsFinish(t *testing.T) {
	tap := &recordingTap{}
	s := open(t).WithTap(func(size int64) cas.Tap {
		if size < 3 {
			return nil
		}
		return tap
	})
	d := cas.DigestOf([]byte("seen"))
	for _, content := range []string{"seem", "seen", "no"} {
		_ = s.Put(t.Context(), strings.NewReader(content), d, int64(len(content)), "x")
	}
	if got := tap.String(); got != "seemseen" || len(tap.finished) != 1 || tap.finished[0] != d {
		t.Errorf("the tap saw %q and finished %v", got, tap.finished)
	}
}

func TestWriteFileLeavesTheOldFileAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := cas.WriteBytes(path, 0o644, []byte("old")); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	err := cas.WriteFile(path, 0o644, func(w io.Writer) error {
		_, _ = w.Write([]byte("ne"))
		return full
	})
	if !errors.Is(err, full) {
		t.Errorf("WriteFile = %v, want its writer's error", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	if _, err := os.Stat(path + cas.PartialSuffix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary file is still there: %v", err)
	}
}

func assertNoIngest(t *testing.T, s *cas.Store) {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(s.Dir(), "ingest"))
	if err != nil || len(left) != 0 {
		t.Errorf("ingest holds %v, %v", left, err)
	}
}
