package s3

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// object is one object of an artifact.
type object struct {
	path    string // below the folder of the name
	size    int64  // bytes
	digest  bundle.Digest
	content []byte        // of what is made here; nil for what the gate holds
	pack    bundle.Digest // that it lies in; zero for a blob of its own
	offset  int64         // within the pack
}

// file is the object as a file of a tree.
func (o object) file() bundle.TreeFile {
	return bundle.TreeFile{File: bundle.File{Path: o.path, Size: o.size, Digest: o.digest}, Pack: o.pack, Offset: o.offset}
}

// tree is all that an artifact is at this destination, except SHA256SUMS.
type tree struct {
	name    gate.Name
	objects []object // sorted by path
	sums    []byte   // SHA256SUMS
}

func (t *tree) key(path string) string { return folder(t.name) + path }

// treeOf lays an artifact out. An artifact that cannot be is a
// destination/refused, or an s3/key.
func (s *Sink) treeOf(r *gate.Release, a bundle.Artifact) (*tree, error) {
	b := &builder{release: r, isTree: a.Kind.IsTree(), blobs: map[bundle.Digest]int64{}, titled: map[bundle.Digest]bool{}, at: map[string]object{}}
	if err := b.collect(a); err != nil {
		return nil, fmt.Errorf("%s %s: %w", a.Kind, a.Name, err)
	}
	t := &tree{name: r.Name(a)}
	if err := b.addRest(a, t.name); err != nil {
		return nil, fmt.Errorf("%s %s: %w", a.Kind, a.Name, err)
	}
	for _, o := range b.at {
		t.objects = append(t.objects, o)
	}
	slices.SortFunc(t.objects, func(a, b object) int { return strings.Compare(a.path, b.path) })
	t.sums = formatSums(t.objects)
	return t, s.checkNames(t)
}

// builder collects the objects of an artifact.
type builder struct {
	release *gate.Release
	isTree  bool
	blobs   map[bundle.Digest]int64 // every blob and its size
	titled  map[bundle.Digest]bool  // those that have a path
	at      map[string]object
	sums    *object // the tree's own file of that name, where it lies in a pack
}

// collect finds every blob, and the paths of those that have one. Of a tree with
// packs the files in them have paths, and the packs themselves are left out.
func (b *builder) collect(a bundle.Artifact) error {
	visit := func(d bundle.OCIDescriptor, _ bundle.Role) error {
		b.blobs[d.Digest] = d.Size
		return nil
	}
	if err := bundle.Walk(plain(a.Root), b.release.Document, visit); err != nil {
		return err
	}
	for _, r := range a.Referrers {
		if err := bundle.Walk(plain(r.Descriptor), b.release.Document, visit); err != nil {
			return err
		}
	}
	if !b.isTree {
		return nil
	}
	packs, err := bundle.EachTreeFile(a.Root, b.release.Document, b.addFile)
	for _, p := range packs {
		b.titled[p.Digest] = true
	}
	return err
}

func plain(d bundle.Descriptor) bundle.OCIDescriptor {
	return bundle.OCIDescriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size, ArtifactType: d.ArtifactType}
}

// addFile adds a file. One that is called as our list has no object of that
// name; it is kept by its digest.
func (b *builder) addFile(f bundle.TreeFile) error {
	if f.Path == "" {
		return unfit("%s has no path, so this is no tree of files", f.Digest)
	}
	if err := bundle.CheckPath(f.Path); err != nil {
		return unfit("%w", err)
	}
	if slices.Contains(strings.Split(f.Path, "/"), ownFolder) {
		return unfit("the path %q has a part of the name that Packhof keeps for itself", f.Path)
	}
	one := object{path: f.Path, size: f.Size, digest: f.Digest, pack: f.Pack, offset: f.Offset}
	if f.Path == sumsName {
		if f.Packed() {
			b.sums = &one
		}
		return nil
	}
	if other, ok := b.at[f.Path]; ok && other.digest != f.Digest {
		return unfit("the path %q is there twice, with other content", f.Path)
	}
	b.titled[f.Digest] = true
	b.at[f.Path] = one
	return nil
}

// addRest adds what has no path of its own, and the documents made here.
func (b *builder) addRest(a bundle.Artifact, name gate.Name) error {
	blobs := blobFolder
	if b.isTree {
		blobs = ownFolder + "/" + blobFolder
	}
	for digest, size := range b.blobs {
		if !b.titled[digest] {
			path := blobs + digest.Hex()
			b.at[path] = object{path: path, size: size, digest: digest}
		}
	}
	if b.sums != nil {
		b.sums.path = blobs + b.sums.digest.Hex()
		b.at[b.sums.path] = *b.sums
	}
	documents, err := documentsOf(a, name)
	if err != nil {
		return err
	}
	for path, content := range documents {
		b.at[path] = object{path: path, size: int64(len(content)), digest: cas.DigestOf(content), content: content}
	}
	return nil
}

// checkNames makes sure that every object can be called as it should be, on
// servers that keep objects as files too.
func (s *Sink) checkNames(t *tree) error {
	if len(t.sums) > maxSums {
		return unfit("the list of its %d objects would have more than %d bytes", len(t.objects), maxSums)
	}
	paths := make(map[string]bool, len(t.objects))
	for _, o := range t.objects {
		paths[o.path] = true
		if err := s.client.CheckKey(t.key(o.path)); err != nil {
			return err
		}
	}
	for _, o := range t.objects {
		for i := range len(o.path) {
			if o.path[i] == '/' && (paths[o.path[:i]] || o.path[:i] == sumsName) {
				return unfit("%q would be a file and a folder", o.path[:i])
			}
		}
	}
	return s.client.CheckKey(t.key(sumsName))
}

func unfit(format string, args ...any) error {
	return problem.New("destination/refused", format, args...).Hint("load it to another destination")
}
