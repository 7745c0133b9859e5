package facts_test

import (
	"bytes"
	"encoding/json/v2"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
	"github.com/packhof/packhof/sbom"
)

// forged is a bundle under construction.
type forged struct {
	*testkit.Forged
	t testing.TB
}

func forge(t testing.TB) *forged { return &forged{testkit.Forge(t, nil), t} }

// seal signs the manifest as it is now and opens the bundle, verified.
func (f *forged) seal() *bundle.Bundle {
	f.t.Helper()
	manifest, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := f.Seal(f.t.Context(), manifest); err != nil {
		f.t.Fatal(err)
	}
	sealed, err := bundle.Open(bytes.NewReader(f.Volume), int64(len(f.Volume)), "x.tar")
	if err != nil {
		f.t.Fatal(err)
	}
	return f.verified(sealed)
}

// without opens the sealed bundle with content that lacks a blob.
func (f *forged) without(d bundle.Digest) *bundle.Bundle {
	content := testkit.Memory{}
	for have, b := range f.Content {
		if have != d {
			content[have] = b
		}
	}
	return f.verified(bundle.OpenSealed("x", f.Head, content))
}

func (f *forged) verified(s *bundle.Sealed) *bundle.Bundle {
	f.t.Helper()
	b, err := s.Verify(f.Trust, testkit.Noon())
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// blob adds a blob to content and manifest, once.
func (f *forged) blob(b []byte, role bundle.Role) bundle.OCIDescriptor {
	d := f.Content.Add(b)
	if _, there := f.Manifest.Blob(d); !there {
		testkit.AddBlob(f.Manifest, b, role)
	}
	return bundle.OCIDescriptor{Digest: d, Size: int64(len(b))}
}

func (f *forged) document(doc any, mediaType string) bundle.OCIDescriptor {
	f.t.Helper()
	b, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		f.t.Fatal(err)
	}
	d := f.blob(b, bundle.RoleMetadata)
	d.MediaType = mediaType
	return d
}

const configType = "application/vnd.oci.image.config.v1+json"

// platform adds the manifest of one platform with the config given as JSON.
func (f *forged) platform(config, configType, layerType string) bundle.OCIDescriptor {
	f.t.Helper()
	c := f.blob([]byte(config), bundle.RoleMetadata)
	c.MediaType = configType
	layer := f.blob([]byte("layer of "+config), bundle.RoleContent)
	layer.MediaType = layerType
	return f.document(bundle.OCI{SchemaVersion: 2, MediaType: bundle.TypeOCIManifest, Config: &c, Layers: []bundle.OCIDescriptor{layer}}, bundle.TypeOCIManifest)
}

const layerType = "application/vnd.oci.image.layer.v1.tar+gzip"

// image names an image in the manifest, with SBOM entries that say absent.
func (f *forged) image(root bundle.OCIDescriptor, subjects ...bundle.Digest) *bundle.Artifact {
	a := bundle.Artifact{
		Kind: bundle.Image, Name: "registry.example/tools/cutter", Version: "1.4", Referrers: []bundle.Referrer{},
		Root:   bundle.Descriptor{MediaType: root.MediaType, Digest: root.Digest, Size: root.Size},
		Origin: bundle.Origin{From: "Registry.example:5000/tools/cutter:1.4", At: bundle.At(testkit.Noon()), Transport: bundle.TransportTLS, Verified: bundle.VerifiedLock},
	}
	for _, s := range subjects {
		a.SBOM = append(a.SBOM, bundle.SBOM{Subject: s, Status: bundle.SBOMAbsent, Reason: "made by hand"})
	}
	f.Manifest.Artifacts = append(f.Manifest.Artifacts, a)
	return &f.Manifest.Artifacts[len(f.Manifest.Artifacts)-1]
}

