package registry

import (
	"context"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/registry"
)

// Put implements gate.Sink. What the registry has already is not sent. The
// tags of the referrers' fallback schema, "sha256-" and a digest, are part of
// the content; no other tag is touched.
func (s *Sink) Put(ctx context.Context, r *gate.Release, a bundle.Artifact) (gate.Receipt, error) {
	ref, err := s.reference(r.Name(a))
	if err != nil {
		return gate.Receipt{}, err
	}
	packed, err := s.refusesPacks(r, a)
	switch {
	case err != nil:
		return gate.Receipt{}, err
	case packed != nil:
		return gate.Receipt{}, packed
	}
	c, err := closureOf(r, a)
	if err != nil {
		return gate.Receipt{}, err
	}
	p := &putting{release: r, to: s.client.Writer(ref), repository: ref.Repository, where: &s.where}
	if err := p.content(ctx, c); err != nil {
		return p.counted.Receipt(""), s.explain(err)
	}
	if err := s.link(ctx, p.to, ref, c.referrers); err != nil {
		return p.counted.Receipt(""), s.explain(err)
	}
	return p.counted.Receipt(ref.At(a.Root.Digest).String()), nil
}

// putting is one Put.
type putting struct {
	release *gate.Release
	to      *registry.Writer

	repository string
	where      *whereabouts

	counted gate.Counting
}

// content brings blobs, then children, then the root, then what the referrers
// list, then the referrers.
func (p *putting) content(ctx context.Context, c *closure) error {
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, d := range c.blobs {
		group.Go(func() error { return p.blob(groupContext, d) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, d := range c.manifests {
		if err := p.manifest(ctx, d); err != nil {
			return err
		}
	}
	for _, d := range c.referrers {
		if err := p.manifest(ctx, d.OCIDescriptor); err != nil {
			return err
		}
	}
	return nil
}

func (p *putting) blob(ctx context.Context, d bundle.OCIDescriptor) error {
	size, there, err := p.to.HasBlob(ctx, d.Digest)
	if err != nil {
		return err
	}
	if !there {
		if there, err = p.takenOver(ctx, d); err != nil {
			return err
		}
		size = d.Size
	}
	if there && (size == d.Size || size < 0) {
		p.where.note(d.Digest, p.repository)
		p.counted.Kept()
		return nil
	}
	open := func(ctx context.Context) (io.ReadCloser, error) { return p.release.Open(ctx, d.Digest) }
	if err := p.to.PutBlob(ctx, d.Digest, d.Size, open); err != nil {
		return err
	}
	p.where.note(d.Digest, p.repository)
	p.counted.Moved(d.Size)
	return nil
}

// takenOver has the registry take a blob over from where this process knows it
// to be, and asks whether it has it then.
func (p *putting) takenOver(ctx context.Context, d bundle.OCIDescriptor) (bool, error) {
	from, known := p.where.of(d.Digest)
	if !known || from == p.repository {
		return false, nil
	}
	mounted, err := p.to.Mount(ctx, d.Digest, from)
	if err != nil || !mounted {
		return false, err
	}
	size, there, err := p.to.HasBlob(ctx, d.Digest)
	return there && (size == d.Size || size < 0), err
}

func (p *putting) manifest(ctx context.Context, d bundle.OCIDescriptor) error {
	have, there, err := p.to.HasManifest(ctx, d.Digest.String())
	if err != nil {
		return err
	}
	if there && have.MediaType == d.MediaType && have.Size == d.Size {
		p.counted.Kept()
		return nil
	}
	b, err := p.release.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
	if err != nil {
		return err
	}
	if err := p.to.PutManifest(ctx, d.Digest.String(), d.MediaType, b); err != nil {
		return err
	}
	p.counted.Moved(d.Size)
	return nil
}
