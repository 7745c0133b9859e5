package facts_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
	"github.com/packhof/packhof/sbom/inspect"
)

func limits() inspect.Limits { return inspect.Limits{} }

var (
	evil = []byte("cos\nsystem\n(tR.")
	text = []byte("import os\n")
)

func TestInspectionOfFiles(t *testing.T) {
	f := forge(t)
	// One content under three names, for two of which it has more to say.
	f.files(bundle.Model, "model", map[string][]byte{"a.safetensors": evil, "b.pkl": evil, "code/c.py": text, "d.txt": text, "e.7z": []byte("7z\xbc\xaf\x27\x1c")})
	b := f.seal()
	opened := map[bundle.Digest]int{}
	reports, err := facts.Inspect(t.Context(), b, func(d bundle.Digest) (facts.ReadAtCloser, int64, error) {
		opened[d]++
		return f.open(d)
	}, limits())
	if err != nil {
		t.Fatal(err)
	}
	for d, n := range opened {
		if n != 1 {
			t.Errorf("%s was opened %d times", d, n)
		}
	}
	if reports.Len() != len(opened) || len(opened) != 6 { // three here, the model's config, two of the forged file set
		t.Errorf("%d reports of %d files", reports.Len(), len(opened))
	}
	s := f.subject(b)
	s.Inspection = reports
	in := state(t, s)
	got := artifactNamed(t, in, "model").Inspection
	type summary struct {
		Path, Format, NameSays string
		Mismatch, Unreadable   bool
		Codes                  []string
	}
	var all []summary
	for _, file := range got.Files {
		file.Path, _ = strings.CutSuffix(file.Path, "/"+strings.TrimPrefix(file.Digest, "sha256:")[:12])
		one := summary{file.Path, file.Format, file.NameSays, file.Mismatch, file.Unreadable, nil}
		for _, found := range file.Findings {
			one.Codes = append(one.Codes, found.Code)
		}
		slices.Sort(one.Codes)
		all = append(all, one)
	}
	want := []summary{
		{"a.safetensors", "pickle", "safetensors", true, false, []string{"name.mismatch", "pickle.content", "pickle.global"}},
		{"b.pkl", "pickle", "pickle", false, false, []string{"pickle.content", "pickle.global"}},
		{"code/c.py", "text", "python", false, false, []string{"python.source"}},
		{"d.txt", "text", "text", false, false, nil},
		{"e.7z", "7z", "7z", false, true, []string{"content.opaque"}},
		{"/config", "json", "", false, false, nil},
	}
	if d := cmp.Diff(want, all); d != "" || got.Status != "done" {
		t.Errorf("status %s, files (-want +got)\n%s", got.Status, d)
	}
	if reason := got.Files[4].Reason; reason != "it could not be looked into wholly: content.opaque" {
		t.Errorf("reason %q", reason)
	}
}

func TestContentNotLookedIntoYet(t *testing.T) {
	f := forge(t)
	s := f.subject(f.seal())
	s.Preview = true
	got := state(t, s).Artifacts[0].Inspection
	if got.Status != "pending" || got.Reason == "" || len(got.Files) != 2 {
		t.Fatalf("%+v", got)
	}
	for _, file := range got.Files {
		if file.Format != "" || file.Path == "" || file.Size != 700 || file.Digest == "" {
			t.Errorf("%+v", file)
		}
	}
}

// forgetful has lost the report that it is asked for first.
type forgetful struct {
	facts.Inspector
	lost bool
}

func (f *forgetful) Report(ctx context.Context, d bundle.Digest, path string) (inspect.Report, error) {
	if !f.lost {
		f.lost = true
		return inspect.Report{}, errors.New("lost")
	}
	return f.Inspector.Report(ctx, d, path)
}

// A file without a report is never passed over.
func TestOneFileWithoutAReport(t *testing.T) {
	f := forge(t)
	b := f.seal()
	reports, err := facts.Inspect(t.Context(), b, f.open, limits())
	if err != nil {
		t.Fatal(err)
	}
	s := f.subject(b)
	s.Inspection = &forgetful{Inspector: reports}
	got := state(t, s).Artifacts[0].Inspection
	unread := slices.IndexFunc(got.Files, func(f policy.InspectedFile) bool { return f.Unreadable && f.Format == "" && f.Reason != "" })
	if got.Status != "failed" || got.Reason == "" || unread < 0 || len(got.Files) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestContentThatCannotBeOpened(t *testing.T) {
	f := forge(t)
	b := f.seal()
	broken := errors.New("the disk says no")
	_, err := facts.Inspect(t.Context(), b, func(bundle.Digest) (facts.ReadAtCloser, int64, error) { return nil, 0, broken }, limits())
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	_, err = facts.Inspect(t.Context(), b, func(d bundle.Digest) (facts.ReadAtCloser, int64, error) {
		r, size, err := f.open(d)
		return r, size + 1, err
	}, limits())
	if problem.CodeOf(err) != "facts/wrong-size" {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := facts.Inspect(ctx, b, f.open, limits()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestTitlesThatAreNoPaths(t *testing.T) {
	f := forge(t)
	layer := f.blob([]byte("text"), bundle.RoleContent)
	layer.MediaType, layer.Annotations = "text/plain", map[string]string{"org.opencontainers.image.title": "../../etc/passwd"}
	untitled := f.blob([]byte("more"), bundle.RoleContent)
	untitled.MediaType = "text/plain"
	config := f.blob([]byte("{}"), bundle.RoleMetadata)
	config.MediaType = "application/vnd.oci.empty.v1+json"
	root := f.document(bundle.OCI{SchemaVersion: 2, MediaType: bundle.TypeOCIManifest, Config: &config, Layers: []bundle.OCIDescriptor{layer, untitled}}, bundle.TypeOCIManifest)
	a := f.image(root, root.Digest)
	a.Kind, a.Name = bundle.Files, "odd"
	got := artifactNamed(t, state(t, f.subject(f.seal())), "odd").Inspection.Files
	want := []policy.InspectedFile{
		{Path: layer.Digest.String(), Digest: layer.Digest.String(), Size: 4, Findings: []policy.FileFinding{
			{Code: "archive.path", Untrusted: policy.FileFindingUntrusted{Path: "../../etc/passwd"}}}},
		{Path: untitled.Digest.String(), Digest: untitled.Digest.String(), Size: 4, Findings: []policy.FileFinding{}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("files (-want +got)\n%s", d)
	}
}

func TestFilesWithoutTheirManifest(t *testing.T) {
	f := forge(t)
	f.seal()
	b := f.without(f.Manifest.Artifacts[0].Root.Digest)
	s := f.subject(b)
	reports, err := facts.Inspect(t.Context(), b, f.open, limits())
	if err != nil {
		t.Fatal(err)
	}
	s.Inspection = reports
	got := state(t, s).Artifacts[0].Inspection
	if got.Status != "failed" || got.Reason == "" || len(got.Files) != 0 {
		t.Errorf("%+v", got)
	}
}
