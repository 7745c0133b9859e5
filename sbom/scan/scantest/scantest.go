// Package scantest makes artifacts for tests of scanning: real OCI image
// layouts and file trees, small, and without anything of the network. It is
// for tests only.
package scantest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/packhof/packhof/sbom"
)

// Time is the time of every request made here.
func Time() time.Time { return time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC) }

// Debian returns a root file system with two Debian packages, one Python
// distribution and the Go program given, which may be nil.
func Debian(program []byte) map[string][]byte {
	root := map[string][]byte{
		"etc/os-release": []byte("ID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
		"var/lib/dpkg/status": []byte("Package: crane-control\nStatus: install ok installed\nMaintainer: Yard <yard@example.test>\n" +
			"Architecture: amd64\nVersion: 1.2-3\nDepends: libhook2 (>= 2.0)\nDescription: moves things\n\n" +
			"Package: libhook2\nStatus: install ok installed\nMaintainer: Yard <yard@example.test>\n" +
			"Architecture: amd64\nVersion: 2.4-1\nDescription: holds things\n"),
		"usr/share/doc/libhook2/copyright":                            []byte("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\nCopyright: 2020 Yard\nLicense: Apache-2.0\n"),
		"usr/lib/python3/dist-packages/pallet-0.9.dist-info/METADATA": []byte("Metadata-Version: 2.1\nName: pallet\nVersion: 0.9\nLicense: MIT\n"),
		"usr/lib/python3/dist-packages/pallet-0.9.dist-info/RECORD":   []byte("pallet/__init__.py,,\n"),
	}
	if program != nil {
		root["usr/bin/tiny"] = program
	}
	return root
}

// GoProgram builds a program of the module example.test/tiny from nothing but
// the standard library.
func GoProgram(t testing.TB) []byte {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), []byte("module example.test/tiny\n\ngo 1.22\n"))
	write(t, filepath.Join(dir, "main.go"), []byte("package main\n\nfunc main() { println(\"tiny\") }\n"))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "tiny", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	program, err := os.ReadFile(filepath.Join(dir, "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// Tar packs files, sorted by name, all without a time.
func Tar(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(files[name]))}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// Gzip and Zstd make a layer of a tar.
func Gzip(t testing.TB, content []byte) v1.Layer {
	return layer(t, content, tarball.WithCompression(compression.GZip), tarball.WithMediaType(types.OCILayer))
}

// Zstd makes a layer as Gzip does.
func Zstd(t testing.TB, content []byte) v1.Layer {
	return layer(t, content, tarball.WithCompression(compression.ZStd), tarball.WithMediaType(types.OCILayerZStd))
}

func layer(t testing.TB, content []byte, options ...tarball.LayerOption) v1.Layer {
	t.Helper()
	made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, options...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Image writes an image of linux/amd64 as an OCI layout into a new directory
// and returns the request to scan it.
func Image(t testing.TB, layers ...v1.Layer) sbom.Request {
	t.Helper()
	base, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{
		OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(base, types.OCIConfigJSON), layers...)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "layout")
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(image); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return sbom.Request{
		Format: sbom.RequestFormat,
		Form:   sbom.FormImage,
		Subject: sbom.Subject{
			Kind: "image", Name: "registry.example.test/yard/crane", Version: "1.2", Digest: digest.String(),
			MediaType: string(types.OCIManifestSchema1), Platform: "linux/amd64",
		},
		Time: Time(),
		Dir:  dir,
	}
}

// Tree writes files into a new directory and returns the request to scan it
// as an artifact of the given kind.
func Tree(t testing.TB, kind string, files map[string][]byte) sbom.Request {
	t.Helper()
	request := sbom.Request{
		Format: sbom.RequestFormat,
		Form:   sbom.FormTree,
		Subject: sbom.Subject{
			Kind: kind, Name: "yard/grabber", Version: "rev-7", Digest: "sha256:" + sum256([]byte(kind)),
			MediaType: "application/vnd.oci.image.manifest.v1+json",
		},
		Time: Time(),
		Dir:  filepath.Join(t.TempDir(), "tree"),
	}
	for name, content := range files {
		write(t, filepath.Join(request.Dir, name), content)
		sum512 := sha512.Sum512(content)
		request.Files = append(request.Files, sbom.File{
			Path: name, Size: int64(len(content)), SHA256: sum256(content), SHA512: hex.EncodeToString(sum512[:]),
		})
	}
	return request
}

func sum256(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Bomb returns a gzip layer of a few kilobytes for every 64 MiB of the file
// of zeros in it. Its diff id is wrong, which nothing here looks at.
func Bomb(t testing.TB, mebibytes int64) v1.Layer {
	t.Helper()
	var head bytes.Buffer
	w := tar.NewWriter(&head)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Mode: 0o644, Size: mebibytes << 20}); err != nil {
		t.Fatal(err)
	}
	const part = 64
	packed := gzipped(t, head.Bytes())
	zeros := gzipped(t, make([]byte, part<<20))
	for range mebibytes / part {
		packed = append(packed, zeros...) // members of one gzip file
	}
	packed = append(packed, gzipped(t, make([]byte, 1024))...)
	return static.NewLayer(packed, types.OCILayer)
}

func gzipped(t testing.TB, content []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
