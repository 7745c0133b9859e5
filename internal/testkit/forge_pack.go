package testkit

import (
	"bytes"
	"context"
	"crypto/sha512"
	"maps"
	"slices"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// PackOf makes a pack of files and its index.
func PackOf(t testing.TB, files map[string][]byte) (pack []byte, x *bundle.PackIndex) {
	t.Helper()
	var b bytes.Buffer
	w := bundle.NewPackWriter(&b)
	x = &bundle.PackIndex{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content := files[path]
		offset, err := w.Add(path, content)
		if err != nil {
			t.Fatal(err)
		}
		x.Files = append(x.Files, bundle.PackedFile{
			File:   bundle.File{Path: path, Size: int64(len(content)), Digest: cas.DigestOf(content)},
			Offset: offset, SHA512: sha512.Sum512(content),
		})
	}
	size, err := w.Close()
	if err != nil {
		t.Fatal(err)
	}
	x.Pack, x.Size = cas.DigestOf(b.Bytes()), size
	return b.Bytes(), x
}

// AddPacked adds an artifact of some files and one pack, right or wrong, and
// seals the bundle again.
func (f *Forged) AddPacked(t testing.TB, kind bundle.Kind, name string, own []bundle.File, pack, index []byte) {
	t.Helper()
	packs := []bundle.Pack{{
		Title: "packs/0001.tar", Digest: cas.DigestOf(pack), Size: int64(len(pack)), Index: cas.DigestOf(index), IndexSize: int64(len(index)),
	}}
	tree, err := bundle.BuildPackedTree(kind, name, "1.0", own, packs)
	if err != nil {
		t.Fatal(err)
	}
	artifact := madeByHand(kind, name, tree.Root)
	for _, document := range append(tree.Documents, index) {
		artifact.Size += f.hold(document, bundle.RoleMetadata)
	}
	artifact.Size += f.hold(pack, bundle.RoleContent)
	for _, file := range own {
		artifact.Size += f.name(bundle.Blob{Digest: file.Digest, Size: file.Size, Role: bundle.RoleContent})
	}
	f.Manifest.Artifacts = append(f.Manifest.Artifacts, artifact)
	b, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Seal(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}
