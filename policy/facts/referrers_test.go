package facts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
)

const (
	typeSignature = "application/vnd.dev.sigstore.bundle.v0.3+json"
	typeStrange   = "application/vnd.example+json"
)

// refer attaches a manifest to a subject; the bundle's manifest gives it a
// type, and the referrer itself has what doc says.
func (f *forged) refer(a *bundle.Artifact, subject bundle.Descriptor, artifactType string, doc bundle.OCI) bundle.OCIDescriptor {
	f.t.Helper()
	doc.SchemaVersion, doc.MediaType = 2, bundle.TypeOCIManifest
	doc.Subject = &bundle.OCIDescriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
	r := f.document(doc, bundle.TypeOCIManifest)
	a.Referrers = append(a.Referrers, bundle.Referrer{Subject: subject.Digest, Descriptor: bundle.Descriptor{
		MediaType: bundle.TypeOCIManifest, Digest: r.Digest, Size: r.Size, ArtifactType: artifactType}})
	return r
}

// holds is a manifest with one config and layers of some contents.
func (f *forged) holds(artifactType, config string, layers ...string) bundle.OCI {
	doc := bundle.OCI{ArtifactType: artifactType, Config: new(f.blob([]byte(config), bundle.RoleMetadata)), Layers: []bundle.OCIDescriptor{}}
	doc.Config.MediaType = "application/vnd.oci.empty.v1+json"
	for _, text := range layers {
		layer := f.blob([]byte(text), bundle.RoleMetadata)
		layer.MediaType = artifactType
		doc.Layers = append(doc.Layers, layer)
	}
	return doc
}

// inspected gives the facts after inspection.
func inspected(f *forged) *policy.Input {
	f.t.Helper()
	b := f.seal()
	s := f.subject(b)
	reports, err := facts.Inspect(f.t.Context(), b, f.open, limits())
	if err != nil {
		f.t.Fatal(err)
	}
	s.Inspection = reports
	return state(f.t, s)
}

func TestReferrersAreStatedWithWhatTheyHold(t *testing.T) {
	f := forge(t)
	root := f.platform(fullConfig, configType, layerType)
	a := f.image(root, root.Digest)
	sbom := f.attach(a, f.bom(bundle.Image, root), root)
	signature := f.refer(a, a.Root, typeSignature, f.holds(typeSignature, "{}", `{"a":1}`))
	strange := f.refer(a, a.Root, typeStrange, f.holds(typeStrange, string(evil), "text"))
	empty := f.refer(a, a.Root, typeStrange, f.holds(typeStrange, "{}"))
	file := func(path, content, format string) policy.InspectedFile {
		d := cas.DigestOf([]byte(content))
		if path == "" {
			path = d.String()
		}
		return policy.InspectedFile{Path: path, Digest: d.String(), Size: int64(len(content)), Format: format, Findings: []policy.FileFinding{}}
	}
	bom := string(f.Content[*sbom.Document])
	want := []policy.Referrer{
		{Digest: sbom.Referrer.String(), Kind: "sbom", Inspection: policy.Inspection{Counted: []policy.CountedFiles{}, Status: "done", Files: []policy.InspectedFile{file("", bom, "json")}},
			Untrusted: policy.ReferrerUntrusted{ArtifactType: a.Referrers[0].Descriptor.ArtifactType}},
		{Digest: signature.Digest.String(), Kind: "signature", Inspection: policy.Inspection{Counted: []policy.CountedFiles{}, Status: "done", Files: []policy.InspectedFile{file("", `{"a":1}`, "json")}},
			Untrusted: policy.ReferrerUntrusted{ArtifactType: typeSignature}},
		{Digest: strange.Digest.String(), Kind: "other", Inspection: policy.Inspection{Counted: []policy.CountedFiles{}, Status: "done", Files: []policy.InspectedFile{
			file("", "text", "text"), file("/config/"+cas.DigestOf(evil).Short(), string(evil), "pickle")}},
			Untrusted: policy.ReferrerUntrusted{ArtifactType: typeStrange}},
		{Digest: empty.Digest.String(), Kind: "other", Inspection: policy.Inspection{Counted: []policy.CountedFiles{}, Status: "failed", Reason: "it has no files", Files: []policy.InspectedFile{}},
			Untrusted: policy.ReferrerUntrusted{ArtifactType: typeStrange}},
	}
	for i := range want {
		want[i].Subject = root.Digest.String()
	}
	got := artifactNamed(t, inspected(f), a.Name)
	codes := 0
	for _, r := range got.Referrers {
		for i := range r.Inspection.Files {
			codes += len(r.Inspection.Files[i].Findings)
			r.Inspection.Files[i].Findings = []policy.FileFinding{}
		}
	}
	if d := cmp.Diff(want, got.Referrers); d != "" || codes != 2 || got.Inspection.Status != "not-applicable" {
		t.Errorf("%d findings, want two of the pickle; inspection %s; referrers (-want +got)\n%s", codes, got.Inspection.Status, d)
	}
}

