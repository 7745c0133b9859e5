package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
)

// work is what was done about a folder, counted and not timed.
type work struct {
	name    string
	allocs  uint64 // pieces of memory that were asked for
	calls   uint64 // reads and writes of the system
	peak    uint64 // bytes of the heap
	blobs   int
	written int64 // bytes of packs and their indices
}

// per is so much a file.
func (w work) per(files int) (allocs, calls, written float64) {
	n := float64(files)
	return float64(w.allocs) / n, float64(w.calls) / n, float64(w.written) / n
}

// counted counts the work of a step.
func counted(t *testing.T, name string, step func()) work {
	t.Helper()
	var before, after runtime.MemStats
	w := work{name: name}
	calls := systemCalls(t)
	runtime.ReadMemStats(&before)
	w.peak = testkit.PeakHeap(step)
	runtime.ReadMemStats(&after)
	w.allocs, w.calls = after.Mallocs-before.Mallocs, systemCalls(t)-calls
	return w
}

// systemCalls is how often this process has read and written so far; 0 on a
// system that does not say, for no process comes here without having read.
func systemCalls(t *testing.T) (calls uint64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var n uint64
		if _, err := fmt.Sscanf(line, "syscr: %d", &n); err == nil {
			calls += n
		}
		if _, err := fmt.Sscanf(line, "syscw: %d", &n); err == nil {
			calls += n
		}
	}
	return calls
}

// packing pins a folder of so many small files, packs it, and lists the packs.
func packing(t *testing.T, n int) []work {
	t.Helper()
	base := t.TempDir()
	for i := range n {
		dir := filepath.Join(base, "d", fmt.Sprintf("part-%03d", i/1000))
		if i%1000 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.txt", i)), fmt.Appendf(nil, "line %06d\n", i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, store := newSource(t, base, nil), newStore(t)
	var p mirror.Pinned
	pin := counted(t, "pin", func() {
		var err error
		if p, err = resolve(t, s, store, request("d")); err != nil {
			t.Fatal(err)
		}
	})
	pack := counted(t, "pack", func() {
		if err := s.Fetch(t.Context(), p, store); err != nil {
			t.Fatal(err)
		}
	})
	list := counted(t, "list", func() {
		tree, err := bundle.ListTree(p.Root, documents(store))
		if err != nil || len(tree.Files) != n {
			t.Fatalf("%d files, %v", len(tree.Files), err)
		}
	})
	pack.blobs, pack.written = stored(t, store)
	return []work{pin, pack, list}
}

// stored is how many blobs a store has, and how many bytes.
func stored(t *testing.T, store *cas.Store) (blobs int, size int64) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(store.Dir(), "blobs", "sha256"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return len(entries), size
}

// TestCostOfAFileStaysFlat packs one folder, and one of five times the files:
// what a file costs is the same, and what is held of it is a line of a list.
func TestCostOfAFileStaysFlat(t *testing.T) {
	few, many := 10_000, 50_000
	if raced || testing.Short() {
		few, many = 2_000, 10_000
	}
	small, large := packing(t, few), packing(t, many)
	for i, a := range small {
		b := large[i]
		allocs, calls, written := a.per(few)
		moreAllocs, moreCalls, moreWritten := b.per(many)
		t.Logf("%s: %.1f and %.1f allocations, %.2f and %.2f calls, %.0f and %.0f bytes a file; %d and %d KiB of heap", a.name, allocs, moreAllocs, calls, moreCalls, written, moreWritten, a.peak>>10, b.peak>>10)
		if moreAllocs > allocs*1.05 || moreWritten > written*1.01 {
			t.Errorf("%s: a file of %d costs more than one of %d", a.name, many, few)
		}
		t.Run(a.name+" calls", func(t *testing.T) {
			if systemCalls(t) == 0 {
				t.Skip("/proc/self/io does not count the calls of this process")
			}
			if moreCalls > calls*1.05+0.01 {
				t.Errorf("a file of %d costs more calls than one of %d", many, few)
			}
			if moreCalls > 2.2 { // one that reads it, and one that finds its end
				t.Errorf("%.2f calls a file", moreCalls)
			}
		})
		// The rest is what the collector has not given back yet.
		if grown := int64(b.peak) - int64(a.peak) - 16<<20; grown > 1000*int64(many-few) {
			t.Errorf("%s: %d bytes of heap for each file more", a.name, grown/int64(many-few))
		}
	}
	if blobs := large[1].blobs; blobs > 2*(many/8192+2) {
		t.Errorf("%d files became %d blobs", many, blobs)
	}
}
