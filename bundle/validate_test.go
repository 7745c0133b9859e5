package bundle_test

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// forgeDescribed is a bundle whose one artifact has an SBOM.
func forgeDescribed(t *testing.T, change func(*bundle.Manifest)) *testkit.Forged {
	t.Helper()
	document := []byte(`{"bomFormat":"CycloneDX"}`)
	root := testkit.Forge(t, nil).Manifest.Artifacts[0].Root
	referrer, config, err := bundle.BuildReferrer("application/vnd.cyclonedx+json", cas.DigestOf(document), int64(len(document)), root)
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Forge(t, func(m *bundle.Manifest) {
		a := &m.Artifacts[0]
		for _, b := range [][]byte{document, referrer} {
			a.Size += testkit.AddBlob(m, b, bundle.RoleMetadata)
		}
		if _, ok := m.Blob(cas.DigestOf(config)); !ok {
			t.Fatal("the empty config is not in the bundle")
		}
		d, r := cas.DigestOf(document), cas.DigestOf(referrer)
		a.Referrers = []bundle.Referrer{{Subject: root.Digest, Descriptor: bundle.Descriptor{MediaType: bundle.TypeOCIManifest, Digest: r, Size: int64(len(referrer))}}}
		a.SBOM = []bundle.SBOM{{Subject: root.Digest, Status: bundle.SBOMPresent, Document: &d, Referrer: &r, Format: "CycloneDX 1.6"}}
		if change != nil {
			change(m)
		}
	}, document, referrer)
}

