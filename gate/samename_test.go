package gate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

// TestTheSameUnderAName loads serial 1, then serial 3 without its artifact, then
// the missing serial 2 with it: nothing changes under the name, the review says
// so before and after, and the name is as old as it was.
func TestTheSameUnderAName(t *testing.T) {
	l := newLab(t)
	first := l.forge(nil)
	l.trust(first)
	second := l.next(first, 2)
	head := second.Head
	before := head.Digest()
	third := testkit.Forge(t, func(m *bundle.Manifest) {
		m.Audience, m.Serial, m.Previous = []string{l.id}, 3, &before
	})
	third.Manifest.Artifacts, third.Manifest.Blobs, third.Manifest.Totals = nil, nil, bundle.Totals{}
	third.AddTree(t, bundle.Files, "other", []bundle.File{{Path: "README.md", Size: 50, Digest: third.Content.Add(testkit.Bytes("other", 50))}})
	manifest, err := bundle.EncodeManifest(third.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Seal(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	since := map[cas.Digest]time.Time{}
	for _, f := range []*testkit.Forged{first, third, second} {
		c := l.mustReceive(f)
		same := f == second
		for _, when := range []string{"before", "after"} {
			var got []bool
			for _, a := range mustReview(l, c.ID).Review.Artifacts {
				for _, p := range a.Plan {
					got = append(got, p.Same)
				}
			}
			want := make([]bool, len(got))
			for i := range want {
				want[i] = same
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
				t.Errorf("serial %d, %s its release (-want +got):\n%s", c.Serial, when, diff)
			}
			if when == "before" {
				l.clock.Advance(time.Hour)
				l.approve(c.ID)
				l.mustRelease(c.ID)
			}
		}
		tag, err := l.gate.Depot().Tag(t.Context(), "notes", "1.0")
		if err != nil {
			t.Fatal(err)
		}
		if at, known := since[tag.Digest]; known && !tag.Since.Equal(at) {
			t.Errorf("after serial %d the name is there since %s, and it was since %s", c.Serial, tag.Since, at)
		}
		since[tag.Digest] = tag.Since
	}
	if len(since) != 1 {
		t.Errorf("notes:1.0 was %d things", len(since))
	}
}
