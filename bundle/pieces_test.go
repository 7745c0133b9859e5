package bundle_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// largestOf is the largest blob of a bundle.
func largestOf(f *testkit.Forged) bundle.Blob {
	return slices.MaxFunc(f.Manifest.Blobs, func(a, b bundle.Blob) int { return int(a.Size - b.Size) })
}

// forgePiece changes a byte of the last blob entry of a volume, and the sums so
// that they fit: what anybody can do who has a genuine volume.
func forgePiece(t *testing.T, path string) (genuine []byte) {
	t.Helper()
	genuine, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entries := entriesOf(t, genuine)
	last := len(entries) - 2
	if !strings.Contains(entries[last].name, ".s") {
		t.Fatalf("the last entry is %s, which is no piece", entries[last].name)
	}
	entries[last].data = bytes.Clone(entries[last].data)
	entries[last].data[1] ^= 1
	if err := os.WriteFile(path, assemble(entries), 0o600); err != nil {
		t.Fatal(err)
	}
	return genuine
}

// TestKeptIsNotHeld: a blob whose pieces have all come is lacking until it was
// proven, also when the proof was interrupted.
func TestKeptIsNotHeld(t *testing.T) {
	f := spreadBundle(t, 40_000)
	paths := written(t, f, t.TempDir(), bundle.SetOptions{Limits: []int64{base(t, f) + 15_000}})
	store := newStore(t)
	large := largestOf(f)
	a, err := store.Assemble(large.Digest, large.Size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.At(0).Write(f.Content[large.Digest]); err != nil {
		t.Fatal(err)
	}
	if err := a.Keep(cas.Span{Length: large.Size}); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil { // killed before Finish
		t.Fatal(err)
	}
	b := onlyBundle(t, f, paths...)
	lacks, err := b.StoreLacks(store)
	if err != nil || !slices.Contains(lacks, bundle.Piece{Blob: large.Digest, Length: large.Size}) {
		t.Errorf("what was not proven is held: lacks %v, %v", lacks, err)
	}
	// Any volume that has something to bring has it finished.
	if err := onlyBundle(t, f, paths[0]).CopyTo(t.Context(), store, bundle.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if there, err := store.Has(large.Digest, large.Size); err != nil || !there {
		t.Errorf("it was not finished: %v", err)
	}
}

// TestForgedPieces: what does not make the blob is forgotten, and the genuine
// volumes bring it.
func TestForgedPieces(t *testing.T) {
	f := spreadBundle(t, 40_000)
	paths := written(t, f, t.TempDir(), bundle.SetOptions{Limits: []int64{base(t, f) + 15_000}})
	genuine := forgePiece(t, paths[0])
	store := newStore(t)
	var err error
	for _, path := range paths {
		if err != nil {
			t.Fatalf("before the last volume: %v", err)
		}
		err = onlyBundle(t, f, path).CopyTo(t.Context(), store, bundle.CopyOptions{})
	}
	if problem.CodeOf(err) != "volume/pieces-wrong" {
		t.Fatalf("a forged piece: %v", err)
	}
	if err := os.WriteFile(paths[0], genuine, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if err := onlyBundle(t, f, path).CopyTo(t.Context(), store, bundle.CopyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if lacks, err := onlyBundle(t, f, paths[0]).StoreLacks(store); err != nil || len(lacks) > 0 {
		t.Errorf("with genuine volumes it lacks %v, %v", lacks, err)
	}
}

// TestForgedChunks: where the signed chunk list proves a piece, a forged one is
// found when it comes, and nothing of it is kept.
func TestForgedChunks(t *testing.T) {
	_, content, _ := longVolume(t)
	f := testkit.Forge(t, nil)
	var large cas.Digest
	for d, b := range content {
		if len(b) > bundle.ChunkSize {
			large = d
		}
	}
	list, err := bundle.HashChunks(t.Context(), bytes.NewReader(content[large]), large, int64(len(content[large])))
	if err != nil {
		t.Fatal(err)
	}
	f.Content[large] = content[large]
	f.AddTree(t, bundle.Model, "large", []bundle.File{{Path: "weights.gguf", Size: int64(len(content[large])), Digest: large}})
	f.AddChunks(large, f.Content.Add(list), int64(len(list)))
	manifest, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Seal(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	paths := written(t, f, t.TempDir(), bundle.SetOptions{Limits: []int64{100 << 20}})
	forgePiece(t, paths[0])
	store := newStore(t)
	err = onlyBundle(t, f, paths[0]).CopyTo(t.Context(), store, bundle.CopyOptions{})
	if problem.CodeOf(err) != "volume/damaged" {
		t.Errorf("a forged chunk: %v", err)
	}
	if gaps, err := store.Gaps(large, int64(len(content[large]))); err != nil || len(gaps) != 1 || gaps[0].Length != int64(len(content[large])) {
		t.Errorf("of the forged piece something was kept: lacks %v, %v", gaps, err)
	}
}

// TestSignaturesBesideThatAreNone: a false signature under the name of the
// genuine one's key does not displace it, whichever lies there first.
func TestSignaturesBesideThatAreNone(t *testing.T) {
	f := spreadBundle(t, 100)
	other := testkit.Forge(t, func(m *bundle.Manifest) { m.Note = "another" })
	good := f.Head.Signatures[0]
	// The same key and digest, and the signature of something else.
	false1 := bytes.Replace(good.Bytes, signatureValue(t, good.Bytes), signatureValue(t, other.Head.Signatures[0].Bytes), 1)
	f.Head.Signatures = nil
	dir := t.TempDir()
	written(t, f, dir, bundle.SetOptions{})
	for name, b := range map[string][]byte{"a": false1, "b": good.Bytes, "c": []byte("{}")} {
		if err := os.WriteFile(dir+"/plant-7-000001."+name+".sigstore.json", b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := onlyBundle(t, f, dir).Check(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// signatureValue is the base64 of the signature itself in a signature file.
func signatureValue(t *testing.T, file []byte) []byte {
	t.Helper()
	_, after, ok := bytes.Cut(file, []byte(`"signature":"`))
	value, _, ok2 := bytes.Cut(after, []byte(`"`))
	if !ok || !ok2 {
		t.Fatalf("%s has no signature", file)
	}
	return value
}

// TestRivals: volumes that claim one place and list other bytes are told apart
// from copies, without reading content.
func TestRivals(t *testing.T) {
	f := spreadBundle(t, 40_000)
	dir := t.TempDir()
	paths := written(t, f, dir, bundle.SetOptions{Limits: []int64{base(t, f) + 15_000}})
	for name, of := range map[string]string{"a-copy.tar": paths[0], "forged.tar": paths[0], "z-copy.tar": paths[1]} {
		b, err := os.ReadFile(of)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	forgePiece(t, filepath.Join(dir, "forged.tar"))
	found, err := bundle.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := [][][]string{{{filepath.Join(dir, "a-copy.tar"), paths[0]}, {filepath.Join(dir, "forged.tar")}}}
	if diff := cmp.Diff(want, found.Bundles[0].Rivals()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := found.Bundles[0].Close(); err != nil {
		t.Error(err)
	}
}
