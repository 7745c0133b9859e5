package registry

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

func TestReferrersOfReferrersComeLater(t *testing.T) {
	d := func(s string) bundle.Digest { return cas.DigestOf([]byte(s)) }
	of := func(name, subject string) bundle.Referrer {
		return bundle.Referrer{Subject: d(subject), Descriptor: bundle.Descriptor{Digest: d(name)}}
	}
	signature, sbom, scan, seal := of("signature", "sbom"), of("sbom", "root"), of("scan", "root"), of("seal", "signature")
	got := inOrder([]bundle.Referrer{seal, signature, sbom, scan})
	if diff := cmp.Diff([]bundle.Referrer{sbom, scan, signature, seal}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	circle := []bundle.Referrer{of("a", "b"), of("b", "a")}
	if got := inOrder(circle); len(got) != 2 {
		t.Errorf("of a circle: %v", got)
	}
}

func TestFallbackIndices(t *testing.T) {
	for _, bad := range []string{"", "[]", `{"schemaVersion":1}`, `{"schemaVersion":2,"mediaType":"text/plain"}`, `{"schemaVersion":2,"schemaVersion":2}`, `{"schemaVersion":2,"manifests":{}}`} {
		if _, err := parseFallback([]byte(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	if _, err := parseFallback(append([]byte(`{"schemaVersion":2}`), bytes.Repeat([]byte(" "), bundle.MaxOCIManifestSize)...)); err == nil {
		t.Error("more than a manifest may have was taken")
	}
}

// Whatever stands under a fallback tag, adding to it keeps every entry and
// gives an index that can be read again.
func FuzzFallback(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"digest":"sha256:00"},7],"annotations":{"a":"b"}}`))
	f.Add([]byte(`{"schemaVersion":2,"manifests":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		index, err := parseFallback(b)
		if err != nil {
			return
		}
		before := len(index.Manifests)
		ours := attached{OCIDescriptor: bundle.OCIDescriptor{MediaType: bundle.TypeOCIManifest, Digest: cas.DigestOf(b), Size: 1}}
		if changed, err := index.add([]attached{ours}); err != nil || !changed && len(index.Manifests) != before {
			t.Fatalf("add: %v, %v", changed, err)
		}
		text, err := json.Marshal(index, json.Deterministic(true))
		if err != nil {
			t.Fatalf("write: %v", err)
		}
		again, err := parseFallback(text)
		if err != nil {
			t.Fatalf("read again: %v\n%s", err, text)
		}
		compact := func(v []jsontext.Value) (all []string) {
			for _, x := range v {
				if err := x.Compact(); err != nil {
					t.Fatal(err)
				}
				all = append(all, string(x))
			}
			return all
		}
		if diff := cmp.Diff(compact(index.Manifests), compact(again.Manifests)); diff != "" {
			t.Errorf("entries (-before +after):\n%s", diff)
		}
	})
}
