package registry

import (
	"context"
	"fmt"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/registry"
)

// Publish implements gate.Sink: each tag is set to the bytes of its root
// manifest. A tag that is there already is left alone, since a registry may
// forbid to write it again even with the same content.
func (s *Sink) Publish(ctx context.Context, r *gate.Release, names []gate.Name) error {
	for _, name := range names {
		if err := s.publish(ctx, r, name); err != nil {
			return s.explain(err)
		}
	}
	return nil
}

func (s *Sink) publish(ctx context.Context, r *gate.Release, name gate.Name) error {
	ref, err := s.reference(name)
	if err != nil {
		return err
	}
	root, err := rootOf(r, name)
	if err != nil {
		return err
	}
	to := s.client.Writer(ref)
	if same, err := is(ctx, to, ref.Tag, root.Digest); err != nil || same {
		return err
	}
	b, err := r.ReadAll(root.Digest, bundle.MaxOCIManifestSize)
	if err != nil {
		return err
	}
	refused := to.PutManifest(ctx, ref.Tag, root.MediaType, b)
	if refused == nil {
		return nil
	}
	// The answer to an attempt that succeeded may have been lost, and the
	// next one been refused because the tag may not change any more.
	if same, err := is(ctx, to, ref.Tag, root.Digest); err == nil && same {
		return nil
	}
	return refused
}

// is reports whether the tag is this manifest.
func is(ctx context.Context, to *registry.Writer, tag string, root bundle.Digest) (bool, error) {
	d, found, err := to.HasManifest(ctx, tag)
	if err != nil || !found || !d.Digest.IsZero() {
		return found && d.Digest == root, err
	}
	d, _, found, err = to.Manifest(ctx, tag, bundle.MaxOCIManifestSize)
	return found && d.Digest == root, err
}

// rootOf finds the artifact that a name stands for.
func rootOf(r *gate.Release, name gate.Name) (bundle.Descriptor, error) {
	for _, a := range r.Artifacts() {
		if a.Root.Digest == name.Digest {
			return a.Root, nil
		}
	}
	return bundle.Descriptor{}, fmt.Errorf("the name %s is of %s, which is not in this release", name, name.Digest)
}
