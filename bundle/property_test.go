package bundle_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// drawManifest puts random artifacts, with random content that they share
// here and there, into the manifest of f.
func drawManifest(t *rapid.T, f *testkit.Forged) {
	m := f.Manifest
	m.Artifacts, m.Blobs, m.Totals = nil, nil, bundle.Totals{}
	m.Note = rapid.StringN(0, 50, 200).Draw(t, "note")
	m.Previous = nil
	if m.Serial = rapid.Int64Range(1, 1<<31).Draw(t, "serial"); m.Serial > 1 {
		previous := cas.DigestOf([]byte("previous"))
		m.Previous = &previous
	}
	blobs := map[cas.Digest]bundle.Blob{}
	add := func(b []byte, role bundle.Role) int64 {
		d := f.Content.Add(b)
		if blobs[d].Role != bundle.RoleMetadata {
			blobs[d] = bundle.Blob{Digest: d, Size: int64(len(b)), Role: role}
		}
		return int64(len(b))
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "artifacts") {
		kind := rapid.SampledFrom([]bundle.Kind{bundle.Files, bundle.Model, bundle.Dataset}).Draw(t, "kind")
		m.Artifacts = append(m.Artifacts, drawTree(t, kind, fmt.Sprintf("tree %d", i), add))
	}
	for _, b := range blobs {
		m.Blobs = append(m.Blobs, b)
		m.Totals.Files++
		m.Totals.Bytes += b.Size
	}
	slices.SortFunc(m.Blobs, func(a, b bundle.Blob) int { return a.Digest.Compare(b.Digest) })
}

func drawTree(t *rapid.T, kind bundle.Kind, name string, add func([]byte, bundle.Role) int64) bundle.Artifact {
	var files []bundle.File
	own := map[cas.Digest]int64{}
	for i := range rapid.IntRange(1, 6).Draw(t, "files") {
		// Few seeds and sizes, so that content comes up twice; sizes around blocks.
		b := testkit.Bytes(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "seed"), rapid.SampledFrom([]int{0, 1, 511, 512, 513, 3000}).Draw(t, "size"))
		d := cas.DigestOf(b)
		own[d] = add(b, bundle.RoleContent)
		files = append(files, bundle.File{Path: fmt.Sprintf("dir/%d.bin", i), Size: int64(len(b)), Digest: d})
	}
	tree, err := bundle.BuildTree(kind, name, "1", files)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range tree.Documents {
		own[cas.DigestOf(document)] = add(document, bundle.RoleMetadata)
	}
	artifact := bundle.Artifact{
		Kind: kind, Name: name, Version: "1", Root: tree.Root, Referrers: []bundle.Referrer{},
		Origin: bundle.Origin{From: name, At: bundle.At(testkit.Noon()), Transport: bundle.TransportLocal, Verified: bundle.VerifiedLock},
		SBOM:   []bundle.SBOM{{Subject: tree.Root.Digest, Status: bundle.SBOMAbsent, Reason: "drawn"}},
	}
	for _, size := range own {
		artifact.Size += size
	}
	return artifact
}

// TestPropertyWriterAndReader: whatever is sealed is written with the planned
// size, read back as it was, and written from there as the same bytes.
func TestPropertyWriterAndReader(t *testing.T) {
	f := testkit.Forge(t, nil)
	rapid.Check(t, func(r *rapid.T) {
		drawManifest(r, f)
		manifest, err := bundle.EncodeManifest(f.Manifest)
		if err != nil {
			r.Fatal(err)
		}
		if err := f.Seal(t.Context(), manifest); err != nil {
			r.Fatal(err)
		}
		sealed, err := bundle.Open(bytes.NewReader(f.Volume), int64(len(f.Volume)), "x.tar")
		if err != nil {
			r.Fatal(err)
		}
		b, err := sealed.Verify(f.Trust, testkit.Noon())
		if err != nil {
			r.Fatal(err)
		}
		if err := b.Check(t.Context(), nil); err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(f.Manifest, b.Manifest()); diff != "" {
			r.Fatalf("the manifest changed on its way (-sealed +read):\n%s", diff)
		}
		plan, err := bundle.PlanComplete(sealed.Head())
		if err != nil || plan.Size() != int64(len(f.Volume)) {
			r.Fatalf("planned %d bytes, wrote %d, %v", plan.Size(), len(f.Volume), err)
		}
		var again bytes.Buffer
		if err := plan.Write(t.Context(), &again, arrived{b}, nil); err != nil || !bytes.Equal(again.Bytes(), f.Volume) {
			r.Fatalf("written again from what was read it differs: %v", err)
		}
		listed := 0
		for archive := tar.NewReader(bytes.NewReader(f.Volume)); ; listed++ {
			if _, err := archive.Next(); err == io.EOF {
				break
			} else if err != nil {
				r.Fatal(err)
			}
		}
		if want := len(f.Manifest.Blobs) + entriesBesidesBlobs; listed != want {
			r.Fatalf("others list %d entries, want %d", listed, want)
		}
	})
}

