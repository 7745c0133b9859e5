package registry

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/registry"
)

// Verify implements gate.Sink: every manifest is read back and hashed, every
// blob is asked for with its size, the tag must be the root, and each
// referrer must be listed.
func (s *Sink) Verify(ctx context.Context, r *gate.Release, a bundle.Artifact) error {
	ref, err := s.reference(r.Name(a))
	if err != nil {
		return err
	}
	c, err := closureOf(r, a)
	if err != nil {
		return err
	}
	check := checking{to: s.client.Writer(ref), ref: ref}
	if err := check.all(ctx, c, a.Root.Digest); err != nil {
		return s.explain(err)
	}
	return nil
}

// checking is one Verify.
type checking struct {
	to  *registry.Writer
	ref registry.Reference
}

func (k checking) all(ctx context.Context, c *closure, root bundle.Digest) error {
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, d := range c.blobs {
		group.Go(func() error { return k.blob(groupContext, d) })
	}
	for _, d := range c.manifests {
		group.Go(func() error { return k.manifest(groupContext, d) })
	}
	for _, d := range c.referrers {
		group.Go(func() error { return k.manifest(groupContext, d.OCIDescriptor) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := k.tag(ctx, root); err != nil {
		return err
	}
	return k.listed(ctx, c.referrers)
}

func (k checking) blob(ctx context.Context, d bundle.OCIDescriptor) error {
	size, found, err := k.to.HasBlob(ctx, d.Digest)
	if err != nil {
		return err
	}
	if !found {
		return missing("the blob " + k.ref.At(d.Digest).String())
	}
	if size >= 0 && size != d.Size {
		return mismatch("the blob "+k.ref.At(d.Digest).String()+" has another size", fmt.Sprint(d.Size, " bytes"), fmt.Sprint(size, " bytes"))
	}
	return nil
}

func (k checking) manifest(ctx context.Context, d bundle.OCIDescriptor) error {
	what := "the manifest " + k.ref.At(d.Digest).String()
	got, _, found, err := k.to.Manifest(ctx, d.Digest.String(), bundle.MaxOCIManifestSize)
	corrupt, isCorrupt := errors.AsType[*cas.CorruptError](err)
	switch {
	case isCorrupt:
		return mismatch(what+" has other bytes", corrupt.Want.String(), corrupt.Got.String())
	case err != nil:
		return err
	case !found:
		return missing(what)
	case got.MediaType != d.MediaType:
		return mismatch(what+" is given out as another type", d.MediaType, fmt.Sprintf("%.100q", got.MediaType))
	}
	return nil
}

func (k checking) tag(ctx context.Context, root bundle.Digest) error {
	what := "the tag " + k.ref.ByTag().String()
	d, _, found, err := k.to.Manifest(ctx, k.ref.Tag, bundle.MaxOCIManifestSize)
	switch {
	case err != nil:
		return err
	case !found:
		return missing(what)
	case d.Digest != root:
		return mismatch(what+" is another manifest", root.String(), d.Digest.String())
	}
	return nil
}

func (k checking) listed(ctx context.Context, referrers []attached) error {
	for _, subject := range subjects(referrers) {
		absent, _, err := unlisted(ctx, k.to, subject, referrers)
		if err != nil {
			return err
		}
		if len(absent) > 0 {
			return missing(fmt.Sprintf("the referrer %s in the list of those of %s", absent[0].Digest, k.ref.At(subject)))
		}
	}
	return nil
}

func missing(what string) error {
	return problem.New("destination/mismatch", "%s is not there", what).Hint("%s", remedyMismatch)
}

func mismatch(what, want, got string) error {
	return problem.New("destination/mismatch", "%s", what).With("want:  "+want, "got:   "+got).Hint("%s", remedyMismatch)
}

const remedyMismatch = "release the case again; if it happens again, look at the registry's storage"
