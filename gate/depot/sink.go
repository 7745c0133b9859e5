package depot

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

// Sink is the built-in destination. Content is where it has to be once the
// gate has it, and names are rows that the gate writes together with the audit
// log: what is left to do is to prove the content once more, and to see that
// clients get what was promised.
type Sink struct {
	view func() gate.DepotStore
}

// New makes the Sink. view gives what clients see; it is asked whenever that
// matters and not before, since a gate is opened with its destinations and so
// comes after them.
func New(view func() gate.DepotStore) *Sink { return &Sink{view: view} }

var _ gate.Sink = (*Sink)(nil)

// Plan says what becomes of each name. Nothing stands in the way of a row;
// what it makes reachable is all of its artifact.
func (s *Sink) Plan(ctx context.Context, r *gate.Release) ([]gate.Action, error) {
	artifacts, names := r.Artifacts(), r.Names()
	actions := make([]gate.Action, len(names))
	for i, name := range names {
		effect, err := s.effect(ctx, name)
		if err != nil {
			return nil, err
		}
		actions[i] = gate.Action{Name: name, Effect: effect}
		if effect == gate.EffectKeep {
			continue
		}
		blobs, err := blobsOf(r, artifacts[i])
		if err != nil {
			return nil, err
		}
		actions[i].Bytes, actions[i].Blobs = artifacts[i].Size, len(blobs)
	}
	return actions, nil
}

func (s *Sink) effect(ctx context.Context, name gate.Name) (gate.Effect, error) {
	tag, err := s.view().Tag(ctx, name.Repository, name.Tag)
	var missing *gate.NotReleasedError
	var denied *gate.DeniedError
	switch {
	case errors.As(err, &missing):
		return gate.EffectCreate, nil
	case errors.As(err, &denied) && denied.Digest != name.Digest:
		return gate.EffectReplace, nil
	case err != nil:
		return "", err
	case tag.Digest == name.Digest:
		return gate.EffectKeep, nil
	}
	return gate.EffectReplace, nil
}

// readers is how many blobs are proven at a time.
const readers = 4

// Put reads every blob of the artifact to its end, so that nothing rotten is
// released. It moves nothing.
func (s *Sink) Put(ctx context.Context, r *gate.Release, a bundle.Artifact) (gate.Receipt, error) {
	blobs, err := blobsOf(r, a)
	if err != nil {
		return gate.Receipt{}, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, d := range blobs {
		group.Go(func() error { return r.Prove(ctx, d) })
	}
	if err := group.Wait(); err != nil {
		return gate.Receipt{}, fmt.Errorf("%s %s: %w", a.Kind, a.Name, err)
	}
	return gate.Receipt{Location: gate.DepotName + " " + r.Name(a).String(), Kept: len(blobs)}, nil
}

// blobsOf lists every blob of an artifact and its referrers once.
func blobsOf(r *gate.Release, a bundle.Artifact) (blobs []bundle.Digest, err error) {
	seen := map[bundle.Digest]bool{}
	read := func(d bundle.OCIDescriptor) ([]byte, error) { return r.ReadAll(d.Digest, bundle.MaxOCIManifestSize) }
	visit := func(d bundle.OCIDescriptor, _ bundle.Role) error {
		if !seen[d.Digest] {
			seen[d.Digest] = true
			blobs = append(blobs, d.Digest)
		}
		return nil
	}
	roots := []bundle.Descriptor{a.Root}
	for _, referrer := range a.Referrers {
		roots = append(roots, referrer.Descriptor)
	}
	for _, root := range roots {
		d := bundle.OCIDescriptor{MediaType: root.MediaType, Digest: root.Digest, Size: root.Size}
		if err := bundle.Walk(d, read, visit); err != nil {
			return nil, fmt.Errorf("%s %s: %w", a.Kind, a.Name, err)
		}
	}
	return blobs, nil
}

// Publish has nothing to write: the gate's own row of the name is the name.
func (s *Sink) Publish(ctx context.Context, _ *gate.Release, _ []gate.Name) error {
	return context.Cause(ctx)
}

// Verify looks the artifact up as a client does: its name gives its digest,
// and every referrer is found at its subject.
func (s *Sink) Verify(ctx context.Context, r *gate.Release, a bundle.Artifact) error {
	view, name := s.view(), r.Name(a)
	tag, err := view.Tag(ctx, name.Repository, name.Tag)
	if err != nil {
		return notShown(name, a.Root.Digest, err)
	}
	if tag.Digest != a.Root.Digest {
		return mismatch(name, "want:  "+a.Root.Digest.String(), "got:   "+tag.Digest.String())
	}
	if err := verifyBlob(ctx, view, name, a.Root); err != nil {
		return err
	}
	for _, referrer := range a.Referrers {
		if err := verifyReferrer(ctx, view, name, referrer); err != nil {
			return err
		}
	}
	return nil
}

func verifyBlob(ctx context.Context, view gate.DepotStore, name gate.Name, want bundle.Descriptor) error {
	got, err := view.Blob(ctx, name.Repository, want.Digest)
	if err != nil {
		return notShown(name, want.Digest, err)
	}
	if !got.Manifest || got.Size != want.Size || got.MediaType != want.MediaType {
		return mismatch(name,
			fmt.Sprintf("want:  %s, %d bytes, %s", want.Digest, want.Size, want.MediaType),
			fmt.Sprintf("got:   %s, %d bytes, %s", got.Digest, got.Size, got.MediaType))
	}
	return nil
}

func verifyReferrer(ctx context.Context, view gate.DepotStore, name gate.Name, want bundle.Referrer) error {
	if err := verifyBlob(ctx, view, name, want.Descriptor); err != nil {
		return err
	}
	found, err := view.Referrers(ctx, name.Repository, want.Subject)
	if err != nil {
		return err
	}
	for _, have := range found {
		if have.Digest == want.Descriptor.Digest {
			return nil
		}
	}
	return mismatch(name, "want:  "+want.Descriptor.Digest.String()+" among the referrers of "+want.Subject.String(), fmt.Sprintf("got:   %d others", len(found)))
}

// notShown tells what clients cannot get from what could not be looked at.
func notShown(name gate.Name, want bundle.Digest, err error) error {
	var missing *gate.NotReleasedError
	var denied *gate.DeniedError
	if errors.As(err, &missing) || errors.As(err, &denied) {
		return mismatch(name, "want:  "+want.String(), "got:   "+err.Error())
	}
	return fmt.Errorf("read %s back from the depot: %w", name, err)
}

func mismatch(name gate.Name, evidence ...string) error {
	return problem.New("destination/mismatch", "the depot does not show %s as it was released", name).
		With(evidence...).Hint("release the case again; it loads what is missing")
}
