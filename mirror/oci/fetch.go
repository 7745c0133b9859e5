package oci

import (
	"bytes"
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
// has a tag and no digest, and the tag means something else by now, it is an
// error of code "source/moved", before anything is fetched.
func (s *Source) Fetch(ctx context.Context, p mirror.Pinned, into *cas.Store) error {
	ref, err := registry.ParseReference(p.From)
	if err != nil {
		return err
	}
	if err := s.checkUnmoved(ctx, ref, p); err != nil {
		return err
	}
	root := bundle.OCIDescriptor{MediaType: p.Root.MediaType, Digest: p.Root.Digest, Size: p.Root.Size}
	if err := s.restoreRoot(ctx, ref, p, root, into); err != nil {
		return err
	}
	r := reader{source: s, ref: ref, store: into, keep: true}
	g, err := r.survey(ctx, root)
	if err != nil {
		return err
	}
	blobs := slices.Clone(g.blobs)
	slices.SortStableFunc(blobs, func(a, b bundle.OCIDescriptor) int { return cmp.Compare(b.Size, a.Size) })
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.parallel)
	for _, d := range blobs {
		group.Go(func() error { return s.fetchBlob(ctx, ref, p.Name, d, into) })
	}
	return group.Wait()
}

// checkUnmoved compares what upstream has under the name with the lock.
func (s *Source) checkUnmoved(ctx context.Context, ref registry.Reference, p mirror.Pinned) error {
	locked := p.Root.Digest
	if p.Derived != nil {
		locked = p.Derived.From
	}
	if !ref.Digest.IsZero() {
		if ref.Digest != locked {
			return problem.New("source/lock-contradiction", "the lock names two digests for %s", ref).
				With("from:   "+ref.Digest.String(), "locked: "+locked.String()).Hint("run  packhof plan  to write the lock anew")
		}
		return nil
	}
	if p.Settled {
		return nil
	}
	now, err := s.client.Resolve(ctx, ref, bundle.MaxOCIManifestSize)
	if err != nil {
		return err
	}
	if now.Digest != locked {
		return moved(ref, locked, now.Digest)
	}
	return nil
}

// restoreRoot makes an index of our own making again where the store lost it.
func (s *Source) restoreRoot(ctx context.Context, ref registry.Reference, p mirror.Pinned, root bundle.OCIDescriptor, into *cas.Store) error {
	if p.Derived == nil || !bundle.IsIndex(root.MediaType) {
		return nil
	}
	if _, err := into.ReadAll(root.Digest, bundle.MaxOCIManifestSize); !isLost(err) {
		return err
	}
	platforms, err := parsePlatforms(p.Derived.Platforms)
	if err != nil {
		return err
	}
	at := ref.At(p.Derived.From)
	upstream, err := s.upstream(ctx, at)
	if err != nil {
		return err
	}
	r := reader{source: s, ref: at, store: into}
	b, doc, err := r.manifest(ctx, upstream)
	if err != nil {
		return err
	}
	chosen, err := chooseFrom(b, doc, upstream, platforms, ref.String())
	if err != nil {
		return err
	}
	if chosen.root.Digest != root.Digest {
		return problem.New("source/derived-differs", "the chosen platforms of %s make another index than the locked one", ref).
			With("locked: "+root.Digest.String(), "made:   "+chosen.root.Digest.String()).Hint("run  packhof plan  to write the lock anew")
	}
	if chosen.document == nil {
		return nil // an index inside of upstream's: it is fetched like any other
	}
	return into.Put(ctx, bytes.NewReader(chosen.document), root.Digest, root.Size, ref.String())
}

// fetchBlob brings one blob unless the store has it, or another Fetch of this
// source is just bringing it there.
func (s *Source) fetchBlob(ctx context.Context, ref registry.Reference, name string, d bundle.OCIDescriptor, into *cas.Store) error {
	unlock, err := s.locks.lock(ctx, into.Path(d.Digest))
	if err != nil {
		return err
	}
	defer unlock()
	if ok, err := into.Has(d.Digest, d.Size); ok || err != nil {
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
		return s.download(ctx, ref, d, meter, into)
	})
	item.Done(err)
	return err
}

func (s *Source) download(ctx context.Context, ref registry.Reference, d bundle.OCIDescriptor, meter *highWater, into *cas.Store) error {
	body, err := s.client.Blob(ctx, ref, d.Digest, d.Size)
	if err != nil {
		return err
	}
	meter.Reader = body
	err = into.Put(ctx, meter, d.Digest, d.Size, ref.At(d.Digest).String())
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
func (s *Source) readBlob(ctx context.Context, ref registry.Reference, d bundle.OCIDescriptor) ([]byte, error) {
	body, err := s.client.Blob(ctx, ref, d.Digest, d.Size)
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
