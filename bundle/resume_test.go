package bundle_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// longVolume is a volume with pieces of a blob of several chunks among small
// blobs, its content, and the digest of its bytes.
func longVolume(t *testing.T) (*bundle.VolumePlan, testkit.Memory, cas.Digest) {
	t.Helper()
	const size = 2*bundle.ChunkSize + 1000
	large := make([]byte, size)
	for i := 0; i+8 <= size; i += 8 {
		binary.LittleEndian.PutUint64(large[i:], uint64(i))
	}
	digest := cas.DigestOf(large)
	list, err := bundle.HashChunks(t.Context(), bytes.NewReader(large), digest, size)
	if err != nil {
		t.Fatal(err)
	}
	f := spreadBundle(t, 100, 5000)
	f.AddTree(t, bundle.Model, "large", []bundle.File{{Path: "weights.gguf", Size: size, Digest: digest}})
	f.AddChunks(digest, f.Content.Add(list), int64(len(list)))
	manifest, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	f.Content[digest] = large
	if err := f.Seal(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	only := []bundle.Piece{{Blob: digest, Offset: 512, Length: size - 512}}
	for _, b := range f.Manifest.Blobs {
		if b.Digest != digest {
			only = append(only, bundle.Piece{Blob: b.Digest, Length: b.Size})
		}
	}
	set, err := bundle.PlanSet(f.Head, bundle.SetOptions{Only: only})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := set.Volume(1)
	if err != nil {
		t.Fatal(err)
	}
	path, err := plan.WriteTo(t.Context(), t.TempDir(), f.Content, bundle.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return plan, f.Content, digestOfFile(t, path)
}

func digestOfFile(t *testing.T, path string) cas.Digest {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return cas.DigestOf(b)
}

// TestResumeAfterAKill takes what lies on the medium at many moments, as a kill
// would leave it, and goes on from there.
func TestResumeAfterAKill(t *testing.T) {
	plan, content, want := longVolume(t)
	dir := t.TempDir()
	path := filepath.Join(dir, plan.FileName())
	var left []string
	events := 0
	_, err := plan.WriteTo(t.Context(), dir, content, bundle.WriteOptions{NoReadback: true, JournalEvery: 1, Observe: func(int64) {
		if events++; events%24 == 1 {
			left = append(left, copyFolder(t, dir))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if digestOfFile(t, path) != want || len(left) < 5 {
		t.Fatalf("%d moments, or other bytes", len(left))
	}
	resumed := 0
	for i, dir := range left {
		begun := true
		_, err := plan.WriteTo(t.Context(), dir, content, bundle.WriteOptions{NoReadback: i%2 == 0, JournalEvery: 1, Observe: func(n int64) {
			if begun && n > 4096 {
				resumed++
			}
			begun = false
		}})
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 || digestOfFile(t, filepath.Join(dir, plan.FileName())) != want {
			t.Errorf("moment %d: %v, %v, or other bytes", i, entries, err)
		}
	}
	if resumed < len(left)/2 {
		t.Errorf("only %d of %d went on where they were", resumed, len(left))
	}
}

// copyFolder copies the files of a folder, each cut to what it has.
func copyFolder(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestJournalsThatLie: a journal that is damaged, about other bytes or about
// more than there is costs a fresh start and nothing else.
func TestJournalsThatLie(t *testing.T) {
	plan, content, want := longVolume(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	seen := int64(0)
	_, err := plan.WriteTo(ctx, dir, content, bundle.WriteOptions{JournalEvery: 1, Observe: func(n int64) {
		if seen += n; seen > 100<<20 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	name := plan.FileName() + ".journal"
	good, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(dir string) error{
		"not JSON":       func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600) },
		"another offset": rewrite(name, good, `"offset":`, `"offset":1`),
		"another entry":  rewrite(name, good, `"entry":`, `"entry":1`),
		"before":         rewrite(name, good, `"position":`, `"position":-1`),
		"no pieces":      rewrite(name, good, `"hash":"`, `"hash":"AA`),
		"a short file": func(dir string) error {
			return os.Truncate(filepath.Join(dir, plan.FileName()+cas.PartialSuffix), 4096)
		},
		"a link": func(dir string) error { return relink(filepath.Join(dir, name), "/dev/zero") },
		"a linked partial": func(dir string) error {
			return relink(filepath.Join(dir, plan.FileName()+cas.PartialSuffix), filepath.Join(dir, "precious"))
		},
		"wrong bytes": func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, plan.FileName()+cas.PartialSuffix), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("x"), 40<<20)
			return errors.Join(err, f.Close())
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := copyFolder(t, dir)
			precious := filepath.Join(dir, "precious")
			if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			path, err := plan.WriteTo(t.Context(), dir, content, bundle.WriteOptions{})
			if what == "wrong bytes" {
				if problem.CodeOf(err) != "medium/left-changed" {
					t.Errorf("got %v", err)
				}
				path, err = plan.WriteTo(t.Context(), dir, content, bundle.WriteOptions{}) // the second time from the beginning
			}
			if err != nil {
				t.Fatal(err)
			}
			if digestOfFile(t, path) != want {
				t.Error("other bytes")
			}
			if b, err := os.ReadFile(precious); err != nil || string(b) != "precious" {
				t.Errorf("a file beside it is %q now, %v", b, err)
			}
		})
	}
}

// TestResumeOfAnEditedPartial: what was written before an interruption is proven
// before anything is written behind it, or with the reading back, so that other
// bytes never become the volume; and nobody blames the medium for them.
func TestResumeOfAnEditedPartial(t *testing.T) {
	plan, content, want := longVolume(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	seen := int64(0)
	_, err := plan.WriteTo(ctx, dir, content, bundle.WriteOptions{JournalEvery: 1, Observe: func(n int64) {
		if seen += n; seen > 100<<20 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	partial := filepath.Join(dir, plan.FileName()+cas.PartialSuffix)
	whole, err := os.ReadFile(partial)
	if err != nil {
		t.Fatal(err)
	}
	blobs := bytes.Index(whole, []byte("blobs/sha256/"))
	for _, at := range []int{block, blobs + block, 64 << 20} {
		for _, noReadback := range []bool{true, false} {
			dir := copyFolder(t, dir)
			f, err := os.OpenFile(filepath.Join(dir, filepath.Base(partial)), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteAt([]byte{whole[at] ^ 1}, int64(at))
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			o := bundle.WriteOptions{JournalEvery: 1, NoReadback: noReadback}
			if _, err := plan.WriteTo(t.Context(), dir, content, o); problem.CodeOf(err) != "medium/left-changed" || !strings.Contains(err.Error(), "was begun by an export that was interrupted") {
				t.Errorf("byte %d edited, no reading back %v: %v", at, noReadback, err)
			}
			assertEmpty(t, dir)
			if !noReadback || at > block {
				continue
			}
			path, err := plan.WriteTo(t.Context(), dir, content, o)
			if err != nil || digestOfFile(t, path) != want {
				t.Errorf("again, from the beginning: %v, or other bytes", err)
			}
		}
	}
}

func rewrite(name string, good []byte, from, to string) func(string) error {
	return func(dir string) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(string(good), from, to, 1)), 0o600)
	}
}

func relink(path, target string) error {
	return errors.Join(os.Remove(path), os.Symlink(target, path))
}

// TestTwoWritersOfOneVolume: the second one is refused, and the first goes on.
func TestTwoWritersOfOneVolume(t *testing.T) {
	f := testkit.Forge(t, nil)
	plan, err := bundle.PlanComplete(f.Head)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	once := true
	_, err = plan.WriteTo(t.Context(), dir, f.Content, bundle.WriteOptions{Observe: func(int64) {
		if once {
			once = false
			if _, err := plan.WriteTo(t.Context(), dir, f.Content, bundle.WriteOptions{}); problem.CodeOf(err) != "medium/busy" {
				t.Errorf("the second writer: %v", err)
			}
		}
	}})
	if err != nil || once {
		t.Errorf("the first writer: %v", err)
	}
}

// TestRangesAreProven reads runs of a blob that has a chunk list, sound and not.
func TestRangesAreProven(t *testing.T) {
	plan, content, _ := longVolume(t)
	for d, b := range content {
		if len(b) < bundle.ChunkSize {
			continue
		}
		for _, at := range []int{0, 511, bundle.ChunkSize - 1, bundle.ChunkSize, 2*bundle.ChunkSize + 999} {
			b[at] ^= 1
			err := plan.Write(t.Context(), io.Discard, content, nil)
			var corrupt *cas.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Blob() != d || corrupt.Want == d {
				t.Errorf("with byte %d flipped: %v", at, err)
			}
			b[at] ^= 1
		}
		content[d] = b[:len(b)-1]
		if err := plan.Write(t.Context(), io.Discard, content, nil); problem.CodeOf(err) != "content/corrupt" {
			t.Errorf("one byte shorter: %v", err)
		}
	}
}