func TestWhatReferrersAreFor(t *testing.T) {
	for name, c := range map[string]struct{ listed, own, config, kind string }{
		"signature":               {typeSignature, typeSignature, "", "signature"},
		"attestation":             {"application/vnd.in-toto+json", "application/vnd.in-toto+json", "", "attestation"},
		"type of the config":      {typeSignature, "", typeSignature, "signature"},
		"other":                   {typeStrange, typeStrange, "", "other"},
		"none":                    {"", "", "", "other"},
		"called one by the list":  {typeSignature, typeStrange, "", "other"},
		"calls itself one":        {typeStrange, typeSignature, "", "other"},
		"an SBOM that nobody has": {"application/vnd.cyclonedx+json", "application/vnd.cyclonedx+json", "", "other"},
	} {
		t.Run(name, func(t *testing.T) {
			f := forge(t)
			root := f.platform(fullConfig, configType, layerType)
			a := f.image(root, root.Digest)
			doc := f.holds(c.own, "{}", "text")
			if c.config != "" {
				doc.Config.MediaType = c.config
			}
			f.refer(a, a.Root, c.listed, doc)
			got := artifactNamed(t, state(t, f.subject(f.seal())), a.Name)
			signs := c.kind == "signature" || c.kind == "attestation"
			if len(got.Referrers) != 1 || got.Referrers[0].Kind != c.kind || (len(got.Signatures) == 1) != signs {
				t.Errorf("%+v, signatures %+v, want %s", got.Referrers, got.Signatures, c.kind)
			}
			if got.Referrers[0].Inspection.Status != "pending" {
				t.Errorf("inspection %+v before anybody inspected", got.Referrers[0].Inspection)
			}
		})
	}
}

// A referrer can be an index: everything below it counts.
func TestReferrersWithManifestsBelow(t *testing.T) {
	f := forge(t)
	f.files(bundle.Dataset, "data", map[string][]byte{"a.txt": []byte("a")})
	a := &f.Manifest.Artifacts[1]
	below := f.holds(typeStrange, "{}", string(evil))
	below.SchemaVersion, below.MediaType = 2, bundle.TypeOCIManifest
	inner := f.document(below, bundle.TypeOCIManifest)
	r := f.document(bundle.OCI{
		SchemaVersion: 2, MediaType: bundle.TypeOCIIndex, ArtifactType: typeSignature, Manifests: []bundle.OCIDescriptor{inner},
		Subject: &bundle.OCIDescriptor{MediaType: a.Root.MediaType, Digest: a.Root.Digest, Size: a.Root.Size},
	}, bundle.TypeOCIIndex)
	a.Referrers = append(a.Referrers, bundle.Referrer{Subject: a.Root.Digest, Descriptor: bundle.Descriptor{
		MediaType: bundle.TypeOCIIndex, Digest: r.Digest, Size: r.Size, ArtifactType: typeSignature}})
	got := artifactNamed(t, inspected(f), "data").Referrers
	if len(got) != 1 || len(got[0].Inspection.Files) != 1 || got[0].Inspection.Files[0].Format != "pickle" {
		t.Errorf("%+v", got)
	}
}

func TestReferrerThatIsNotThere(t *testing.T) {
	f := forge(t)
	root := f.platform(fullConfig, configType, layerType)
	a := f.image(root, root.Digest)
	r := f.refer(a, a.Root, typeSignature, f.holds(typeSignature, "{}", "text"))
	f.seal()
	got := artifactNamed(t, state(t, f.subject(f.without(r.Digest))), a.Name)
	if len(got.Referrers) != 1 || got.Referrers[0].Kind != "other" || got.Referrers[0].Inspection.Status != "failed" || !strings.Contains(got.Referrers[0].Inspection.Reason, "is not there") {
		t.Errorf("%+v", got.Referrers)
	}
}

// The config of a tree is content like its files, under a path that no file
// can have, and each once.
func TestConfigsOfTreesAreInspected(t *testing.T) {
	f := forge(t)
	config := f.blob(evil, bundle.RoleMetadata)
	config.MediaType = "application/vnd.oci.empty.v1+json" // says that it is empty
	var parts []bundle.OCIDescriptor
	for _, text := range []string{"one", "two"} {
		doc := f.holds("application/vnd.packhof.files.v1", "{}", text)
		doc.SchemaVersion, doc.MediaType, doc.Config = 2, bundle.TypeOCIManifest, &config
		doc.Layers[0].Annotations = map[string]string{"org.opencontainers.image.title": "config/" + text}
		parts = append(parts, f.document(doc, bundle.TypeOCIManifest))
	}
	root := f.document(bundle.OCI{SchemaVersion: 2, MediaType: bundle.TypeOCIIndex, Manifests: parts}, bundle.TypeOCIIndex)
	a := f.image(root, root.Digest)
	a.Kind, a.Name = bundle.Files, "odd"
	got := artifactNamed(t, inspected(f), "odd").Inspection
	var paths []string
	for _, file := range got.Files {
		paths = append(paths, file.Path+" "+file.Format)
	}
	path := "/config/" + config.Digest.Short()
	if d := cmp.Diff([]string{"config/one text", "config/two text", path + " pickle"}, paths); d != "" || got.Status != "done" {
		t.Errorf("status %s, files (-want +got)\n%s", got.Status, d)
	}
	if bundle.CheckPath(path) == nil {
		t.Errorf("a file could be called %s", path)
	}
}

