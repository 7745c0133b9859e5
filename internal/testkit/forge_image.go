package testkit

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/sbom"
)

// AddImage adds an image to a forged bundle: one manifest, or with several
// architectures an index of one each. Every platform's manifest has an SBOM
// with one package, by a referrer.
func (f *Forged) AddImage(t testing.TB, name, version string, spec ImageSpec, archs ...string) {
	t.Helper()
	if err := f.addImage(name, version, spec, archs); err != nil {
		t.Fatalf("add the image %s: %v", name, err)
	}
}

// Reseal signs the manifest and lays the volume anew, after something was
// added.
func (f *Forged) Reseal(t testing.TB) {
	t.Helper()
	b, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Seal(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

func (f *Forged) addImage(name, version string, spec ImageSpec, archs []string) error {
	artifact := bundle.Artifact{
		Kind: bundle.Image, Name: name, Version: version,
		Origin: bundle.Origin{From: name + ":" + version, At: bundle.At(Noon()), Transport: bundle.TransportTLS, Verified: bundle.VerifiedLock},
	}
	forging := forgingImage{Forged: f, artifact: &artifact, own: map[cas.Digest]bool{}}
	if err := forging.root(spec, archs); err != nil {
		return err
	}
	f.Manifest.Artifacts = append(f.Manifest.Artifacts, artifact)
	return nil
}

// forgingImage is an image on its way into a bundle.
type forgingImage struct {
	*Forged
	artifact *bundle.Artifact
	own      map[cas.Digest]bool // blobs that count in its size
}

func (f *forgingImage) blob(b []byte, role bundle.Role) bundle.Descriptor {
	d := bundle.Descriptor{Digest: cas.DigestOf(b), Size: f.hold(b, role)}
	if !f.own[d.Digest] {
		f.own[d.Digest] = true
		f.artifact.Size += d.Size
	}
	return d
}

func (f *forgingImage) root(spec ImageSpec, archs []string) error {
	if len(archs) == 0 {
		image, err := Image(spec)
		if err != nil {
			return err
		}
		f.artifact.Platforms = []string{"linux/" + spec.arch()}
		f.artifact.Root, err = f.platform(image)
		return err
	}
	index, err := MultiArch(spec, archs...)
	if err != nil {
		return err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, child := range list.Manifests {
		image, err := index.Image(child.Digest)
		if err != nil {
			return err
		}
		f.artifact.Platforms = append(f.artifact.Platforms, child.Platform.String())
		if _, err := f.platform(image); err != nil {
			return err
		}
	}
	raw, err := index.RawManifest()
	if err != nil {
		return err
	}
	f.artifact.Root = f.blob(raw, bundle.RoleMetadata)
	f.artifact.Root.MediaType = bundle.TypeOCIIndex
	return nil
}

// platform takes in one image, and an SBOM for it.
func (f *forgingImage) platform(image v1.Image) (bundle.Descriptor, error) {
	config, err := image.RawConfigFile()
	if err != nil {
		return bundle.Descriptor{}, err
	}
	f.blob(config, bundle.RoleMetadata)
	layers, err := image.Layers()
	if err != nil {
		return bundle.Descriptor{}, err
	}
	for _, layer := range layers {
		r, err := layer.Compressed()
		if err != nil {
			return bundle.Descriptor{}, err
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return bundle.Descriptor{}, fmt.Errorf("read a layer: %w", err)
		}
		f.blob(b, bundle.RoleContent)
	}
	raw, err := image.RawManifest()
	if err != nil {
		return bundle.Descriptor{}, err
	}
	manifest := f.blob(raw, bundle.RoleMetadata)
	manifest.MediaType = bundle.TypeOCIManifest
	return manifest, f.describe(manifest)
}

// describe attaches an SBOM to a manifest.
func (f *forgingImage) describe(manifest bundle.Descriptor) error {
	document, err := sbom.Write(sbom.Request{
		Subject: sbom.Subject{Kind: string(bundle.Image), Name: f.artifact.Name, Version: f.artifact.Version, Digest: manifest.Digest.String(), MediaType: manifest.MediaType},
		Format:  sbom.RequestFormat, Form: sbom.FormImage, Time: Noon(), Dir: "/nowhere",
	}, sbom.Found{Components: []cyclonedx.Component{{
		BOMRef: "pkg:deb/debian/tool@1", Type: cyclonedx.ComponentTypeLibrary, Name: "tool", Version: "1",
		Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "MIT"}}},
	}}})
	if err != nil {
		return err
	}
	d := f.blob(document, bundle.RoleMetadata)
	raw, config, err := bundle.BuildReferrer(sbom.MediaType, d.Digest, d.Size, manifest)
	if err != nil {
		return err
	}
	f.blob(config, bundle.RoleMetadata)
	referrer := f.blob(raw, bundle.RoleMetadata)
	referrer.MediaType, referrer.ArtifactType = bundle.TypeOCIManifest, sbom.MediaType
	f.artifact.Referrers = append(f.artifact.Referrers, bundle.Referrer{Subject: manifest.Digest, Descriptor: referrer})
	f.artifact.SBOM = append(f.artifact.SBOM, bundle.SBOM{
		Subject: manifest.Digest, Status: bundle.SBOMPresent, Document: &d.Digest, Referrer: &referrer.Digest, Format: "CycloneDX 1.6", Tool: "made by hand",
	})
	return nil
}
