package registry

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// closure is everything that belongs to an artifact, in the order in which a
// registry takes it: blobs, then manifests, each after what it needs.
type closure struct {
	blobs     []bundle.OCIDescriptor // large ones first
	manifests []bundle.OCIDescriptor // children before parents: those of the root, then those of its referrers
	referrers []attached             // subjects before those that refer to them
}

// attached is a referrer with what a list of referrers says of it.
type attached struct {
	bundle.OCIDescriptor
	subject bundle.Digest
}

const maxDepth = 8 // of indices, as bundle allows

// closureOf reads the manifests of an artifact from the gate's store.
func closureOf(r *gate.Release, a bundle.Artifact) (*closure, error) {
	w := walk{release: r, seen: map[bundle.Digest]bool{}}
	if err := w.manifest(plain(a.Root), 0); err != nil {
		return nil, err
	}
	c := &closure{}
	for _, referrer := range inOrder(a.Referrers) {
		at, err := w.referrer(referrer)
		if err != nil {
			return nil, err
		}
		c.referrers = append(c.referrers, at)
	}
	c.blobs, c.manifests = w.blobs, w.manifests
	slices.SortStableFunc(c.blobs, func(a, b bundle.OCIDescriptor) int { return cmp.Compare(b.Size, a.Size) })
	return c, nil
}

func plain(d bundle.Descriptor) bundle.OCIDescriptor {
	return bundle.OCIDescriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size, ArtifactType: d.ArtifactType}
}

// inOrder puts referrers of referrers behind these.
func inOrder(referrers []bundle.Referrer) []bundle.Referrer {
	var ordered []bundle.Referrer
	left := slices.Clone(referrers)
	for len(left) > 0 {
		var later []bundle.Referrer
		for _, r := range left {
			waits := slices.ContainsFunc(left, func(other bundle.Referrer) bool { return other.Descriptor.Digest == r.Subject })
			if waits {
				later = append(later, r)
			} else {
				ordered = append(ordered, r)
			}
		}
		if len(later) == len(left) { // nothing can refer to itself, so this cannot be
			return append(ordered, later...)
		}
		left = later
	}
	return ordered
}

// walk collects what is reachable, each digest once.
type walk struct {
	release   *gate.Release
	seen      map[bundle.Digest]bool
	blobs     []bundle.OCIDescriptor
	manifests []bundle.OCIDescriptor
}

func (w *walk) manifest(d bundle.OCIDescriptor, depth int) error {
	if w.seen[d.Digest] {
		return nil
	}
	if depth > maxDepth {
		return fmt.Errorf("the index %s is nested deeper than %d", d.Digest, maxDepth)
	}
	doc, err := w.parse(d)
	if err != nil {
		return err
	}
	if err := w.below(doc, depth); err != nil {
		return err
	}
	w.seen[d.Digest] = true
	w.manifests = append(w.manifests, d)
	return nil
}

func (w *walk) parse(d bundle.OCIDescriptor) (*bundle.OCI, error) {
	b, err := w.release.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
	if err != nil {
		return nil, err
	}
	return bundle.ParseOCI(b, d.MediaType)
}

// below notes what a manifest at this depth needs: the manifests of an index,
// or config and layers.
func (w *walk) below(doc *bundle.OCI, depth int) error {
	for _, child := range doc.Manifests {
		if err := w.manifest(child, depth+1); err != nil {
			return err
		}
	}
	if doc.Config == nil {
		return nil
	}
	for _, d := range doc.Children() {
		if !w.seen[d.Digest] {
			w.seen[d.Digest] = true
			w.blobs = append(w.blobs, d)
		}
	}
	return nil
}

// referrer notes what a referrer needs, and describes it as a list of referrers
// does: with its own annotations, and the type of its config where it names
// none of its own.
func (w *walk) referrer(r bundle.Referrer) (attached, error) {
	d := plain(r.Descriptor)
	doc, err := w.parse(d)
	if err != nil {
		return attached{}, err
	}
	if err := w.below(doc, 0); err != nil {
		return attached{}, err
	}
	d.Annotations = doc.Annotations
	if d.ArtifactType = doc.ArtifactType; d.ArtifactType == "" && doc.Config != nil {
		d.ArtifactType = doc.Config.MediaType
	}
	return attached{OCIDescriptor: d, subject: r.Subject}, nil
}
