package sinktest

import (
	"encoding/json/v2"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/testkit"
)

// attachIndex attaches an index to the artifact that was added last: of a
// report, and of an index with another report. Nothing but the referrer leads
// to what it lists, so that a destination that takes a referrer for a manifest
// with layers loses it.
func attachIndex(t testing.TB, f *testkit.Forged, seed string) {
	t.Helper()
	a := &attaching{t: t, f: f, artifact: &f.Manifest.Artifacts[len(f.Manifest.Artifacts)-1]}
	inner := a.index(nil, a.report(seed+", inner report"))
	root := a.artifact.Root
	outer := a.index(&bundle.OCIDescriptor{MediaType: root.MediaType, Digest: root.Digest, Size: root.Size}, a.report(seed+", outer report"), inner)
	a.artifact.Referrers = append(a.artifact.Referrers, bundle.Referrer{Subject: root.Digest, Descriptor: bundle.Descriptor{
		MediaType: outer.MediaType, Digest: outer.Digest, Size: outer.Size, ArtifactType: outer.ArtifactType,
	}})
}

const (
	typeReport  = "application/vnd.example.report.v1"
	typeReports = "application/vnd.example.reports.v1"
)

// attaching adds blobs to an artifact, each of them new.
type attaching struct {
	t        testing.TB
	f        *testkit.Forged
	artifact *bundle.Artifact
}

func (a *attaching) blob(b []byte, mediaType string) bundle.OCIDescriptor {
	size := testkit.AddBlob(a.f.Manifest, b, bundle.RoleMetadata)
	a.artifact.Size += size
	return bundle.OCIDescriptor{MediaType: mediaType, Digest: a.f.Content.Add(b), Size: size}
}

func (a *attaching) manifest(doc bundle.OCI) bundle.OCIDescriptor {
	a.t.Helper()
	b, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		a.t.Fatal(err)
	}
	d := a.blob(b, doc.MediaType)
	d.ArtifactType = doc.ArtifactType
	return d
}

func (a *attaching) report(text string) bundle.OCIDescriptor {
	a.t.Helper()
	config := a.blob([]byte(`{"about":"`+text+`"}`), typeReport+"+config")
	return a.manifest(bundle.OCI{
		SchemaVersion: 2, MediaType: bundle.TypeOCIManifest, ArtifactType: typeReport,
		Config: &config, Layers: []bundle.OCIDescriptor{a.blob([]byte(text), typeReport)},
	})
}

func (a *attaching) index(subject *bundle.OCIDescriptor, listed ...bundle.OCIDescriptor) bundle.OCIDescriptor {
	a.t.Helper()
	return a.manifest(bundle.OCI{SchemaVersion: 2, MediaType: bundle.TypeOCIIndex, ArtifactType: typeReports, Manifests: listed, Subject: subject})
}
