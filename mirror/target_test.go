package mirror_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/testkit"
)

// volumesOf are the files in dir, by name.
func volumesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.tar"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = b
	}
	return files
}

// TestVolumesOfAnotherSetStay: volumes have the same names whatever their size,
// and those of one set are of no use among those of another.
func TestVolumesOfAnotherSetStay(t *testing.T) {
	y := newYard(t)
	y.shelf.trees["a"]["data/large.bin"] = testkit.Bytes("large", 200_000)
	l := y.plan(t)
	dir := t.TempDir()
	with := func(volumes []int, size int64) error {
		e := y.exporter(t)
		e.VolumeSizes, e.Volumes = []int64{size}, volumes
		_, err := e.Export(t.Context(), l, dir)
		return err
	}
	if err := with(nil, 90_000); err != nil {
		t.Fatal(err)
	}
	before := volumesOf(t, dir)
	if len(before) < 3 {
		t.Fatalf("only %d volumes", len(before))
	}
	wantCode(t, "all of another set", with(nil, 120_000), "medium/taken")
	wantCode(t, "one of another set", with([]int{2}, 120_000), "medium/taken")
	wantCode(t, "one that the set has not", with([]int{40}, 120_000), "volume/no-such")
	if diff := cmp.Diff(before, volumesOf(t, dir), cmp.Comparer(bytes.Equal)); diff != "" {
		t.Errorf("volumes were replaced (-before +after):\n%s", diff)
	}
	e := y.exporter(t)
	e.VolumeSizes = []int64{120_000}
	_, err := e.DryRun(t.Context(), l, dir)
	wantCode(t, "a dry run of another set", err, "medium/taken")

	// What was refused is not what a lost volume is written again by.
	lost := filepath.Join(dir, "plant-7-000001.v0002.tar")
	remove(t, lost)
	if err := with([]int{2}, 90_000); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, volumesOf(t, dir), cmp.Comparer(bytes.Equal)); diff != "" {
		t.Errorf("the lost volume came out otherwise (-before +after):\n%s", diff)
	}
}

// TestDryRunKnowsSealedVolumes: what a dry run says of a sealed serial is what
// the export then writes, to the byte.
func TestDryRunKnowsSealedVolumes(t *testing.T) {
	y := newYard(t)
	y.shelf.trees["a"]["data/large.bin"] = testkit.Bytes("large", 200_000)
	l := y.plan(t)
	e := y.exporter(t)
	e.VolumeSizes = []int64{90_000}
	dir := t.TempDir()
	d, err := e.DryRun(t.Context(), l, dir)
	if err != nil || d.Sealed || len(d.Volumes) != 0 || !d.Complete || len(d.Sizes) != 1 {
		t.Errorf("before: %+v, %v", d, err)
	}
	if _, err := e.Export(t.Context(), l, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for name, numbers := range map[string][]int{"all": nil, "one": {2}} {
		e := y.exporter(t)
		e.VolumeSizes, e.Volumes = []int64{90_000}, numbers
		dir := t.TempDir()
		d, err := e.DryRun(t.Context(), l, dir)
		if err != nil {
			t.Fatal(err)
		}
		if files := volumesOf(t, dir); len(files) > 0 {
			t.Errorf("%s: a dry run wrote %d volumes", name, len(files))
		}
		s, err := e.Export(t.Context(), l, dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.Volumes, d.Volumes); diff != "" || d.Bytes != s.Bytes || d.Path != s.Path || !d.Sealed {
			t.Errorf("%s: %+v (-written +foreseen):\n%s", name, d, diff)
		}
	}
}
