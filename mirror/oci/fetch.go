package oci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/registry"
	"github.com/packhof/packhof/mirror"
)

// Fetch brings what p names into the store, large blobs first. Where p.From
// has a tag and no digest, p is not settled, and the tag means something else
// by now, it is an error of code "source/moved", before anything is fetched.
// Everything else is asked for by digest.
func (s *Source) Fetch(ctx context.Context, p mirror.Pinned, into *cas.Store) error {
	ref, err := registry.ParseReference(p.From)
	if err != nil {
		return err
	}
	r := reader{source: s, ref: ref, store: into, plain: p.Transport == bundle.TransportPlain}
	if err := r.checkUnmoved(ctx, p); err != nil {
		return err
	}
	if err := r.deriveRoot(ctx, p); err != nil {
		return err
	}
	g, err := r.survey(ctx, bundle.OCIDescriptor{MediaType: p.Root.MediaType, Digest: p.Root.Digest, Size: p.Root.Size})
	if err != nil {
		return err
	}
	slices.SortStableFunc(g.blobs, func(a, b bundle.OCIDescriptor) int { return cmp.Compare(b.Size, a.Size) })
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.parallel)
	for _, d := range g.blobs {
		group.Go(func() error { return r.fetchBlob(ctx, p.Name, d) })
	}
	return group.Wait()
}

// checkUnmoved compares what upstream has under the name with the lock.
func (r reader) checkUnmoved(ctx context.Context, p mirror.Pinned) error {
	locked := p.Root.Digest
	if p.Derived != nil {
		locked = p.Derived.From
	}
	if !r.ref.Digest.IsZero() {
		if r.ref.Digest != locked {
			return problem.New("source/lock-contradiction", "the lock names two digests for %s", r.ref).
				With("from:   "+r.ref.Digest.String(), "locked: "+locked.String()).Hint("run  packhof plan  to write the lock anew")
		}
		return nil
	}
	if p.Settled {
		return nil
	}
	client, err := r.client()
	if err != nil {
		return err
	}
	now, err := client.Resolve(ctx, r.ref, bundle.MaxOCIManifestSize)
	if err != nil {
		return err
	}
	if now.Digest != locked {
		return moved(r.ref, locked, now.Digest)
	}
	return nil
}

// fetchBlob brings one blob unless the store has it, or another Fetch of this
// source is just bringing it there.
func (r reader) fetchBlob(ctx context.Context, name string, d bundle.OCIDescriptor) error {
	s := r.source
	unlock, err := s.locks.lock(ctx, r.store.Path(d.Digest))
	if err != nil {
		return err
	}
	defer unlock()
	if ok, err := r.store.Has(d.Digest, d.Size); ok || err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	item := s.progress.Start(name+" "+d.Digest.Short(), d.Size)
	meter := &highWater{item: item}
	err = s.persist(ctx, func() error {
		meter.seen = 0
		return r.download(ctx, d, meter)
	})
	item.Done(err)
	return err
}

func (r reader) download(ctx context.Context, d bundle.OCIDescriptor, meter *highWater) error {
	client, err := r.client()
	if err != nil {
		return err
	}
	body, err := client.Blob(ctx, r.ref, d.Digest, d.Size)
	if err != nil {
		return err
	}
	meter.Reader = body
	err = r.store.Put(ctx, meter, d.Digest, d.Size, r.ref.At(d.Digest).String())
	return errors.Join(err, body.Close())
}

// highWater tells progress of bytes that are further than any before: those
// that a second attempt repeats are not counted again.
type highWater struct {
	io.Reader
	item       mirror.Item
	seen, most int64
}

func (h *highWater) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.seen += int64(n)
	if h.seen > h.most {
		h.item.Advance(h.seen - h.most)
		h.most = h.seen
	}
	return n, err
}

// readBlob reads a small blob into memory, verified.
func readBlob(ctx context.Context, client *registry.Client, ref registry.Reference, d bundle.OCIDescriptor) ([]byte, error) {
	body, err := client.Blob(ctx, ref, d.Digest, d.Size)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(cas.Verify(body, d.Digest, d.Size, ref.At(d.Digest).String()))
	return b, errors.Join(err, body.Close())
}

// persist does once again where that may help: after wrong bytes one time,
// after a connection that was lost until registry.Attempts is reached.
func (s *Source) persist(ctx context.Context, once func() error) error {
	for attempt, corrupt := 1, 0; ; attempt++ {
		err := once()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return err
		case isCorrupt(err):
			if corrupt++; corrupt > 1 {
				return fmt.Errorf("after a second attempt: %w", err)
			}
		case !registry.Interrupted(err) || attempt == registry.Attempts:
			return err
		}
		if err := s.client.Pause(ctx, attempt); err != nil {
			return err
		}
	}
}
