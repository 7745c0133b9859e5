package oci_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

const (
	layerType     = "application/vnd.oci.image.layer.v1.tar"
	foreignType   = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
	nonDistType   = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"
	schema1Signed = "application/vnd.docker.distribution.manifest.v1+prettyjws"
)

func descriptor(mediaType, extra string) string {
	return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":3%s}`, mediaType, cas.DigestOf([]byte("abc")), extra)
}

func manifestOf(layer string) string {
	return `{"schemaVersion":2,"mediaType":"` + bundle.TypeOCIManifest + `","config":` +
		descriptor("application/vnd.oci.empty.v1+json", "") + `,"layers":[` + layer + `]}`
}

func TestHostileManifests(t *testing.T) {
	var hits atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer canary.Close()
	urls := fmt.Sprintf(`,"urls":["%s/layer"]`, canary.URL)
	r := testkit.NewRegistry(t)
	pushImage(t, r, "app:1", testkit.ImageSpec{})
	for name, c := range map[string]struct{ mediaType, body, code string }{
		"no JSON":              {bundle.TypeOCIManifest, `{"schemaVersion":2,`, "oci/malformed"},
		"nothing":              {bundle.TypeOCIManifest, ``, "oci/malformed"},
		"not a manifest":       {"text/html", `<html>`, "oci/malformed"},
		"T-22 both in one":     {bundle.TypeOCIManifest, strings.TrimSuffix(manifestOf(descriptor(layerType, "")), "}") + `,"manifests":[]}`, "oci/malformed"},
		"T-22 an index too":    {bundle.TypeOCIIndex, `{"schemaVersion":2,"manifests":[],"layers":[]}`, "oci/malformed"},
		"T-22 other type":      {bundle.TypeOCIIndex, manifestOf(""), "oci/malformed"},
		"T-20 key twice":       {bundle.TypeOCIManifest, `{"schemaVersion":2,"schemaVersion":2}`, "oci/malformed"},
		"T-24 urls":            {bundle.TypeOCIManifest, manifestOf(descriptor(layerType, urls)), "source/foreign-layer"},
		"T-24 foreign":         {bundle.TypeOCIManifest, manifestOf(descriptor(foreignType, "")), "source/foreign-layer"},
		"T-24 not for passing": {bundle.TypeOCIManifest, manifestOf(descriptor(nonDistType, "")), "source/foreign-layer"},
		"T-24 urls of a child": {bundle.TypeOCIIndex, `{"schemaVersion":2,"manifests":[` + descriptor(bundle.TypeOCIManifest, urls) + `]}`, "source/foreign-layer"},
		"schema 1":             {schema1Signed, `{"schemaVersion":1}`, "source/schema1"},
		"child is missing":     {bundle.TypeOCIIndex, `{"schemaVersion":2,"manifests":[` + descriptor(bundle.TypeOCIManifest, "") + `]}`, "registry/not-found"},
	} {
		t.Run(name, func(t *testing.T) {
			r.SetFault(serve(c.mediaType, []byte(c.body)))
			store := newStore(t)
			_, err := newSource(t, r, new(watch)).Resolve(t.Context(), want(r, "app:odd"), store)
			text := wantCode(t, err, c.code)
			if c.code == "source/foreign-layer" && !strings.Contains(text, cas.DigestOf([]byte("abc")).String()) {
				t.Errorf("the layer is not named:\n%s", text)
			}
			testkit.CheckStore(t, store)
		})
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d requests followed urls", n)
	}
}

func TestHostileConfig(t *testing.T) {
	r := testkit.NewRegistry(t)
	for name, config := range map[string]string{"no JSON": "{", "no strings": `{"os":1}`} {
		t.Run(name, func(t *testing.T) {
			pushRaw(t, r, "app:1", bundle.TypeOCIManifest, [][]byte{[]byte(config)}, func(d []bundle.OCIDescriptor) bundle.OCI {
				d[0].MediaType = "application/vnd.oci.image.config.v1+json"
				return bundle.OCI{Config: &d[0], Layers: []bundle.OCIDescriptor{}}
			})
			_, err := newSource(t, r, new(watch)).Resolve(t.Context(), want(r, "app:1"), newStore(t))
			wantCode(t, err, "source/config-malformed")
		})
	}
}