func TestReferrersAndSBOM(t *testing.T) {
	f := forgeDescribed(t, nil)
	if err := check(f, f.Volume); err != nil {
		t.Fatal(err)
	}
	if err := verified(t, f, f.Content).Check(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	wrongSubject := forgeDescribed(t, func(m *bundle.Manifest) {
		layer := m.Blobs[slices.IndexFunc(m.Blobs, func(b bundle.Blob) bool { return b.Role == bundle.RoleContent })]
		m.Artifacts[0].Referrers[0].Subject = layer.Digest
		m.Artifacts[0].SBOM[0].Subject = layer.Digest
	})
	if err := check(wrongSubject, wrongSubject.Volume); problem.CodeOf(err) != "bundle/incomplete-graph" {
		t.Errorf("a referrer that says something else of its subject: %v", err)
	}
	wrongSize := forgeDescribed(t, func(m *bundle.Manifest) { m.Artifacts[0].Size++ })
	if err := check(wrongSize, wrongSize.Volume); problem.CodeOf(err) != "bundle/incomplete-graph" {
		t.Errorf("an artifact with a wrong size: %v", err)
	}
}

func TestValidateFindsEachFault(t *testing.T) {
	other := cas.DigestOf([]byte("not in the bundle"))
	artifact := func(change func(*bundle.Artifact)) func(*bundle.Manifest) {
		return func(m *bundle.Manifest) { change(&m.Artifacts[0]) }
	}
	sbom := func(change func(*bundle.SBOM)) func(*bundle.Manifest) {
		return func(m *bundle.Manifest) { change(&m.Artifacts[0].SBOM[0]) }
	}
	cases := map[string]func(*bundle.Manifest){
		"epoch":               func(m *bundle.Manifest) { m.Epoch = 0 },
		"previous of first":   func(m *bundle.Manifest) { m.Previous = &other },
		"audience empty":      func(m *bundle.Manifest) { m.Audience = nil },
		"audience unsorted":   func(m *bundle.Manifest) { m.Audience = append(m.Audience, m.Audience[0]) },
		"audience too long":   func(m *bundle.Manifest) { m.Audience = make([]string, 1001) },
		"expires too early":   func(m *bundle.Manifest) { m.Expires = m.Created },
		"no trust root":       func(m *bundle.Manifest) { m.TrustRoot.Version = 0 },
		"kind":                func(m *bundle.Manifest) { m.Kind = "other" },
		"no artifacts":        func(m *bundle.Manifest) { m.Artifacts = nil },
		"control with images": func(m *bundle.Manifest) { m.Kind = bundle.KindControl },
		"documents in content": func(m *bundle.Manifest) {
			m.Documents = []bundle.Document{{Type: "policy", Version: "1", Blob: m.Blobs[0].Digest}}
		},
		"no blobs":         func(m *bundle.Manifest) { m.Blobs = nil },
		"too many blobs":   func(m *bundle.Manifest) { m.Blobs = make([]bundle.Blob, bundle.MaxBlobs+1) },
		"blobs unsorted":   func(m *bundle.Manifest) { slices.Reverse(m.Blobs) },
		"blob twice":       func(m *bundle.Manifest) { m.Blobs = append(m.Blobs[:1], m.Blobs...) },
		"negative blob":    func(m *bundle.Manifest) { m.Blobs[0].Size = -1 },
		"enormous blob":    func(m *bundle.Manifest) { m.Blobs[0].Size = 1<<50 + 1 },
		"role":             func(m *bundle.Manifest) { m.Blobs[0].Role = "other" },
		"chunks of little": func(m *bundle.Manifest) { m.Blobs[0].Chunks = &other },
		"chunks missing": func(m *bundle.Manifest) {
			b := content(m)
			m.Totals.Bytes += bundle.ChunkSize + 1 - b.Size
			b.Size = bundle.ChunkSize + 1
		},
		"chunks elsewhere": func(m *bundle.Manifest) {
			b := content(m)
			m.Totals.Bytes += bundle.ChunkSize + 1 - b.Size
			b.Size, b.Chunks = bundle.ChunkSize+1, &other
		},
		"bytes too many": func(m *bundle.Manifest) { m.Blobs[0].Size, m.Blobs[1].Size = 1<<50, 1<<50 },
		"artifact twice": func(m *bundle.Manifest) { m.Artifacts = append(m.Artifacts, m.Artifacts[0]) },
		"artifact kind":  artifact(func(a *bundle.Artifact) { a.Kind = "other" }),
		"no name":        artifact(func(a *bundle.Artifact) { a.Name = "" }),
		"long version":   artifact(func(a *bundle.Artifact) { a.Version = strings.Repeat("1", 129) }),
		"line break":     artifact(func(a *bundle.Artifact) { a.Version = "1\u2028" }),
		"no origin":      artifact(func(a *bundle.Artifact) { a.Origin.From = "" }),
		"transport":      artifact(func(a *bundle.Artifact) { a.Origin.Transport = "pigeon" }),
		"verified":       artifact(func(a *bundle.Artifact) { a.Origin.Verified = "hope" }),
		"root elsewhere": artifact(func(a *bundle.Artifact) { a.Root.Digest = other }),
		"root size":      artifact(func(a *bundle.Artifact) { a.Root.Size++ }),
		"root type":      artifact(func(a *bundle.Artifact) { a.Root.MediaType = "text/plain" }),
		"root is content": func(m *bundle.Manifest) {
			b := content(m)
			m.Artifacts[0].Root.Digest, m.Artifacts[0].Root.Size = b.Digest, b.Size
		},
		"referrer elsewhere":       artifact(func(a *bundle.Artifact) { a.Referrers[0].Descriptor.Digest = other }),
		"subject elsewhere":        artifact(func(a *bundle.Artifact) { a.Referrers[0].Subject = other }),
		"silent about the SBOM":    artifact(func(a *bundle.Artifact) { a.SBOM = nil }),
		"SBOM of something else":   sbom(func(s *bundle.SBOM) { s.Subject = other }),
		"SBOM without a document":  sbom(func(s *bundle.SBOM) { s.Document = nil }),
		"SBOM with a reason":       sbom(func(s *bundle.SBOM) { s.Reason = "why" }),
		"SBOM elsewhere":           sbom(func(s *bundle.SBOM) { s.Document = &other }),
		"SBOM not bound":           sbom(func(s *bundle.SBOM) { s.Referrer = &other }),
		"absent with a document":   sbom(func(s *bundle.SBOM) { s.Status, s.Reason = bundle.SBOMAbsent, "why" }),
		"failed without a reason":  sbom(func(s *bundle.SBOM) { *s = bundle.SBOM{Subject: s.Subject, Status: bundle.SBOMFailed} }),
		"SBOM status":              sbom(func(s *bundle.SBOM) { s.Status = "maybe" }),
		"note too long":            func(m *bundle.Manifest) { m.Note = strings.Repeat("x", 1<<17) },
		"note that is no text":     func(m *bundle.Manifest) { m.Note = "\xff" },
		"critical extension":       func(m *bundle.Manifest) { m.Extensions = map[string]bundle.Extension{"x": {Critical: true}} },
		"documents of nothing":     func(m *bundle.Manifest) { controlOnly(m, other) },
		"year that does not exist": func(m *bundle.Manifest) { m.Expires.Time = m.Expires.AddDate(9000, 0, 0) },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			m := cloneManifest(t, forgeDescribed(t, nil).Manifest)
			change(m)
			b, err := bundle.EncodeManifest(m)
			if err == nil {
				t.Errorf("sealed as %s", b)
			}
			if name == "critical extension" && problem.CodeOf(err) != "format/critical-extension" {
				t.Errorf("%v", err)
			}
		})
	}
}

// content finds a blob that is content.
func content(m *bundle.Manifest) *bundle.Blob {
	return &m.Blobs[slices.IndexFunc(m.Blobs, func(b bundle.Blob) bool { return b.Role == bundle.RoleContent })]
}

func controlOnly(m *bundle.Manifest, blob cas.Digest) {
	m.Kind, m.Artifacts = bundle.KindControl, []bundle.Artifact{}
	m.Documents = []bundle.Document{{Type: "policy", Version: "1", Blob: blob}}
}

