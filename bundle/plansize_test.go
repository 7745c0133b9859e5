package bundle_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// TestSizesOfASet: what a set takes is known without writing it, to the byte,
// and four times as many volumes cost about four times as much to ask for.
func TestSizesOfASet(t *testing.T) {
	work := map[int]uint64{}
	for _, blobs := range []int{100, 400} {
		sizes := make([]int, blobs)
		for i := range sizes {
			sizes[i] = 8 << 10
		}
		f := spreadBundle(t, sizes...)
		one, err := bundle.PlanComplete(f.Head)
		if err != nil {
			t.Fatal(err)
		}
		// About what every volume begins with: its plan is longer with the numbers of many volumes.
		limit := one.Size() - int64(blobs-1)*(8<<10+512+144)
		set, err := bundle.PlanSet(f.Head, bundle.SetOptions{Limits: []int64{limit}})
		for ; problem.CodeOf(err) == "volume/too-small"; limit += 1 << 10 {
			set, err = bundle.PlanSet(f.Head, bundle.SetOptions{Limits: []int64{limit}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if set.Count() < blobs/2 {
			t.Fatalf("%d volumes of %d blobs", set.Count(), blobs)
		}
		dir := t.TempDir()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := set.CheckRoom(dir, nil); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		work[blobs] = after.TotalAlloc - before.TotalAlloc

		last := set.Count()
		plan, err := set.Volume(last)
		if err != nil {
			t.Fatal(err)
		}
		path, err := plan.WriteTo(t.Context(), dir, f.Content, bundle.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Size() != set.VolumeSize(last) || path != filepath.Join(dir, filepath.Base(set.Paths(dir)[last-1])) {
			t.Errorf("%s has %d bytes, planned %d; %v", path, info.Size(), set.VolumeSize(last), err)
		}
	}
	if most := 8 * work[100]; work[400] > most {
		t.Errorf("100 volumes allocate %d bytes, 400 volumes %d; at most %d are allowed", work[100], work[400], most)
	}
}
