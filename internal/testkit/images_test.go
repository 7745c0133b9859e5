package testkit

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func digestOf(t *testing.T, thing interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := thing.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestImageDependsOnItsSpecOnly(t *testing.T) {
	for _, c := range []compression.Compression{"", compression.GZip, compression.ZStd, compression.None} {
		spec := ImageSpec{Seed: "a", PayloadSize: 3_000_000, Compression: c}
		first, second := mustImage(t, spec), mustImage(t, spec)
		if a, b := digestOf(t, first), digestOf(t, second); a != b {
			t.Errorf("compression %q: made twice: %s and %s", c, a, b)
		}
		if err := validate.Image(first, validate.Fast); err != nil {
			t.Errorf("compression %q: %v", c, err)
		}
		checkLayers(t, first)
		spec.Seed = "b"
		if digestOf(t, first) == digestOf(t, mustImage(t, spec)) {
			t.Errorf("compression %q: two seeds, one image", c)
		}
	}
}

// checkLayers compares the digests that an image states with its layers' bytes,
// which go-containerregistry's own validation does for gzip alone.
func checkLayers(t *testing.T, image v1.Image) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for i, layer := range layers {
		for _, c := range []struct {
			what string
			want func() (v1.Hash, error)
			open func() (io.ReadCloser, error)
		}{
			{"digest", layer.Digest, layer.Compressed},
			{"diff id", layer.DiffID, layer.Uncompressed},
		} {
			want, err := c.want()
			if err != nil {
				t.Fatal(err)
			}
			stream, err := c.open()
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := v1.SHA256(stream)
			if err := errors.Join(err, stream.Close()); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("layer %d: %s %s, want %s", i, c.what, want, got)
			}
		}
	}
}

// The digest stands here so that a change of the kit, of a library or of the
// compressor that alters every image is noticed where it happens.
func TestImageDigestStaysTheSame(t *testing.T) {
	image := mustImage(t, ImageSpec{Seed: "pinned", PayloadSize: 1000, Compression: compression.None})
	const want = "sha256:959079c7c0f922f0e3b883827901f974156cc0ac75f121f17461287bf1fb3fb3"
	if got := digestOf(t, image); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestImageMediaTypesAreOCI(t *testing.T) {
	for c, want := range map[compression.Compression]types.MediaType{
		compression.GZip: types.OCILayer,
		compression.ZStd: types.OCILayerZStd,
		compression.None: types.OCIUncompressedLayer,
	} {
		manifest, err := mustImage(t, ImageSpec{Compression: c}).Manifest()
		if err != nil {
			t.Fatal(err)
		}
		got := []types.MediaType{manifest.MediaType, manifest.Config.MediaType, manifest.Layers[0].MediaType}
		if diff := cmp.Diff([]types.MediaType{types.OCIManifestSchema1, types.OCIConfigJSON, want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c, diff)
		}
	}
	if _, err := Image(ImageSpec{Compression: "lzma"}); err == nil {
		t.Error("an unknown compression was accepted")
	}
}

// unpack reads the flattened file system of an image.
func unpack(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	stream := mutate.Extract(image)
	defer stream.Close()
	files := map[string][]byte{}
	for archive := tar.NewReader(stream); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func TestImageContent(t *testing.T) {
	image := mustImage(t, ImageSpec{
		Seed: "content", PayloadSize: 5000,
		Packages: []DebPackage{{"openssl", "3.0.15-1~deb12u1"}},
		Files:    []File{{Path: "srv/note", Data: []byte("hello")}},
	})
	files := unpack(t, image)
	want := []string{"etc/os-release", "opt/payload.bin", "srv/note", "usr/share/doc/openssl/copyright", "var/lib/dpkg/status"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(files["var/lib/dpkg/status"]), "Package: openssl\nStatus: install ok installed\n") {
		t.Errorf("dpkg status:\n%s", files["var/lib/dpkg/status"])
	}
	if want := Bytes("content/amd64", 5000); !bytes.Equal(files["opt/payload.bin"], want) {
		t.Error("the payload is not that of its seed")
	}
}

func TestMultiArchSharesAllButThePayload(t *testing.T) {
	index, err := MultiArch(ImageSpec{Seed: "multi", PayloadSize: 2000, Files: []File{{Path: "a", Data: []byte("b")}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var archs []string
	seen := map[string]int{}
	for _, m := range manifest.Manifests {
		archs = append(archs, m.Platform.Architecture)
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := image.Layers()
		if err != nil {
			t.Fatal(err)
		}
		for _, layer := range layers {
			seen[digestOf(t, layer)]++
		}
	}
	if diff := cmp.Diff([]string{"amd64", "arm64"}, archs); diff != "" {
		t.Errorf("architectures (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 1, 2, 2}, slices.Sorted(maps.Values(seen))); diff != "" {
		t.Errorf("in how many images each layer is (-want +got):\n%s", diff)
	}
}

func TestBaseIsShared(t *testing.T) {
	base, err := Layer(RootFS(BasePackages()), compression.ZStd)
	if err != nil {
		t.Fatal(err)
	}
	image := mustImage(t, ImageSpec{Base: []v1.Layer{base}, Files: []File{{Path: "a"}}})
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 2 || digestOf(t, layers[0]) != digestOf(t, base) {
		t.Errorf("%d layers, the lowest %s; want 2 on top of %s", len(layers), digestOf(t, layers[0]), digestOf(t, base))
	}
}

func TestLayerRefusesUncleanPaths(t *testing.T) {
	for _, path := range []string{"/etc/passwd", "a/../b", "a//b", ""} {
		if _, err := Layer([]File{{Path: path}}, ""); err == nil {
			t.Errorf("path %q was accepted", path)
		}
	}
}