// A config alone is no file set.
func TestTreeOfAConfigOnly(t *testing.T) {
	f := forge(t)
	doc := f.holds("", string(evil))
	doc.SchemaVersion, doc.MediaType = 2, bundle.TypeOCIManifest
	root := f.document(doc, bundle.TypeOCIManifest)
	a := f.image(root, root.Digest)
	a.Kind, a.Name = bundle.Files, "odd"
	got := artifactNamed(t, inspected(f), "odd").Inspection
	if got.Status != "failed" || got.Reason != "it has no files" || len(got.Files) != 1 || got.Files[0].Format != "pickle" {
		t.Errorf("%+v", got)
	}
}

// TestNoContentGetsPastTheRules puts a pickle wherever an artifact has room.
func TestNoContentGetsPastTheRules(t *testing.T) {
	source, err := policy.Library()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Compile(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	image := func(f *forged) *bundle.Artifact {
		root := f.platform(fullConfig, configType, layerType)
		return f.image(root, root.Digest)
	}
	tree := func(kind bundle.Kind, config string) func(f *forged) *bundle.Artifact {
		return func(f *forged) *bundle.Artifact {
			doc := f.holds("", config, "text")
			doc.SchemaVersion, doc.MediaType = 2, bundle.TypeOCIManifest
			a := f.image(f.document(doc, bundle.TypeOCIManifest), cas.DigestOf(nil))
			a.Kind, a.SBOM[0].Subject = kind, a.Root.Digest
			return a
		}
	}
	with := func(make func(f *forged) *bundle.Artifact, artifactType, config, layer string) func(f *forged) *bundle.Artifact {
		return func(f *forged) *bundle.Artifact {
			a := make(f)
			f.refer(a, a.Root, artifactType, f.holds(artifactType, config, layer))
			return a
		}
	}
	bad := string(evil)
	for name, c := range map[string]struct {
		make  func(f *forged) *bundle.Artifact
		rule  string
		level policy.Level
	}{
		"config of a model":       {tree(bundle.Model, bad), "model_pickle", policy.LevelDeny},
		"config of a data set":    {tree(bundle.Dataset, bad), "file_pickle", policy.LevelReview},
		"referrer of an image":    {with(image, typeStrange, "{}", bad), "referrer_code", policy.LevelDeny},
		"its config":              {with(image, typeStrange, bad, "text"), "referrer_code", policy.LevelDeny},
		"signature of an image":   {with(image, typeSignature, "{}", bad), "referrer_code", policy.LevelDeny},
		"referrer of a chart":     {with(tree(bundle.Chart, "{}"), typeStrange, "{}", bad), "referrer_code", policy.LevelDeny},
		"referrer of packages":    {with(tree(bundle.Packages, "{}"), typeStrange, "{}", bad), "referrer_code", policy.LevelDeny},
		"a referrer nobody knows": {with(image, typeStrange, "{}", "text"), "referrer_unknown", policy.LevelReview},
		"a script in a referrer":  {with(image, typeStrange, "{}", "#!/bin/sh\n"), "referrer_code", policy.LevelDeny},
		"a closed archive in one": {with(image, typeSignature, "{}", "7z\xbc\xaf\x27\x1c"), "referrer_unread", policy.LevelReview},
		"an SBOM's referrer's config": {func(f *forged) *bundle.Artifact {
			a := image(f)
			subject := bundle.OCIDescriptor{MediaType: a.Root.MediaType, Digest: a.Root.Digest, Size: a.Root.Size}
			f.attach(a, f.bom(bundle.Image, subject), subject)
			document := *a.SBOM[0].Document
			a.Referrers = a.Referrers[:0]
			r := f.refer(a, a.Root, typeStrange, f.holds(typeStrange, bad, string(f.Content[document])))
			a.SBOM[0].Referrer = new(r.Digest)
			return a
		}, "referrer_code", policy.LevelDeny},
	} {
		t.Run(name, func(t *testing.T) {
			f := forge(t)
			a := *c.make(f)
			f.Manifest.Artifacts = []bundle.Artifact{a}
			d, err := rules.Evaluate(t.Context(), inspected(f))
			if err != nil {
				t.Fatal(err)
			}
			fired := false
			for _, finding := range d.Findings {
				fired = fired || finding.Rule == c.rule && finding.Level == c.level
			}
			if !fired || len(d.Errors) > 0 {
				t.Errorf("findings %+v, errors %+v; want %s by %s", d.Findings, d.Errors, c.level, c.rule)
			}
		})
	}
}