// bom writes a document about a subject, with two packages.
func (f *forged) bom(kind bundle.Kind, subject bundle.OCIDescriptor) []byte {
	f.t.Helper()
	doc, err := sbom.Write(sbom.Request{
		Subject: sbom.Subject{Kind: string(kind), Name: "x", Version: "1", Digest: subject.Digest.String(), MediaType: subject.MediaType},
		Format:  sbom.RequestFormat, Form: sbom.FormImage, Time: testkit.Noon(), Dir: "/nowhere",
	}, sbom.Found{Components: []cyclonedx.Component{
		{BOMRef: "pkg:deb/a", Type: cyclonedx.ComponentTypeLibrary, Name: "a", Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "MIT"}}}},
		{BOMRef: "pkg:deb/b", Type: cyclonedx.ComponentTypeLibrary, Name: "b"},
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	return doc
}

// attach adds a document as the SBOM of a subject.
func (f *forged) attach(a *bundle.Artifact, doc []byte, subject bundle.OCIDescriptor) *bundle.SBOM {
	f.t.Helper()
	d := f.blob(doc, bundle.RoleMetadata)
	manifest, config, err := bundle.BuildReferrer(sbom.MediaType, d.Digest, d.Size, bundle.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size})
	if err != nil {
		f.t.Fatal(err)
	}
	f.blob(config, bundle.RoleMetadata)
	return f.attachBy(a, d.Digest, manifest, subject.Digest)
}

func (f *forged) attachBy(a *bundle.Artifact, doc bundle.Digest, referrer []byte, subject bundle.Digest) *bundle.SBOM {
	r := f.blob(referrer, bundle.RoleMetadata)
	a.Referrers = append(a.Referrers, bundle.Referrer{Subject: subject, Descriptor: bundle.Descriptor{
		MediaType: bundle.TypeOCIManifest, Digest: r.Digest, Size: r.Size, ArtifactType: sbom.MediaType}})
	entry := bundle.SBOM{Subject: subject, Status: bundle.SBOMPresent, Document: new(doc), Referrer: new(r.Digest), Format: "CycloneDX 1.6", Tool: "scan 1", Unknowns: 2}
	for i := range a.SBOM {
		if a.SBOM[i].Subject == subject {
			a.SBOM[i] = entry
			return &a.SBOM[i]
		}
	}
	a.SBOM = append(a.SBOM, entry)
	return &a.SBOM[len(a.SBOM)-1]
}

// files adds an artifact of files. Unlike Forged.AddTree it takes a content
// that is there already.
func (f *forged) files(kind bundle.Kind, name string, files map[string][]byte) {
	f.t.Helper()
	var all []bundle.File
	for path, b := range files {
		d := f.blob(b, bundle.RoleContent)
		all = append(all, bundle.File{Path: path, Size: d.Size, Digest: d.Digest})
	}
	tree, err := bundle.BuildTree(kind, name, "1.0", all)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, document := range tree.Documents {
		f.blob(document, bundle.RoleMetadata)
	}
	f.Manifest.Artifacts = append(f.Manifest.Artifacts, bundle.Artifact{
		Kind: kind, Name: name, Version: "1.0", Root: tree.Root, Referrers: []bundle.Referrer{}, Origin: f.Manifest.Artifacts[0].Origin,
		SBOM: []bundle.SBOM{{Subject: tree.Root.Digest, Status: bundle.SBOMAbsent, Reason: "made by hand"}},
	})
}

func (f *forged) subject(b *bundle.Bundle) facts.Subject {
	return facts.Subject{Bundle: b, Root: f.Trust.Root(), Time: facts.Time{Floor: testkit.Noon(), Wall: testkit.Noon().Add(90e9)}}
}

// state states the facts and has them checked as the policy does.
func state(t testing.TB, s facts.Subject) *policy.Input {
	t.Helper()
	in, err := facts.State(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := in.Encode(); err != nil {
		t.Fatalf("the policy would not take it: %v", err)
	}
	return in
}

func artifactNamed(t testing.TB, in *policy.Input, name string) policy.Artifact {
	t.Helper()
	for _, a := range in.Artifacts {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("no artifact %q", name)
	return policy.Artifact{}
}

// open opens content in memory.
func (f *forged) open(d bundle.Digest) (facts.ReadAtCloser, int64, error) {
	b, ok := f.Content[d]
	if !ok {
		return nil, 0, &cas.NotFoundError{Digest: d}
	}
	return closed{bytes.NewReader(b)}, int64(len(b)), nil
}

type closed struct{ *bytes.Reader }

func (closed) Close() error { return nil }
