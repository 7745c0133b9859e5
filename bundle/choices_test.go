package bundle_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// TestChoices: each leaves one claim of every place, no two are the same, and
// there are not too many.
func TestChoices(t *testing.T) {
	place := func(claims ...string) (list [][]string) {
		for _, c := range claims {
			list = append(list, []string{c, c + "-copy"})
		}
		return list
	}
	many := [][][]string{}
	for range 9 {
		many = append(many, place("a", "b"))
	}
	for want, rivals := range map[int][][][]string{1: nil, 6: {place("a", "b"), place("c", "d", "e")}, bundle.MaxChoices: many} {
		choices := bundle.Choices(rivals)
		if len(choices) != want || len(slices.CompactFunc(slices.SortedFunc(slices.Values(choices), slices.Compare), slices.Equal)) != want {
			t.Errorf("%d choices, want %d: %v", len(choices), want, choices)
		}
		out := 0
		for _, claims := range rivals {
			out += 2 * (len(claims) - 1)
		}
		for _, c := range choices {
			if len(c) != out {
				t.Errorf("%v leaves out %d, want %d", c, len(c), out)
			}
		}
	}
}

// TestCheckPieces: a forged piece with fitting sums is found, a choice without
// it is sound, and nobody's word counts for another manifest.
func TestCheckPieces(t *testing.T) {
	f := spreadBundle(t, 40_000)
	dir := t.TempDir()
	paths := written(t, f, dir, bundle.SetOptions{Limits: []int64{base(t, f) + 15_000}})
	b, err := os.ReadFile(paths[0])
	forged := filepath.Join(dir, "z.tar")
	if err == nil {
		err = os.WriteFile(forged, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	forgePiece(t, forged)
	found, err := bundle.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	sealed := found.Bundles[0]
	head := sealed.Head()
	for aside, want := range map[string]string{forged: "", paths[0]: "volume/damaged"} {
		if err := sealed.CheckPieces(t.Context(), head.Digest(), []string{aside}); problem.CodeOf(err) != want {
			t.Errorf("without %s: %v", aside, err)
		}
	}
	if err := sealed.CheckPieces(t.Context(), bundle.Digest{1}, nil); err == nil {
		t.Error("another manifest is vouched for")
	}
	if err := sealed.Close(); err != nil {
		t.Error(err)
	}
}
