package bundle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/packhof/packhof/bundle"
)

// heapOf is how many bytes Find keeps of what lies in a folder.
func heapOf(t *testing.T, dir string) (kept int64, volumes int) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // the first one leaves what has finalizers
	runtime.ReadMemStats(&before)
	found, err := bundle.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	volumes = len(found.Bundles[0].Paths())
	if err := found.Bundles[0].Close(); err != nil {
		t.Error(err)
	}
	return int64(after.HeapAlloc) - int64(before.HeapAlloc), volumes
}

// TestManyNamesOfOneVolume: a volume under hundreds of names is one, and
// hundreds of copies of one keep what they say alike once.
func TestManyNamesOfOneVolume(t *testing.T) {
	sizes := make([]int, 200)
	for i := range sizes {
		sizes[i] = 100 + i
	}
	f := spreadBundle(t, sizes...)
	for name, put := range map[string]func(from, to string) error{
		"links": os.Link,
		"copies": func(from, to string) error {
			b, err := os.ReadFile(from)
			if err != nil {
				return err
			}
			return os.WriteFile(to, b, 0o600)
		},
	} {
		dir := t.TempDir()
		path := written(t, f, dir, bundle.SetOptions{})[0]
		one, _ := heapOf(t, dir)
		const more = 60
		for i := range more {
			if err := put(path, filepath.Join(dir, fmt.Sprintf("%04d.tar", i))); err != nil {
				t.Fatal(err)
			}
		}
		kept, volumes := heapOf(t, dir)
		if want := map[string]int{"links": 1, "copies": 1 + more}[name]; volumes != want {
			t.Errorf("%s: %d volumes, want %d", name, volumes, want)
		}
		if most := max(one, 0) + 768<<10; kept > most { // with all of each it would be some MiB
			t.Errorf("%s: %d bytes are kept, of one volume %d; at most %d are allowed", name, kept, one, most)
		}
		if b := onlyBundle(t, f, dir); b.Check(t.Context(), nil) != nil || len(b.Lacks()) != 0 {
			t.Errorf("%s: not whole", name)
		}
	}
}

// TestSignaturesBesideASecondName count, although the volume was met already.
func TestSignaturesBesideASecondName(t *testing.T) {
	f := spreadBundle(t, 1000)
	late := f.Head.Signatures[0]
	f.Head.Signatures = nil
	path := written(t, f, t.TempDir(), bundle.SetOptions{})[0]
	dir := t.TempDir()
	other := filepath.Join(dir, "other.tar")
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other."+late.Key+".sigstore.json"), late.Bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	if b := onlyBundle(t, f, path, other); len(b.Volumes()) != 1 {
		t.Errorf("%d volumes", len(b.Volumes()))
	}
}
