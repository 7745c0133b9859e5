package bundle_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
)

// reshipped writes what is in a folder as another set.
func reshipped(t *testing.T, from, to string, limits []int64) {
	t.Helper()
	found, err := bundle.Find(from)
	if err != nil {
		t.Fatal(err)
	}
	sealed := found.Bundles[0]
	defer sealed.Close()
	set, content, err := sealed.Reship(limits)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= set.Count(); n++ {
		plan, err := set.Volume(n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := plan.WriteTo(t.Context(), to, content, bundle.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = b
	}
	return files
}

// TestSplitAndJoin: split, split otherwise and joined again, it is the same
// file, and each set on the way verifies.
func TestSplitAndJoin(t *testing.T) {
	f := spreadBundle(t, 0, 40_000, 2_000)
	whole, thirds, mixed, again := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	written(t, f, whole, bundle.SetOptions{})
	smallest := base(t, f)
	reshipped(t, whole, thirds, []int64{smallest + 10_000})
	reshipped(t, thirds, mixed, []int64{smallest + 512, smallest + 20_000})
	reshipped(t, mixed, again, nil)
	for _, dir := range []string{thirds, mixed} {
		if err := onlyBundle(t, f, dir).Check(t.Context(), nil); err != nil || len(filesOf(t, dir)) < 2 {
			t.Errorf("%d volumes: %v", len(filesOf(t, dir)), err)
		}
	}
	if diff := cmp.Diff(filesOf(t, whole), filesOf(t, again)); diff != "" {
		t.Error("split and joined again it is another file")
	}
	if !bytes.Equal(f.Volume, filesOf(t, again)["plant-7-000001.tar"]) {
		t.Error("it is not the volume that it was at first")
	}
	// A volume is missing.
	for name := range filesOf(t, thirds) {
		if err := os.Remove(filepath.Join(thirds, name)); err != nil {
			t.Fatal(err)
		}
		break
	}
	found, err := bundle.Find(thirds)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Bundles[0].Close()
	if _, _, err := found.Bundles[0].Reship(nil); codeOf(err) != "volume/not-complete" {
		t.Errorf("a set with a hole was joined: %v", err)
	}
}

// TestJoinFoldsSignaturesIn: what a second signer put beside the volumes stands
// in the joined one.
func TestJoinFoldsSignaturesIn(t *testing.T) {
	f := spreadBundle(t, 3000)
	late := f.Head.Signatures[0]
	f.Head.Signatures = nil
	dir, to := t.TempDir(), t.TempDir()
	written(t, f, dir, bundle.SetOptions{Limits: []int64{base(t, f) + 1024}})
	if err := os.WriteFile(filepath.Join(dir, "plant-7-000001."+late.Key+".sigstore.json"), late.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	reshipped(t, dir, to, nil)
	if !bytes.Equal(f.Volume, filesOf(t, to)["plant-7-000001.tar"]) {
		t.Error("with the signature folded in it is not the volume of that signer")
	}
}

func TestVolumeSizes(t *testing.T) {
	for text, want := range map[string][]int64{
		"4GiB-1": {4<<30 - 1}, "fat32": {4<<30 - 1}, "FAT32": {4<<30 - 1}, "700MB": {700e6}, "8589934592": {8 << 30}, "1 k": {1024},
		"4GiB,16GiB": {4 << 30, 16 << 30}, "cd, 1t-1MiB": {692 << 20, 1<<40 - 1<<20}, "dvd": {4_700_372_992 - 8<<20}, "1": {1},
	} {
		if got, err := bundle.ParseVolumeSizes(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ",", "-1", "1-1", "1-2", "x", "1.5GiB", "9999999999TiB", "+1", "1GiBB", "1,", "0", "0x10", "4GiB-x", "1e3", "٤"} {
		if got, err := bundle.ParseVolumeSizes(text); codeOf(err) != "volume/size-malformed" {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
