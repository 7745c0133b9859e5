package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// TreeFile is a file of a tree, wherever its bytes lie: a blob of its own, or a
// run of bytes of a pack.
type TreeFile struct {
	File
	Pack   Digest // zero for a blob of its own
	Offset int64  // within the pack
	SHA512 SHA512 // of a file in a pack
}

// Packed tells whether the file lies in a pack.
func (f TreeFile) Packed() bool { return !f.Pack.IsZero() }

// Blob is the blob in which the bytes lie.
func (f TreeFile) Blob() Digest {
	if f.Packed() {
		return f.Pack
	}
	return f.Digest
}

// Listing is what the manifests of a tree say of its files.
type Listing struct {
	Files []TreeFile // in the order of manifests and layers
	Packs []Pack     // in the order of their titles
}

// IsPackIndex tells whether a layer is the index of a pack.
func IsPackIndex(layer OCIDescriptor) bool { return layer.MediaType == TypePackIndex }

// ReadLimit is how large a document may be of those that ListTree reads.
func ReadLimit(d OCIDescriptor) int64 {
	if IsPackIndex(d) {
		return MaxPackIndex
	}
	return MaxOCIManifestSize
}

// layerRole is the role of a layer in a bundle. An index too large to be one is
// content like anything else.
func layerRole(layer OCIDescriptor) Role {
	if IsPackIndex(layer) && layer.Size <= MaxPackIndex {
		return RoleMetadata
	}
	return RoleContent
}

// EachTreeFile visits the files of a tree, whether they lie in packs or not, and
// gives its packs. read brings manifests and the indices of packs, verified and
// within ReadLimit; one of them is held at a time. It refuses a tree whose packs
// and indices do not fit each other; what lies in the packs it does not look at.
func EachTreeFile(root Descriptor, read func(OCIDescriptor) ([]byte, error), visit func(TreeFile) error) ([]Pack, error) {
	l := &lister{read: read, visit: visit, packs: map[Digest]*Pack{}}
	top := OCIDescriptor{MediaType: root.MediaType, Digest: root.Digest, Size: root.Size}
	err := Walk(top, l.manifest, func(OCIDescriptor, Role) error { return nil })
	if err != nil {
		return nil, err
	}
	return l.finish()
}

// ListTree is EachTreeFile for those who need all files at once.
func ListTree(root Descriptor, read func(OCIDescriptor) ([]byte, error)) (*Listing, error) {
	list := &Listing{}
	packs, err := EachTreeFile(root, read, func(f TreeFile) error {
		list.Files = append(list.Files, f)
		return nil
	})
	list.Packs = packs
	return list, err
}

// lister collects what is to be read after the manifests.
type lister struct {
	read    func(OCIDescriptor) ([]byte, error)
	visit   func(TreeFile) error
	packs   map[Digest]*Pack
	order   []*Pack
	indices []OCIDescriptor
	own     []File
}

