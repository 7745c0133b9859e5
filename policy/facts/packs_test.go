package facts_test

import (
	"encoding/json/v2"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
)

// packedBundle has a data set of some files in a pack.
func packedBundle(t *testing.T, kind bundle.Kind, files map[string][]byte, change func(*bundle.PackIndex)) (*forged, *bundle.Bundle) {
	t.Helper()
	f := forge(t)
	pack, x := testkit.PackOf(t, files)
	change(x)
	f.AddPacked(t, kind, "welds", nil, pack, x.Encode())
	return f, f.verified(bundle.OpenSealed("x", f.Head, f.Content))
}

func asItIs(*bundle.PackIndex) {}

// A file in a pack is inspected as any other and stated under its own path,
// also when the reports were kept meanwhile.
func TestFilesInPacks(t *testing.T) {
	f, b := packedBundle(t, bundle.Dataset, map[string][]byte{"a/evil.txt": evil, "a/line.txt": []byte("line\n"), "b.txt": []byte("line\n")}, asItIs)
	reports, err := facts.Inspect(t.Context(), b, f.open, limits())
	if err != nil {
		t.Fatal(err)
	}
	kept, err := json.Marshal(reports)
	if err != nil {
		t.Fatal(err)
	}
	again := &facts.Reports{}
	if err := json.Unmarshal(kept, again); err != nil || again.Len() != reports.Len() {
		t.Fatalf("%d of %d reports, %v", again.Len(), reports.Len(), err)
	}
	s := f.subject(b)
	s.Inspection = again
	got := artifactNamed(t, state(t, s), "welds").Inspection
	var all []string
	for _, file := range got.Files {
		all = append(all, file.Path+" "+file.Format)
	}
	if d := cmp.Diff([]string{"a/evil.txt pickle", "a/line.txt text", "b.txt text"}, all); d != "" || got.Status != "done" {
		t.Errorf("%s %s\n%s", got.Status, got.Reason, d)
	}
	found := slices.ContainsFunc(got.Files[0].Findings, func(f policy.FileFinding) bool { return f.Code == "pickle.global" })
	if !found || !got.Files[0].Mismatch {
		t.Errorf("%+v", got.Files[0])
	}
}

func TestReportsOfAnotherFormAreRefused(t *testing.T) {
	for _, text := range []string{`{"sha256:00":{}}`, `{"noted":{},"plain":{"text":"AAAA"}}`, `[]`} {
		if json.Unmarshal([]byte(text), &facts.Reports{}) == nil {
			t.Errorf("read %s", text)
		}
	}
}

// A pack that is not what its index says ends the inspection.
func TestPackThatIsNotWhatItsIndexSays(t *testing.T) {
	f, b := packedBundle(t, bundle.Files, map[string][]byte{"a.txt": []byte("one"), "b.txt": []byte("two")}, func(x *bundle.PackIndex) { x.Files[1].Path = "c.txt" })
	_, err := facts.Inspect(t.Context(), b, f.open, limits())
	if problem.CodeOf(err) != "bundle/bad-pack" {
		t.Errorf("%v, want bundle/bad-pack", err)
	}
}

// Of very many files only those are stated by themselves that there is
// something to say about; of a model all are.
func TestVeryManyFilesInPacksAreCounted(t *testing.T) {
	const listed, more = 20_000, 50
	for _, kind := range []bundle.Kind{bundle.Dataset, bundle.Model} {
		files := map[string][]byte{"z.pkl": evil, "z.TXT": []byte("x\n"), "zz": []byte("x\n")}
		for i := range listed + more {
			files[fmt.Sprintf("f/%06d.txt", i)] = []byte("line\n")
		}
		f, b := packedBundle(t, kind, files, asItIs)
		reports, err := facts.Inspect(t.Context(), b, f.open, limits())
		if err != nil {
			t.Fatal(err)
		}
		s := f.subject(b)
		s.Inspection = reports
		got := artifactNamed(t, state(t, s), "welds").Inspection
		want := []policy.CountedFiles{{Format: "text", Ending: "", Files: 1, Bytes: 2}, {Format: "text", Ending: ".txt", Files: more + 1, Bytes: more*5 + 2}}
		stated := listed + 1
		if kind == bundle.Model {
			want, stated = []policy.CountedFiles{}, listed+more+4 // and its config
		}
		pickle := slices.ContainsFunc(got.Files, func(f policy.InspectedFile) bool { return f.Path == "z.pkl" && f.Format == "pickle" })
		if d := cmp.Diff(want, got.Counted); d != "" || len(got.Files) != stated || !pickle {
			t.Errorf("%s: %d files, pickle stated %v\n%s", kind, len(got.Files), pickle, d)
		}
	}
}
