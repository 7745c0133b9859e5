package bundle_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// spreadBundle is a bundle with blobs of many sizes, and the sizes of content
// that make cuts interesting.
func spreadBundle(t *testing.T, sizes ...int) *testkit.Forged {
	t.Helper()
	f := testkit.Forge(t, nil)
	random := rand.New(rand.NewPCG(1, 2))
	var files []bundle.File
	for i, size := range sizes {
		b := make([]byte, size)
		for j := range b {
			b[j] = byte(random.Uint32())
		}
		files = append(files, bundle.File{Path: fmt.Sprintf("part-%d", i), Size: int64(size), Digest: f.Content.Add(b)})
	}
	f.AddTree(t, bundle.Files, "spread", files)
	manifest, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Seal(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	return f
}

// written writes a set into a folder and gives the paths in order.
func written(t *testing.T, f *testkit.Forged, dir string, o bundle.SetOptions) []string {
	t.Helper()
	set, err := bundle.PlanSet(f.Head, o)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for n := 1; n <= set.Count(); n++ {
		plan, err := set.Volume(n)
		if err != nil {
			t.Fatal(err)
		}
		path, err := plan.WriteTo(t.Context(), dir, f.Content, bundle.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() != plan.Size() || len(o.Limits) > 0 && info.Size() > o.Limits[min(n, len(o.Limits))-1] {
			t.Errorf("volume %d of %d has %d bytes, planned %d, limits %v", n, set.Count(), info.Size(), plan.Size(), o.Limits)
		}
		paths = append(paths, path)
	}
	return paths
}

// onlyBundle finds the one bundle in paths and verifies it.
func onlyBundle(t *testing.T, f *testkit.Forged, paths ...string) *bundle.Bundle {
	t.Helper()
	found, err := bundle.Find(paths...)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Bundles) != 1 || len(found.Damaged) != 0 {
		t.Fatalf("found %d bundles and %v", len(found.Bundles), found.Damaged)
	}
	t.Cleanup(func() {
		if err := found.Bundles[0].Close(); err != nil {
			t.Error(err)
		}
	})
	b, err := found.Bundles[0].Verify(f.Trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// base is the smallest size of a volume of f that can hold anything.
func base(t *testing.T, f *testkit.Forged) int64 {
	t.Helper()
	_, err := bundle.PlanSet(f.Head, bundle.SetOptions{Limits: []int64{1}})
	if problem.CodeOf(err) != "volume/too-small" {
		t.Fatalf("a limit of one byte: %v", err)
	}
	return 512*int64(sort.Search(1<<20, func(blocks int) bool {
		_, err := bundle.PlanSet(f.Head, bundle.SetOptions{Limits: []int64{int64(blocks+1) * 512}})
		return err == nil
	})) + 512
}

func TestVolumesOfEverySize(t *testing.T) {
	f := spreadBundle(t, 0, 1, 511, 512, 513, 5000, 20_000, 70_000)
	smallest := base(t, f)
	for _, limits := range [][]int64{
		{smallest}, {smallest + 1}, {smallest + 511}, {smallest + 512}, {smallest + 5000}, {smallest + 70_000}, {1 << 20}, nil,
		{smallest + 3000, smallest, smallest + 9000}, {1 << 30, 1},
	} {
		dir := t.TempDir()
		paths := written(t, f, dir, bundle.SetOptions{Limits: limits})
		b := onlyBundle(t, f, dir)
		if lacks := b.Lacks(); len(lacks) != 0 {
			t.Errorf("limits %v: the whole set lacks %v", limits, lacks)
		}
		if err := b.Check(t.Context(), nil); err != nil {
			t.Errorf("limits %v: %v", limits, err)
		}
		if got := len(b.Volumes()); got != len(paths) {
			t.Errorf("limits %v: %d of %d volumes found", limits, got, len(paths))
		}
		for d, want := range f.Content {
			if _, ok := f.Manifest.Blob(d); !ok {
				continue
			}
			if got, err := b.ReadAll(d, 1<<20); err != nil || !bytes.Equal(got, want) {
				t.Errorf("limits %v: blob %s comes back as %d bytes, %v", limits, d, len(got), err)
			}
		}
	}
}

// TestVolumesInAnyOrder: each volume alone is checked and copied, in any order,
// and the last one makes the bundle whole.
func TestVolumesInAnyOrder(t *testing.T) {
	f := spreadBundle(t, 100, 40_000, 70_000, 0)
	dir := t.TempDir()
	paths := written(t, f, dir, bundle.SetOptions{Limits: []int64{base(t, f) + 10_000}})
	if len(paths) < 5 {
		t.Fatalf("only %d volumes", len(paths))
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 4 {
		random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		store, err := cas.OpenStore(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for i, path := range paths {
			b := onlyBundle(t, f, path)
			if err := b.Check(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			for range 2 { // a second time it is all there
				if err := b.CopyTo(t.Context(), store, bundle.CopyOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			lacks, err := b.StoreLacks(store)
			if err != nil || (len(lacks) == 0) != (i == len(paths)-1) {
				t.Fatalf("after %d of %d volumes the store lacks %v, %v", i+1, len(paths), lacks, err)
			}
			if got := len(b.Needed(lacks)); got != len(paths)-i-1 {
				t.Errorf("after %d of %d volumes %d are needed: %v", i+1, len(paths), got, b.Needed(lacks))
			}
		}
		for _, blob := range f.Manifest.Blobs {
			if got, err := store.ReadAll(blob.Digest, 1<<20); err != nil || !bytes.Equal(got, f.Content[blob.Digest]) {
				t.Errorf("blob %s in the store: %v", blob.Digest, err)
			}
		}
	}
}

// TestVolumesAreKnownByWhatTheyHold: names say nothing, other files are passed
// over, and volumes of other bundles stand apart.
func TestVolumesAreKnownByWhatTheyHold(t *testing.T) {
	f, other := spreadBundle(t, 30_000), spreadBundle(t, 5)
	dir := t.TempDir()
	paths := written(t, f, dir, bundle.SetOptions{Limits: []int64{base(t, f) + 10_000}})
	for i, path := range paths {
		if err := os.Rename(path, filepath.Join(dir, fmt.Sprintf("%d holiday.jpg", len(paths)-i))); err != nil {
			t.Fatal(err)
		}
	}
	written(t, f, dir, bundle.SetOptions{}) // the same bundle once more, in one volume
	for name, content := range map[string]string{
		"autorun.inf": "[autorun]", "packhof.json": "packhof.json", "empty": "", "x.sigstore.json": "{}", "y.sigstore.json": strings.Repeat("x", 1<<20),
		"cut.tar": "packhof.json\x00" + strings.Repeat("\x00", 600),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "zero.tar")); err != nil {
		t.Fatal(err)
	}
	otherPath := written(t, other, t.TempDir(), bundle.SetOptions{})[0]
	found, err := bundle.Find(dir, otherPath)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Bundles) != 2 || len(found.Damaged) != 1 || !strings.Contains(found.Damaged[0].Error(), "cut.tar") {
		t.Errorf("found %d bundles, damaged %v", len(found.Bundles), found.Damaged)
	}
	b, err := found.Bundles[0].Verify(f.Trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Volumes()) != len(paths)+1 || len(b.Lacks()) != 0 {
		t.Errorf("volumes %v, lacks %v", b.Volumes(), b.Lacks())
	}
	if err := b.Check(t.Context(), nil); err != nil {
		t.Error(err)
	}
	for _, s := range found.Bundles {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := found.Bundles[0].Join(found.Bundles[1]); problem.CodeOf(err) != "volume/foreign" {
		t.Errorf("volumes of two bundles were joined: %v", err)
	}
}

// TestLateSignatures: a second signer signs the manifest alone, and the file
// beside the volumes counts as if it stood in them.
func TestLateSignatures(t *testing.T) {
	f := spreadBundle(t, 30_000)
	late := f.Head.Signatures
	f.Head.Signatures = nil
	dir := t.TempDir()
	paths := written(t, f, dir, bundle.SetOptions{Limits: []int64{base(t, f) + 10_000}})
	for _, s := range append(late, bundle.Signature{Key: "0000000000000000", Bytes: []byte("{}")}) {
		if err := os.WriteFile(filepath.Join(dir, "plant-7-000001."+s.Key+".sigstore.json"), s.Bytes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, where := range []string{dir, paths[0]} {
		if err := onlyBundle(t, f, where).Check(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
}

// TestDamageInAVolumeIsPlaced flips bytes in every volume and asks where.
func TestDamageInAVolumeIsPlaced(t *testing.T) {
	f := spreadBundle(t, 40_000)
	dir := t.TempDir()
	paths := written(t, f, dir, bundle.SetOptions{Limits: []int64{base(t, f) + 10_000}})
	for _, path := range paths {
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.LastIndex(good, []byte("SHA256SUMS")) - 700 // in the last blob's data
		bad := bytes.Clone(good)
		bad[at] ^= 1
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, where := range []string{path, dir} {
			var damaged *bundle.DamagedError
			err := onlyBundle(t, f, where).Check(t.Context(), nil)
			if !errors.As(err, &damaged) || damaged.Volume != filepath.Base(path) || damaged.Offset > int64(at) || damaged.Want == "" {
				t.Errorf("%s: %v", where, err)
			}
			store, openErr := cas.OpenStore(t.TempDir())
			if openErr != nil {
				t.Fatal(openErr)
			}
			if err := onlyBundle(t, f, where).CopyTo(t.Context(), store, bundle.CopyOptions{}); !errors.As(err, &damaged) {
				t.Errorf("%s was copied: %v", where, err)
			}
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSetsOfSomeContent: a set may bring any part; two that bring the parts of
// one blob make it whole.
func TestSetsOfSomeContent(t *testing.T) {
	f := spreadBundle(t, 40_000, 2_000)
	large := slices.IndexFunc(f.Manifest.Blobs, func(b bundle.Blob) bool { return b.Size == 40_000 })
	d := f.Manifest.Blobs[large].Digest
	var rest []bundle.Piece
	for _, b := range f.Manifest.Blobs {
		if b.Digest != d && b.Role == bundle.RoleContent {
			rest = append(rest, bundle.Piece{Blob: b.Digest, Length: b.Size})
		}
	}
	dir := t.TempDir()
	first := written(t, f, dir, bundle.SetOptions{Only: append(rest, bundle.Piece{Blob: d, Length: 1024}, bundle.Piece{Blob: d, Offset: 512, Length: 1024})})
	b := onlyBundle(t, f, dir)
	want := []bundle.Piece{{Blob: d, Offset: 1536, Length: 40_000 - 1536}}
	if diff := cmp.Diff(want, b.Lacks()); diff != "" {
		t.Errorf("it lacks (-want +got):\n%s", diff)
	}
	if err := b.Check(t.Context(), nil); err != nil {
		t.Error(err)
	}
	second := written(t, f, dir, bundle.SetOptions{Only: b.Lacks()})
	if first[0] == second[0] || !strings.HasPrefix(filepath.Base(second[0]), "plant-7-000001.") {
		t.Errorf("two sets are called %v and %v", first, second)
	}
	b = onlyBundle(t, f, dir)
	if err := b.Check(t.Context(), nil); err != nil || len(b.Lacks()) != 0 {
		t.Errorf("both together: %v, lacks %v", err, b.Lacks())
	}
	if _, err := bundle.PlanSet(f.Head, bundle.SetOptions{Only: []bundle.Piece{{Blob: cas.DigestOf(nil), Length: 1}}}); problem.CodeOf(err) != "want/foreign" {
		t.Errorf("foreign content: %v", err)
	}
	for _, odd := range []bundle.Piece{{Blob: d, Offset: 100, Length: 512}, {Blob: d, Length: 100}, {Blob: d, Offset: 512}, {Blob: d, Offset: 1024, Length: 40_000 - 1025}} {
		_, err := bundle.PlanSet(f.Head, bundle.SetOptions{Only: []bundle.Piece{{Blob: d, Length: 1024}, odd}})
		if problem.CodeOf(err) != "want/odd-piece" || !strings.Contains(err.Error(), fmt.Sprintf("%s, %d bytes from byte %d on", d, odd.Length, odd.Offset)) {
			t.Errorf("%+v: %v", odd, err)
		}
	}
}
