package bundle

import (
	"bytes"
	"encoding/json/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// FuzzJournal: a journal lies on a medium that anybody may have written to.
// Whatever it says, writing goes on at a place that the plan has, within what is
// there, or begins anew.
func FuzzJournal(f *testing.F) {
	large, small := cas.DigestOf([]byte("large")), cas.DigestOf([]byte("small"))
	list := cas.DigestOf([]byte("list"))
	plan := &VolumePlan{
		manifest: &Manifest{Channel: "plant-7", Epoch: 1, Serial: 1},
		info:     &VolumeInfo{Number: 1, Count: 1},
		head:     []headEntry{{nameManifest, []byte("{}")}},
		blobs: []plannedEntry{
			{Segment{Blob: small, Length: 700, Entry: entryName(small)}, Blob{Digest: small, Size: 700}},
			{Segment{Blob: large, Length: 2 * ChunkSize, Entry: pieceName(large, 0)}, Blob{Digest: large, Size: 3 * ChunkSize, Chunks: &list}},
		},
	}
	plan.size = lengthOf([]expected{{nameManifest, 2}}, plan.blobs)
	saved, err := savedHash(nil)
	if err != nil {
		f.Fatal(err)
	}
	state, err := saveHash(saved)
	if err != nil {
		f.Fatal(err)
	}
	start := entrySpan(2) + entrySpan(700)
	for _, m := range []mark{{}, {Position: start, Entry: 1}, {Position: start + blockSize + ChunkSize, Entry: 1, Offset: ChunkSize, Hash: state}} {
		b, err := json.Marshal(journal{Volume: plan.identity(), Mark: m})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, plan.size)
	}
	f.Add([]byte(`{"volume":"`+plan.identity().String()+`","mark":{"position":9223372036854775807,"entry":2,"offset":9223372036854775807}}`), int64(1)<<62)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		u := unfinished{path: filepath.Join(dir, "x.tar")}
		if err := os.WriteFile(u.journal(), b, 0o600); err != nil {
			t.Fatal(err)
		}
		m := u.remembered(plan, size)
		if m.Position < 0 || m.Position > plan.size || m.Position > max(size, 0) || m.Entry < 0 || m.Entry > len(plan.blobs) || m.Offset < 0 || m.Offset > 0 && m.Offset >= plan.blobs[m.Entry].Length {
			t.Errorf("with %d bytes there it goes on at %+v", size, m)
		}
	})
}

// FuzzSums: SHA256SUMS is read in the one form that the writer has.
func FuzzSums(f *testing.F) {
	d := cas.DigestOf([]byte("x"))
	entries := []entry{{name: nameManifest}, {name: entryName(d)}}
	good := sumLine(d, nameManifest) + sumLine(d, entryName(d))
	for _, s := range []string{good, good + "x", good[:len(good)-1], strings.ToUpper(good), strings.Replace(good, "  ", " *", 1), ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sums, damaged := sumsOf(b, entries)
		if damaged != nil {
			if damaged.Offset < 0 || damaged.Offset > int64(len(b)) || damaged.Want == "" || damaged.Got == "" {
				t.Errorf("%q: %+v", b, damaged)
			}
			return
		}
		if again := sumLine(sums[0], entries[0].name) + sumLine(sums[1], entries[1].name); !bytes.Equal([]byte(again), b) {
			t.Errorf("%q was read as %q", b, again)
		}
	})
}

// FuzzVolumeSizes: what people type after --volume-size.
func FuzzVolumeSizes(f *testing.F) {
	for _, s := range []string{"4GiB-1", "fat32,dvd", "700MB", "1", "9223372036854775807TiB", "1-2", "-1", " 5 k , bd", ",", "1e9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sizes, err := ParseVolumeSizes(s)
		if err != nil {
			if problem.CodeOf(err) != "volume/size-malformed" {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		for _, n := range sizes {
			if n < 1 {
				t.Errorf("%q gives %d", s, sizes)
			}
		}
	})
}
