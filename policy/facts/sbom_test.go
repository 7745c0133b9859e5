package facts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/sbom"
)

func TestSBOMsAndLicences(t *testing.T) {
	f := forge(t)
	root, amd64, arm64 := index(f)
	image := f.image(root, amd64.Digest) // nothing is said about arm64
	f.attach(image, f.bom(bundle.Image, amd64), amd64)
	a := artifactNamed(t, state(t, f.subject(f.seal())), image.Name)
	want := []policy.SBOM{
		{Subject: amd64.Digest.String(), Status: "present", Bound: true, Format: "CycloneDX 1.6", Tool: "scan 1", Components: 2, Packages: 2, Unlicensed: 1, Unknowns: 2},
		{Subject: arm64.Digest.String(), Status: "absent", Reason: "the bundle says nothing about an SBOM of it"},
	}
	if d := cmp.Diff(want, a.SBOM); d != "" {
		t.Errorf("SBOMs (-want +got)\n%s", d)
	}
	if d := cmp.Diff([]string{"MIT"}, a.Licences); d != "" {
		t.Errorf("licences (-want +got)\n%s", d)
	}
}

func TestAnImageWithoutAnythingAboutItsPlatforms(t *testing.T) {
	f := forge(t)
	root, amd64, arm64 := index(f)
	f.image(root, root.Digest) // only the index has an entry
	var absent []string
	for _, s := range artifactNamed(t, state(t, f.subject(f.seal())), "registry.example/tools/cutter").SBOM {
		if s.Status == "absent" {
			absent = append(absent, s.Subject)
		}
	}
	if d := cmp.Diff([]string{root.Digest.String(), amd64.Digest.String(), arm64.Digest.String()}, absent); d != "" {
		t.Errorf("absent (-want +got)\n%s", d)
	}
}

func TestSBOMsThatAreNotWhatTheBundleSays(t *testing.T) {
	for name, c := range map[string]struct {
		make   func(f *forged, a *bundle.Artifact, subject, other bundle.OCIDescriptor)
		status string
		reason string
	}{
		"about another subject": {func(f *forged, a *bundle.Artifact, subject, other bundle.OCIDescriptor) {
			f.attach(a, f.bom(bundle.Image, other), subject)
		}, "present", "describes another subject"},
		"about nothing": {func(f *forged, a *bundle.Artifact, subject, _ bundle.OCIDescriptor) {
			f.attach(a, []byte(`{"bomFormat":"CycloneDX","specVersion":"1.6"}`), subject)
		}, "present", "describes another subject"},
		"tied to another subject": {func(f *forged, a *bundle.Artifact, subject, other bundle.OCIDescriptor) {
			doc := f.blob(f.bom(bundle.Image, subject), bundle.RoleMetadata)
			manifest, _, err := bundle.BuildReferrer(sbom.MediaType, doc.Digest, doc.Size, bundle.Descriptor{MediaType: other.MediaType, Digest: other.Digest, Size: other.Size})
			if err != nil {
				f.t.Fatal(err)
			}
			f.blob([]byte("{}"), bundle.RoleMetadata)
			f.attachBy(a, doc.Digest, manifest, subject.Digest)
		}, "present", "names another subject"},
		"another document": {func(f *forged, a *bundle.Artifact, subject, _ bundle.OCIDescriptor) {
			doc := f.blob(f.bom(bundle.Image, subject), bundle.RoleMetadata)
			decoy := f.blob([]byte(`{"bomFormat":"CycloneDX"}`), bundle.RoleMetadata)
			manifest, _, err := bundle.BuildReferrer(sbom.MediaType, decoy.Digest, decoy.Size, bundle.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size})
			if err != nil {
				f.t.Fatal(err)
			}
			f.blob([]byte("{}"), bundle.RoleMetadata)
			f.attachBy(a, doc.Digest, manifest, subject.Digest)
		}, "present", "holds another document"},
		"something beside the document": {func(f *forged, a *bundle.Artifact, subject, _ bundle.OCIDescriptor) {
			doc := f.bom(bundle.Image, subject)
			f.attach(a, doc, subject)
			r := f.refer(a, a.Root, sbom.MediaType, f.holds(sbom.MediaType, `{"more":1}`, string(doc)))
			a.SBOM[0].Referrer = new(r.Digest)
		}, "present", "holds more than the document"},
		"no SBOM at all": {func(f *forged, a *bundle.Artifact, subject, _ bundle.OCIDescriptor) {
			f.attach(a, []byte("Dear reader"), subject)
		}, "failed", "is malformed"},
		"a name twice": {func(f *forged, a *bundle.Artifact, subject, _ bundle.OCIDescriptor) {
			f.attach(a, []byte(`{"bomFormat":"CycloneDX","metadata":{},"Metadata":{}}`), subject)
		}, "failed", "is malformed"},
		"absent": {func(*forged, *bundle.Artifact, bundle.OCIDescriptor, bundle.OCIDescriptor) {}, "absent", "made by hand"},
		"failed": {func(_ *forged, a *bundle.Artifact, _, _ bundle.OCIDescriptor) {
			a.SBOM[0].Status, a.SBOM[0].Reason = bundle.SBOMFailed, "the scanner stopped"
		}, "failed", "the scanner stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			f := forge(t)
			other := f.platform(rootConfig, configType, layerType)
			root := f.platform(fullConfig, configType, layerType)
			a := f.image(root, root.Digest)
			c.make(f, a, root, other)
			got := artifactNamed(t, state(t, f.subject(f.seal())), a.Name)
			if len(got.SBOM) != 1 || got.SBOM[0].Status != c.status || got.SBOM[0].Bound || !strings.Contains(got.SBOM[0].Reason, c.reason) {
				t.Errorf("%+v, want %s, %q", got.SBOM, c.status, c.reason)
			}
			if len(got.Licences) > 0 {
				t.Errorf("licences %q of a document that is not bound", got.Licences)
			}
		})
	}
}

