package facts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
)

const (
	fullConfig = `{"os":"linux","architecture":"amd64","config":{"User":"1000:1000","Entrypoint":["/bin/cutter"],"Cmd":["run"],
		"Env":["TOKEN=secret","PATH=/bin"],"ExposedPorts":{"8080/tcp":{},"443/tcp":{}},"Labels":{"b":"2","a":"1"}}}`
	rootConfig = `{"os":"linux","architecture":"arm64","variant":"v8","config":{}}`
)

// index is an image for two platforms with an attestation beside it.
func index(f *forged) (root, amd64, arm64 bundle.OCIDescriptor) {
	amd64 = f.platform(fullConfig, configType, layerType)
	arm64 = f.platform(rootConfig, configType, layerType)
	note := f.platform(`{"os":"unknown","architecture":"unknown"}`, configType, "application/vnd.in-toto+json")
	amd64.Platform = &bundle.OCIPlatform{OS: "linux", Architecture: "amd64"}
	note.Platform = &bundle.OCIPlatform{OS: "unknown", Architecture: "unknown"}
	root = f.document(bundle.OCI{SchemaVersion: 2, MediaType: bundle.TypeOCIIndex, Manifests: []bundle.OCIDescriptor{amd64, arm64, note}}, bundle.TypeOCIIndex)
	return root, amd64, arm64
}

func TestConfigsOfImages(t *testing.T) {
	f := forge(t)
	root, amd64, arm64 := index(f)
	f.image(root, amd64.Digest, arm64.Digest)
	a := artifactNamed(t, state(t, f.subject(f.seal())), "registry.example/tools/cutter")
	none := policy.ImageConfigUntrusted{Labels: []policy.Label{}}
	want := policy.Image{Status: "read", Configs: []policy.ImageConfig{
		{
			Platform: "linux/amd64", Digest: amd64.Digest.String(), Status: "read", User: "1000:1000",
			Entrypoint: []string{"/bin/cutter"}, Command: []string{"run"}, EnvNames: []string{"PATH", "TOKEN"}, ExposedPorts: []string{"443/tcp", "8080/tcp"},
			Untrusted: policy.ImageConfigUntrusted{Labels: []policy.Label{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}},
		},
		{
			Platform: "linux/arm64/v8", Digest: arm64.Digest.String(), Status: "read",
			Entrypoint: []string{}, Command: []string{}, EnvNames: []string{}, ExposedPorts: []string{}, Untrusted: none,
		},
	}}
	if d := cmp.Diff(want, a.Image); d != "" {
		t.Errorf("image (-want +got)\n%s", d)
	}
	if a.Inspection.Status != "not-applicable" || len(a.Inspection.Files) > 0 {
		t.Errorf("inspection %+v", a.Inspection)
	}
}

func TestConfigsThatCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct{ config, configType, reason string }{
		"no JSON":               {"{", configType, "is malformed"},
		"a name twice":          {`{"config":{"User":"1000","User":"root"}}`, configType, "is malformed"},
		"a name in two cases":   {`{"config":{"User":"1000","user":"root"}}`, configType, "is malformed"},
		"a config in two cases": {`{"config":{"User":"1000"},"Config":{"User":"root"}}`, configType, "is malformed"},
		"another form":          {`{"config":{"Env":"A=1"}}`, configType, "is malformed"},
		"another type":          {`{}`, "application/vnd.example+json", "not that of an image"},
		"too large":             {`{"x":"` + strings.Repeat("x", 5<<20) + `"}`, configType, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			f := forge(t)
			root := f.platform(c.config, c.configType, layerType)
			f.image(root, root.Digest)
			got := artifactNamed(t, state(t, f.subject(f.seal())), "registry.example/tools/cutter").Image
			if got.Status != "read" || len(got.Configs) != 1 || got.Configs[0].Status != "unread" || !strings.Contains(got.Configs[0].Reason, c.reason) {
				t.Errorf("%+v, want %q", got, c.reason)
			}
		})
	}
	t.Run("case does not matter", func(t *testing.T) {
		f := forge(t)
		root := f.platform(`{"Config":{"user":"1000"}}`, configType, layerType)
		f.image(root, root.Digest)
		got := artifactNamed(t, state(t, f.subject(f.seal())), "registry.example/tools/cutter").Image
		if len(got.Configs) != 1 || got.Configs[0].User != "1000" {
			t.Errorf("%+v", got)
		}
	})
}

// TestMissingMetadataIsAFact takes away every metadata blob of an image, a
// file set and an SBOM in turn: the facts are always complete and always say
// that something is missing.
func TestMissingMetadataIsAFact(t *testing.T) {
	f := forge(t)
	root, amd64, arm64 := index(f)
	image := f.image(root, amd64.Digest, arm64.Digest)
	f.attach(image, f.bom(bundle.Image, amd64), amd64)
	b := f.seal()
	whole := fmt.Sprintf("%+v", state(t, f.subject(b)))
	for _, blob := range f.Manifest.Blobs {
		if blob.Role != bundle.RoleMetadata {
			continue
		}
		in := state(t, f.subject(f.without(blob.Digest)))
		got := fmt.Sprintf("%+v", in)
		unused := len(f.Content[blob.Digest]) < 50 // configs that say nothing, of attestation, files and referrer
		if got == whole && !unused {
			t.Errorf("without %s nothing changed:\n%s", blob.Digest, f.Content[blob.Digest])
		}
		if got != whole && !strings.Contains(got, "is not there") {
			t.Errorf("without %s: %s", blob.Digest, got)
		}
	}
}

func TestIndicesWithoutEnd(t *testing.T) {
	f := forge(t)
	inner := f.platform(fullConfig, configType, layerType)
	for range 9 {
		inner = f.document(bundle.OCI{SchemaVersion: 2, MediaType: bundle.TypeOCIIndex, Manifests: []bundle.OCIDescriptor{inner}}, bundle.TypeOCIIndex)
	}
	f.image(inner, inner.Digest)
	got := artifactNamed(t, state(t, f.subject(f.seal())), "registry.example/tools/cutter").Image
	if got.Status != "unread" || got.Reason == "" {
		t.Errorf("%+v", got)
	}
}