func cloneManifest(t *testing.T, m *bundle.Manifest) *bundle.Manifest {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var clone bundle.Manifest
	if err := json.Unmarshal(b, &clone); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, &clone); diff != "" {
		t.Fatal(diff)
	}
	return &clone
}

func TestControlBundle(t *testing.T) {
	policy := []byte("package packhof")
	f := testkit.Forge(t, func(m *bundle.Manifest) {
		m.Blobs, m.Totals = nil, bundle.Totals{}
		testkit.AddBlob(m, policy, bundle.RoleMetadata)
		controlOnly(m, cas.DigestOf(policy))
	}, policy)
	if err := check(f, f.Volume); err != nil {
		t.Error(err)
	}
}

// TestDamagedSegment: TestT08BlobOver4GiB is about whole ones.
func TestDamagedSegment(t *testing.T) {
	if testing.Short() {
		t.Skip("hashes 4 GiB five times over")
	}
	const size = 4 << 30
	f, plan, digest := plannedZeros(t, size)
	file := &sparse{}
	if err := plan.Write(t.Context(), file, both{f.Content, zeros{digest: size}}, nil); err != nil {
		t.Fatal(err)
	}
	if plan.Size() != file.size || len(plan.ManifestUnsafe().Blobs) != len(f.Manifest.Blobs) {
		t.Errorf("planned %d bytes, wrote %d", plan.Size(), file.size)
	}
	checkSparse := func() error {
		sealed, err := bundle.Open(file, file.size, "x.tar")
		if err != nil {
			return err
		}
		b, err := sealed.Verify(f.Trust, testkit.Noon())
		if err != nil {
			return err
		}
		return b.Check(t.Context(), nil)
	}
	file.pieces = append(file.pieces, sparsePiece{file.size - 1<<20, []byte{1}})
	if err := checkSparse(); problem.CodeOf(err) != "volume/damaged" {
		t.Errorf("a byte of the last segment changed: %v", err)
	}
}

func TestEvidenceOfDamage(t *testing.T) {
	f := testkit.Forge(t, nil)
	damaged := bytes.Clone(f.Volume)
	last := len(damaged) - 3*block // in SHA256SUMS or its padding
	for damaged[last] == 0 {
		last--
	}
	damaged[last-70] ^= 1
	err := check(f, damaged)
	var p interface {
		error
		Evidence() []string
		Remedy() string
	}
	if !asProblem(err, &p) || p.Remedy() == "" || !strings.Contains(p.Error(), "plant-7-000001.tar") {
		t.Errorf("damage is reported as %v", err)
	}
	if e := (&bundle.DamagedError{Volume: "v", Offset: 5, What: "w"}); e.Evidence() != nil || e.Error() != "v is damaged at byte 5: w" {
		t.Errorf("%v, %v", e, e.Evidence())
	}
	if e := (&bundle.DamagedError{Want: "a", Got: "b"}); len(e.Evidence()) != 2 {
		t.Error(e.Evidence())
	}
}

func asProblem[T error](err error, target *T) bool {
	found, ok := err.(T)
	*target = found
	return ok
}

func TestLayerTypesOfAModel(t *testing.T) {
	var files []bundle.File
	want := map[string]string{
		"README.md": "doc", "LICENSE": "doc", "config.json": "weight.config", "tokenizer.model": "weight.config",
		"run.PY": "code", "train.csv": "dataset", "a.safetensors": "weight", "b.gguf": "weight", "pytorch.bin": "weight",
	}
	for path := range want {
		files = append(files, bundle.File{Path: path, Size: 1, Digest: cas.DigestOf([]byte(path))})
	}
	tree, err := bundle.BuildTree(bundle.Model, "m", "1", files)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range tree.Documents {
		doc, err := bundle.ParseOCI(b, bundle.TypeOCIManifest)
		if err != nil {
			continue // the config
		}
		for _, layer := range doc.Layers {
			path := layer.Annotations["org.cncf.model.filepath"]
			if got := fmt.Sprintf("application/vnd.cncf.model.%s.v1.raw", want[path]); layer.MediaType != got {
				t.Errorf("%s has type %s, want %s", path, layer.MediaType, got)
			}
		}
	}
	for _, bad := range [][]bundle.File{nil, {files[0], files[0]}, {{Path: "../x"}}} {
		if _, err := bundle.BuildTree(bundle.Model, "m", "1", bad); problem.CodeOf(err) == "" {
			t.Errorf("%v became a tree: %v", bad, err)
		}
	}
}

func TestPlatformNames(t *testing.T) {
	for want, p := range map[string]bundle.OCIPlatform{
		"linux/amd64": {OS: "linux", Architecture: "amd64"}, "linux/arm/v7": {OS: "linux", Architecture: "arm", Variant: "v7"},
	} {
		if p.String() != want {
			t.Errorf("%q, want %q", p.String(), want)
		}
	}
}