func TestSignaturesOfOthers(t *testing.T) {
	f := forge(t)
	root := f.platform(fullConfig, configType, layerType)
	a := f.image(root, root.Digest)
	for i, kind := range []string{"application/vnd.dev.sigstore.bundle.v0.3+json", "application/vnd.in-toto+json", "application/vnd.example+json"} {
		doc := f.blob([]byte{'{', '}', byte('0' + i)}, bundle.RoleMetadata)
		manifest, config, err := bundle.BuildReferrer(kind, doc.Digest, doc.Size, a.Root)
		if err != nil {
			t.Fatal(err)
		}
		f.blob(config, bundle.RoleMetadata)
		r := f.blob(manifest, bundle.RoleMetadata)
		a.Referrers = append(a.Referrers, bundle.Referrer{Subject: root.Digest, Descriptor: bundle.Descriptor{
			MediaType: bundle.TypeOCIManifest, Digest: r.Digest, Size: r.Size, ArtifactType: kind}})
	}
	want := []policy.Signature{
		{Subject: root.Digest.String(), Kind: "signature", MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json", Reason: "signatures of others are not verified here"},
		{Subject: root.Digest.String(), Kind: "attestation", MediaType: "application/vnd.in-toto+json", Reason: "signatures of others are not verified here"},
	}
	if d := cmp.Diff(want, artifactNamed(t, state(t, f.subject(f.seal())), a.Name).Signatures); d != "" {
		t.Errorf("signatures (-want +got)\n%s", d)
	}
}

// The SBOM of a large tree has a component for each file, and more bytes than
// anybody wants in memory.
func TestALargeSBOMIsRead(t *testing.T) {
	f := forge(t)
	root := f.platform(fullConfig, configType, layerType)
	a := f.image(root, root.Digest)
	doc := string(f.bom(bundle.Image, root))
	for _, member := range []string{`"bomFormat"`, `"components"`, `"metadata"`, `"serialNumber"`, `"specVersion"`} {
		doc = strings.Replace(doc, member, strings.Repeat(" ", 15<<20)+member, 1)
	}
	f.attach(a, []byte(doc), root)
	want := []policy.SBOM{{Subject: root.Digest.String(), Status: "present", Bound: true, Format: "CycloneDX 1.6", Tool: "scan 1", Components: 2, Packages: 2, Unlicensed: 1, Unknowns: 2}}
	if d := cmp.Diff(want, artifactNamed(t, state(t, f.subject(f.seal())), a.Name).SBOM); d != "" {
		t.Errorf("an SBOM of %d bytes (-want +got)\n%s", len(doc), d)
	}
}
