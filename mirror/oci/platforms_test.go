package oci_test

import (
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/mirror/oci"
)

func readOCI(t *testing.T, store *cas.Store, d bundle.Descriptor) *bundle.OCI {
	t.Helper()
	b, err := store.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := bundle.ParseOCI(b, d.MediaType)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func platformsOf(p mirror.Pinned) []string {
	var all []string
	for _, s := range p.Subjects {
		all = append(all, s.Platform)
	}
	return all
}

func TestPlatforms(t *testing.T) {
	r := testkit.NewRegistry(t)
	upstream := pushIndex(t, r, "app:1", attested(t, "x", "amd64", "arm64", "riscv64"))
	s := newSource(t, r, new(watch))
	all, _ := resolve(t, s, want(r, "app:1"))
	for name, c := range map[string]struct {
		platforms, runs []string
		manifests       int
	}{
		"none":         {nil, []string{"linux/amd64", "linux/arm64", "linux/riscv64"}, 6},
		"every one":    {[]string{"linux/riscv64", "linux/amd64", "linux/arm64/v8"}, []string{"linux/amd64", "linux/arm64", "linux/riscv64"}, 6},
		"two":          {[]string{"linux/riscv64", "linux/x86_64"}, []string{"linux/amd64", "linux/riscv64"}, 4},
		"one":          {[]string{"Linux/aarch64"}, []string{"linux/arm64"}, 0},
		"one, twice":   {[]string{"linux/arm64", "linux/arm64/v8"}, []string{"linux/arm64"}, 0},
		"another pair": {[]string{"linux/arm64", "linux/amd64"}, []string{"linux/amd64", "linux/arm64"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			p, store := resolve(t, s, want(r, "app:1", c.platforms...))
			if got := platformsOf(p); !slices.Equal(got, c.runs) {
				t.Errorf("runs on %v, want %v", got, c.runs)
			}
			doc := readOCI(t, store, p.Root)
			if len(doc.Manifests) != c.manifests {
				t.Errorf("%d manifests in the root, want %d", len(doc.Manifests), c.manifests)
			}
			if whole := c.manifests == 6; whole != (p.Derived == nil) || whole != (p.Root.Digest == upstream) {
				t.Errorf("root %s, derived %+v", p.Root.Digest, p.Derived)
			}
			if p.Derived != nil && (p.Derived.From != upstream || !slices.Equal(p.Derived.Platforms, c.runs)) {
				t.Errorf("derived %+v, want from %s for %v", p.Derived, upstream, c.runs)
			}
			if p.Bytes > all.Bytes || c.manifests < 6 && p.Bytes >= all.Bytes {
				t.Errorf("%d bytes of %d", p.Bytes, all.Bytes)
			}
		})
	}
}

func TestDerivedIndexDependsOnTheChoiceOnly(t *testing.T) {
	r := testkit.NewRegistry(t)
	pushIndex(t, r, "app:1", attested(t, "x", "amd64", "arm64", "riscv64"))
	s := newSource(t, r, new(watch))
	a, _ := resolve(t, s, want(r, "app:1", "linux/amd64", "linux/arm64"))
	b, store := resolve(t, s, want(r, "app:1", "linux/arm64/v8", "linux/amd64"))
	if a.Root != b.Root {
		t.Errorf("the same choice in another order: %s and %s", a.Root.Digest, b.Root.Digest)
	}
	doc := readOCI(t, store, b.Root)
	for i := range 2 {
		if got := doc.Manifests[2*i+1].Annotations["vnd.docker.reference.digest"]; got != doc.Manifests[2*i].Digest.String() {
			t.Errorf("attestation %d is for %s, want its image before it", i, got)
		}
	}
}

func TestDerivedIndexKeepsWhatUpstreamSays(t *testing.T) {
	r := testkit.NewRegistry(t)
	index := mutate.AppendManifests(empty.Index)
	for _, arch := range []string{"amd64", "arm64", "riscv64"} {
		image, err := testkit.Image(testkit.ImageSpec{Arch: arch})
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: arch, OSFeatures: []string{"sse4"}}, Annotations: map[string]string{"a": "<ü>"},
		}})
	}
	pushIndex(t, r, "app:1", index)
	p, store := resolve(t, newSource(t, r, new(watch)), want(r, "app:1", "linux/amd64", "linux/arm64"))
	b, err := store.ReadAll(p.Root.Digest, bundle.MaxOCIManifestSize)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"annotations":{"a":"<ü>"}`, `"os.features":["sse4"]`, `"schemaVersion":2`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("no %s in %s", part, b)
		}
	}
}

func TestPlatformThatIsNotThere(t *testing.T) {
	r := testkit.NewRegistry(t)
	pushIndex(t, r, "app:1", attested(t, "x", "amd64", "arm64"))
	pushImage(t, r, "app:single", testkit.ImageSpec{Arch: "arm64"})
	artifactAt := pushRaw(t, r, "app:package", bundle.TypeOCIManifest, [][]byte{[]byte("{}"), []byte("x")}, emptyConfig)
	s := newSource(t, r, new(watch))
	for name, c := range map[string]struct{ from, there string }{
		"index":    {"app:1", "there: linux/amd64, linux/arm64"},
		"single":   {"app:single", "there: linux/arm64"},
		"artifact": {"app@" + artifactAt.String(), "there: nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Resolve(t.Context(), want(r, c.from, "linux/amd64", "windows/amd64"), newStore(t))
			text := wantCode(t, err, "source/platform-missing")
			if !strings.Contains(text, "windows/amd64") || !strings.Contains(text, c.there) {
				t.Errorf("not said what is missing and what is there:\n%s", text)
			}
		})
	}
	_, err := s.Resolve(t.Context(), want(r, "app:1", "amd64"), newStore(t))
	wantCode(t, err, "source/platform-malformed")
	p, _ := resolve(t, s, want(r, "app:single", "linux/arm64/v8"))
	if p.Derived != nil {
		t.Errorf("a single manifest was derived from %+v", p.Derived)
	}
}

func TestIndexWithoutPlatformsAsksTheConfigs(t *testing.T) {
	r := testkit.NewRegistry(t)
	bare := mutate.AppendManifests(empty.Index)
	for _, arch := range []string{"amd64", "arm64"} {
		image, err := testkit.Image(testkit.ImageSpec{Arch: arch})
		if err != nil {
			t.Fatal(err)
		}
		bare = mutate.AppendManifests(bare, mutate.IndexAddendum{Add: image})
	}
	pushIndex(t, r, "app:1", bare)
	p, _ := resolve(t, newSource(t, r, new(watch)), want(r, "app:1"))
	if got := platformsOf(p); !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("subjects for %v", got)
	}
}

func TestTagThatMovedBesideADigestIsNoted(t *testing.T) {
	r := testkit.NewRegistry(t)
	old := pushImage(t, r, "app:1", testkit.ImageSpec{Seed: "old"})
	var notes []oci.Note
	s := newSource(t, r, new(watch), oci.WithNotes(func(n oci.Note) { notes = append(notes, n) }))
	both := want(r, "app:1@"+old.String())
	resolve(t, s, both)
	if len(notes) != 0 {
		t.Errorf("noted %v while the tag still points there", notes)
	}
	now := pushImage(t, r, "app:1", testkit.ImageSpec{Seed: "new", PayloadSize: 10})
	p, store := resolve(t, s, both)
	if p.Root.Digest != old {
		t.Errorf("root %s, want the digest that was written, %s", p.Root.Digest, old)
	}
	if len(notes) != 1 || !strings.Contains(strings.Join(notes[0].Evidence, " "), now.String()) {
		t.Errorf("notes %v, want one that names %s", notes, now)
	}
	if err := s.Fetch(t.Context(), p, store); err != nil {
		t.Errorf("fetch by digest: %v", err)
	}
	resolve(t, s, want(r, "app:gone@"+old.String()))
	if len(notes) != 2 || !strings.Contains(notes[1].Text, "gone") {
		t.Errorf("notes %v, want a second one of a tag that is gone", notes)
	}
}
