package oci

import (
	"bytes"
	"errors"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

func TestNormalise(t *testing.T) {
	for in, want := range map[string]string{
		"linux/amd64": "linux/amd64", "Linux/X86_64": "linux/amd64", "linux/amd64/v1": "linux/amd64", "linux/amd64/v3": "linux/amd64/v3",
		"linux/arm64/v8": "linux/arm64", "linux/aarch64": "linux/arm64", "linux/arm": "linux/arm/v7", "linux/arm/6": "linux/arm/v6",
		"linux/armhf": "linux/arm/v7", "linux/i686": "linux/386", "macos/arm64": "darwin/arm64", "windows/amd64": "windows/amd64",
	} {
		got, err := parsePlatforms([]string{in})
		if err != nil || got[0].String() != want {
			t.Errorf("%s: %v, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "linux", "linux/", "/amd64", "linux/amd64/", "a/b/c/d", "linux/amd 64", "linux,amd64"} {
		if got, err := parsePlatforms([]string{in}); err == nil {
			t.Errorf("%q: %v, want an error", in, got)
		}
	}
}

// FuzzChoose takes any index that parses, and whatever it chooses must parse
// again, hold nothing that was not there, and be the same a second time.
func FuzzChoose(f *testing.F) {
	d := cas.DigestOf(nil).String()
	f.Add([]byte(`{"schemaVersion":2,"manifests":[`+
		`{"mediaType":"`+bundle.TypeOCIManifest+`","digest":"`+d+`","size":1,"platform":{"os":"linux","architecture":"amd64"}},`+
		`{"mediaType":"`+bundle.TypeOCIManifest+`","digest":"`+d+`","size":1,"platform":{"os":"linux","architecture":"arm64"},"x":1e3},`+
		`{"mediaType":"`+bundle.TypeOCIManifest+`","digest":"`+d+`","size":1,"platform":{"os":"linux","architecture":"riscv64"}}]}`), "linux/amd64", "linux/arm64/v8")
	f.Fuzz(func(t *testing.T, b []byte, first, second string) {
		doc, err := bundle.ParseOCI(b, bundle.TypeOCIIndex)
		if err != nil {
			return
		}
		wanted, err := parsePlatforms([]string{first, second})
		if err != nil {
			return
		}
		upstream := bundle.OCIDescriptor{MediaType: bundle.TypeOCIIndex, Digest: cas.DigestOf(b), Size: int64(len(b))}
		c, err := chooseFrom(b, doc, upstream, wanted, "it")
		if err != nil || c.document == nil {
			return
		}
		some, err := bundle.ParseOCI(c.document, bundle.TypeOCIIndex)
		if err != nil {
			t.Fatalf("the derived index does not parse: %v\n%s", err, c.document)
		}
		if len(some.Manifests) == 0 || len(some.Manifests) > len(doc.Manifests) {
			t.Errorf("%d manifests of %d", len(some.Manifests), len(doc.Manifests))
		}
		again, err := chooseFrom(b, doc, upstream, wanted, "it")
		if err != nil || !bytes.Equal(again.document, c.document) {
			t.Errorf("a second time %v: %s, first %s", err, again.document, c.document)
		}
	})
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"os":"linux","architecture":"arm64","variant":"v8","rootfs":{}}`))
	bad := errors.New("bad")
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parseConfig(b, func(error) error { return bad })
		if err == nil && p != normalise(p) {
			t.Errorf("%+v is not normal", p)
		}
	})
}