func (l *lister) manifest(d OCIDescriptor) ([]byte, error) {
	b, err := l.read(d)
	if err != nil || IsIndex(d.MediaType) {
		return b, err
	}
	doc, err := ParseOCI(b, d.MediaType)
	if err != nil {
		return nil, err
	}
	for _, layer := range doc.Layers {
		if err := l.layer(layer); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (l *lister) layer(layer OCIDescriptor) error {
	title, titled := layer.Annotations[TitleAnnotation]
	switch {
	case layer.MediaType == TypePack:
		if l.packs[layer.Digest] != nil {
			return unfitting("the pack %s is there twice", layer.Digest.Short())
		}
		p := &Pack{Title: title, Digest: layer.Digest, Size: layer.Size}
		l.packs[layer.Digest] = p
		l.order = append(l.order, p)
	case IsPackIndex(layer):
		if titled {
			return unfitting("the index %s has the path of a file", layer.Digest.Short())
		}
		l.indices = append(l.indices, layer)
	default:
		l.own = append(l.own, File{Path: title, Size: layer.Size, Digest: layer.Digest})
	}
	return nil
}

// finish visits the files: what has a layer of its own first. Paths of a tree
// with packs are there once.
func (l *lister) finish() ([]Pack, error) {
	seen := map[string]bool{}
	once := func(f TreeFile) error {
		if len(l.order) > 0 {
			if seen[f.Path] {
				return unfitting("the path %q is there twice", f.Path)
			}
			seen[f.Path] = true
		}
		if len(seen) > MaxEntries {
			return problem.New("oci/too-many-entries", "the artifact names more than %d manifests and files", MaxEntries).
				Hint("have its sender split it into several artifacts")
		}
		return l.visit(f)
	}
	for _, f := range l.own {
		if err := once(TreeFile{File: f}); err != nil {
			return nil, err
		}
	}
	for _, d := range l.indices {
		if err := l.index(d, once); err != nil {
			return nil, err
		}
	}
	packs := make([]Pack, len(l.order))
	for i, p := range l.order {
		if packs[i] = *p; p.Index.IsZero() {
			return nil, unfitting("the pack %s has no index", p.Digest.Short())
		}
		if seen[p.Title] || CheckPath(p.Title) != nil {
			return nil, unfitting("the pack %s has no path of its own", p.Digest.Short())
		}
		seen[p.Title] = true
	}
	return packs, nil
}

func (l *lister) index(d OCIDescriptor, visit func(TreeFile) error) error {
	x, err := readIndex(d, l.read)
	if err != nil {
		return err
	}
	p := l.packs[x.Pack]
	if p == nil || p.Size != x.Size || !p.Index.IsZero() {
		return unfitting("the index %s is that of no pack of this tree, or a second one", d.Digest.Short())
	}
	p.Index, p.IndexSize = d.Digest, d.Size
	for i := range x.Files {
		f := &x.Files[i]
		if err := visit(TreeFile{File: f.File, Pack: x.Pack, Offset: f.Offset, SHA512: f.SHA512}); err != nil {
			return err
		}
	}
	return nil
}

func readIndex(d OCIDescriptor, read func(OCIDescriptor) ([]byte, error)) (*PackIndex, error) {
	if d.Size > MaxPackIndex {
		return nil, badIndex("it has %d bytes, more than the %d allowed", d.Size, MaxPackIndex)
	}
	b, err := read(d)
	if err != nil {
		return nil, err
	}
	return ParsePackIndex(b)
}

// ReadPackIndex reads the index of a pack that ListTree gave.
func ReadPackIndex(p Pack, read func(OCIDescriptor) ([]byte, error)) (*PackIndex, error) {
	return readIndex(OCIDescriptor{MediaType: TypePackIndex, Digest: p.Index, Size: p.IndexSize}, read)
}

func unfitting(format string, args ...any) error {
	return problem.New("bundle/bad-pack", "packs and their indices do not fit: "+format, args...).Hint("have the bundle exported again")
}

// checkPacks makes sure that the packs of a tree which are all here hold what
// their indices say.
func checkPacks(ctx context.Context, a *Artifact, content Content) error {
	read := documentsOf(content)
	packs, err := EachTreeFile(a.Root, read, func(TreeFile) error { return nil })
	if err != nil {
		return err
	}
	for _, p := range packs {
		if there, err := content.Has(p.Digest); err != nil {
			return err
		} else if !there {
			continue
		}
		x, err := ReadPackIndex(p, read)
		if err != nil {
			return err
		}
		if err := checkPackIn(ctx, content, x); err != nil {
			return fmt.Errorf("%s: %w", p.Title, err)
		}
	}
	return nil
}

// documentsOf reads what ListTree asks for.
func documentsOf(content Content) func(OCIDescriptor) ([]byte, error) {
	return func(d OCIDescriptor) ([]byte, error) { return readBlob(content, d.Digest, d.Size, ReadLimit(d)) }
}

func checkPackIn(ctx context.Context, content Content, x *PackIndex) (err error) {
	r, err := content.Open(x.Pack)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return checkPackStream(ctx, io.LimitReader(r, x.Size), x)
}

// OpenTreeFile reads a file of the bundle, as the package's OpenTreeFile does.
func (b *Bundle) OpenTreeFile(f TreeFile) (io.ReadCloser, error) {
	blob, ok := b.manifest.Blob(f.Blob())
	if !ok || f.Packed() && f.Offset+f.Size > blob.Size {
		return nil, fmt.Errorf("blob %s is not in the manifest: %w", f.Blob(), fs.ErrNotExist)
	}
	return OpenTreeFile(b.content, f)
}

// Document reads a manifest or the index of a pack, for EachTreeFile.
func (b *Bundle) Document(d OCIDescriptor) ([]byte, error) { return b.ReadAll(d.Digest, ReadLimit(d)) }

// OpenTreeFile reads a file of a tree. Reading to io.EOF proves it; wrong bytes
// end with a cas.CorruptError.
func OpenTreeFile(content Content, f TreeFile) (io.ReadCloser, error) {
	if !f.Packed() {
		return openBlob(content, f.Digest, f.Size)
	}
	pack, err := content.Open(f.Pack)
	if err != nil {
		return nil, err
	}
	section, err := sectionOf(pack, f.Offset, f.Size)
	if err != nil {
		return nil, errors.Join(err, pack.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{cas.Verify(section, f.Digest, f.Size, fmt.Sprintf("file %q in pack %s", f.Path, f.Pack.Short())), pack}, nil
}

// ReadTreeFile reads a file that lies in a pack, and so is small, and proves it.
func ReadTreeFile(content Content, f TreeFile) (b []byte, err error) {
	if !f.Packed() || f.Size >= PackBelow {
		return nil, fmt.Errorf("the file %q of %d bytes lies in no pack", f.Path, f.Size)
	}
	r, err := OpenTreeFile(content, f)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return io.ReadAll(r)
}

// sectionOf goes to a run of bytes directly where the content lets it, and else
// reads its way there.
func sectionOf(r io.Reader, offset, size int64) (io.Reader, error) {
	if at, ok := r.(io.ReaderAt); ok {
		return io.NewSectionReader(at, offset, size), nil
	}
	_, err := io.CopyN(io.Discard, r, offset)
	return io.LimitReader(r, size), err
}
