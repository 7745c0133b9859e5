//go:build linux

package judge_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

// mostMemory is what judging may take, in bytes.
const mostMemory = 256 << 20

// treeOf are the facts about a tree of so many files.
func treeOf(t *testing.T, files int) *policy.Input {
	t.Helper()
	in := input(t)
	in.Artifacts = in.Artifacts[:1]
	a := &in.Artifacts[0]
	a.Kind, a.Image = "dataset", policy.Image{Status: "not-applicable"}
	a.Inspection = policy.Inspection{Status: "done"}
	for i := range files {
		a.Inspection.Files = append(a.Inspection.Files, policy.InspectedFile{
			Path: fmt.Sprintf("data/part-%03d/%06d.txt", i/1000, i), Digest: fmt.Sprintf("sha256:%064x", i), Size: int64(i % 5000), Format: "text", NameSays: "text",
		})
	}
	last := &a.Inspection.Files[files-1]
	last.Format, last.Mismatch = "pickle", true
	last.Findings = []policy.FileFinding{{Code: "pickle.content"}}
	return in
}

// Neither who asks nor who judges takes more than mostMemory, and every file is
// judged to the last.
func TestManyFilesTakeLittleMemory(t *testing.T) {
	library, err := policy.Library()
	if err != nil {
		t.Fatal(err)
	}
	in := treeOf(t, manyFiles)
	c := self(t, "frugal")
	var d *policy.Decision
	peak := testkit.PeakHeap(func() { d, err = c.Evaluate(t.Context(), library, in) })
	if err != nil {
		t.Fatal(err)
	}
	found := slices.ContainsFunc(d.Findings, func(f policy.Finding) bool { return f.Rule == "file_pickle" })
	if len(d.Errors) > 0 || !found {
		t.Errorf("the judge: %+v, %+v", d.Errors, d.Findings)
	}
	if peak > mostMemory {
		t.Errorf("who asks the judge took %d MiB", peak>>20)
	}
	t.Logf("who asks the judge took %d MiB", peak>>20)
}