// entriesBesidesBlobs: manifest, root, revocations, signature, volume.json,
// oci-layout, index.json, SHA256SUMS.
const entriesBesidesBlobs = 8

// arrived is the content of a bundle that was read.
type arrived struct{ b *bundle.Bundle }

func (c arrived) Has(d cas.Digest) (bool, error) { _, ok := c.b.Manifest().Blob(d); return ok, nil }

func (c arrived) Open(d cas.Digest) (io.ReadCloser, error) {
	blob, _ := c.b.Manifest().Blob(d)
	data, err := c.b.ReadAll(d, blob.Size)
	return io.NopCloser(bytes.NewReader(data)), err
}

// sparse is a file in memory that keeps no zeros.
type sparse struct {
	size   int64
	pieces []sparsePiece
}

type sparsePiece struct {
	at   int64
	data []byte
}

func (s *sparse) Write(p []byte) (int, error) {
	if len(bytes.Trim(p, "\x00")) > 0 {
		s.pieces = append(s.pieces, sparsePiece{s.size, bytes.Clone(p)})
	}
	s.size += int64(len(p))
	return len(p), nil
}

func (s *sparse) ReadAt(p []byte, at int64) (int, error) {
	n := int(max(0, min(int64(len(p)), s.size-at)))
	clear(p[:n])
	for _, piece := range s.pieces {
		if offset := piece.at - at; offset < int64(n) && offset+int64(len(piece.data)) > 0 {
			copy(p[max(0, offset):n], piece.data[max(0, -offset):])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// TestMemoryDoesNotGrowWithContent writes and checks a bundle of a quarter of
// a GiB with a few MiB of memory.
func TestMemoryDoesNotGrowWithContent(t *testing.T) {
	const size = 256 << 20
	f, plan, digest := plannedZeros(t, size)
	runtime.GC() // what other tests left
	var peak, events uint64
	observe := func(int64) {
		if events++; events%16 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}
	file := &sparse{}
	if err := plan.Write(t.Context(), file, both{f.Content, zeros{digest: size}}, observe); err != nil {
		t.Fatal(err)
	}
	sealed, err := bundle.Open(file, file.size, "x.tar")
	if err != nil {
		t.Fatal(err)
	}
	b, err := sealed.Verify(f.Trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context(), observe); err != nil {
		t.Fatal(err)
	}
	if peak == 0 || peak > 64<<20 {
		t.Errorf("writing and checking %d bytes took %d bytes of memory", size, peak)
	}
}

// TestT08ManyEqualNames: the names are made before any signature is checked,
// so that nobody may be able to make that slow.
func TestT08ManyEqualNames(t *testing.T) {
	const count = 50_000
	m := &bundle.Manifest{Artifacts: make([]bundle.Artifact, count)}
	for i := range m.Artifacts {
		m.Artifacts[i] = bundle.Artifact{Name: "a" + string(rune(0x4e00+i%20000)), Version: fmt.Sprint(i / 20000)}
	}
	seen := map[string]bool{}
	for _, name := range bundle.RefNames(m) {
		seen[name] = true
	}
	if len(seen) != count {
		t.Errorf("%d names for %d artifacts", len(seen), count)
	}
}

func TestDiff(t *testing.T) {
	artifact := func(name, version, content string) bundle.Artifact {
		return bundle.Artifact{Kind: bundle.Image, Name: name, Version: version, Root: bundle.Descriptor{Digest: cas.DigestOf([]byte(content))}, Size: int64(len(content))}
	}
	manifest := func(artifacts ...bundle.Artifact) *bundle.Manifest { return &bundle.Manifest{Artifacts: artifacts} }
	for name, c := range map[string]struct {
		older, newer *bundle.Manifest
		want         []string
	}{
		"nothing":            {manifest(), manifest(), nil},
		"added":              {manifest(), manifest(artifact("a", "1", "x")), []string{"added a  1"}},
		"removed":            {manifest(artifact("a", "1", "x")), manifest(), []string{"removed a 1 "}},
		"unchanged":          {manifest(artifact("a", "1", "x")), manifest(artifact("a", "1", "x")), []string{"unchanged a 1 1"}},
		"same name, rebuilt": {manifest(artifact("a", "1", "x")), manifest(artifact("a", "1", "y")), []string{"updated a 1 1"}},
		"new version":        {manifest(artifact("a", "1", "x")), manifest(artifact("a", "2", "y")), []string{"updated a 1 2"}},
		"renamed version":    {manifest(artifact("a", "1", "x")), manifest(artifact("a", "2", "x")), []string{"updated a 1 2"}},
		"second version":     {manifest(artifact("a", "1", "x")), manifest(artifact("a", "2", "y"), artifact("a", "1", "x")), []string{"unchanged a 1 1", "added a  2"}},
		"window of versions": {
			manifest(artifact("a", "1", "x"), artifact("a", "2", "y")), manifest(artifact("a", "2", "y"), artifact("a", "3", "z")),
			[]string{"updated a 1 3", "unchanged a 2 2"},
		},
		"other kind": {
			manifest(artifact("a", "1", "x")), manifest(bundle.Artifact{Kind: bundle.Chart, Name: "a", Version: "1"}),
			[]string{"added a  1", "removed a 1 "},
		},
	} {
		var got []string
		for _, change := range bundle.Diff(c.older, c.newer) {
			got = append(got, fmt.Sprintf("%s %s %s %s", change.What, change.Name, change.OldVersion, change.NewVersion))
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNewBytes(t *testing.T) {
	older, newer := &bundle.Manifest{}, &bundle.Manifest{}
	testkit.AddBlob(older, []byte("kept"), bundle.RoleContent)
	testkit.AddBlob(older, []byte("gone"), bundle.RoleContent)
	testkit.AddBlob(newer, []byte("kept"), bundle.RoleContent)
	testkit.AddBlob(newer, []byte("new one"), bundle.RoleContent)
	for _, c := range []struct {
		older, newer *bundle.Manifest
		want         int64
	}{{older, newer, 7}, {newer, older, 4}, {older, older, 0}, {&bundle.Manifest{}, newer, 11}} {
		if got := bundle.NewBytes(c.older, c.newer); got != c.want {
			t.Errorf("got %d, want %d", got, c.want)
		}
	}
}

func TestStoreContentAndMissing(t *testing.T) {
	f := testkit.Forge(t, nil)
	store, err := cas.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	content := bundle.StoreContent(store)
	for n := len(f.Manifest.Blobs); ; n-- {
		if got, err := bundle.Missing(f.Head.Manifest, content); err != nil || got != n {
			t.Fatalf("%d blobs missing, want %d, %v", got, n, err)
		}
		if n == 0 {
			break
		}
		if _, err := store.PutBytes(t.Context(), f.Content[f.Manifest.Blobs[n-1].Digest]); err != nil {
			t.Fatal(err)
		}
	}
	if err := verified(t, f, content).Check(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if _, err := bundle.Missing([]byte("{}"), content); problem.CodeOf(err) == "" {
		t.Errorf("what is missing of no manifest: %v", err)
	}
}

func TestOpenFile(t *testing.T) {
	f := testkit.Forge(t, nil)
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		dir:                                  "volume/not-a-file",
		write("text", []byte("hello")):       "volume/not-a-bundle",
		write("empty", nil):                  "volume/not-a-bundle",
		write("other.tar", assemble(nil)):    "volume/not-a-bundle",
		write("half", f.Volume[:8*block]):    "volume/damaged",
		write("head", f.Volume[:2*block+10]): "volume/not-a-bundle",
	} {
		sealed, err := bundle.OpenFile(path)
		if problem.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", filepath.Base(path), err, want)
		}
		if sealed != nil {
			if err := sealed.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := bundle.OpenFile(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
	cut, err := bundle.OpenFile(write("cut.tar", f.Volume[:len(f.Volume)-block]))
	if cut == nil || problem.CodeOf(err) != "volume/damaged" {
		t.Fatalf("a cut volume: %v, %v", cut, err)
	}
	claims, err := cut.Claims()
	if err != nil || claims.Digest != f.Head.Digest() || len(claims.Artifacts) != 1 || len(claims.SignedBy) != 1 || cut.Name() != "cut.tar" {
		t.Errorf("what a cut volume claims: %+v, %v", claims, err)
	}
	if err := cut.Close(); err != nil {
		t.Error(err)
	}
}

// TestReadBackFindsWhatTheMediumLost changes the medium while it is written.
func TestReadBackFindsWhatTheMediumLost(t *testing.T) {
	f := testkit.Forge(t, nil)
	plan, err := bundle.PlanComplete(f.Head)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	spoilt := false
	_, err = plan.WriteTo(t.Context(), dir, f.Content, bundle.WriteOptions{Observe: func(int64) {
		if spoilt {
			return
		}
		spoilt = true
		medium, err := os.OpenFile(filepath.Join(dir, plan.FileName()+cas.PartialSuffix), os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer medium.Close()
		if _, err := medium.WriteAt([]byte{0}, block); err != nil {
			t.Error(err)
		}
	}})
	if problem.CodeOf(err) != "medium/readback" {
		t.Errorf("got %v", err)
	}
	assertEmpty(t, dir)
	if _, err := plan.WriteTo(t.Context(), filepath.Join(dir, "none"), f.Content, bundle.WriteOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
