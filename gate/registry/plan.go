package registry

import (
	"context"
	"errors"
	"net/http"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/registry"
)

// Plan implements gate.Sink, by asking for each tag. It finds out whether the
// account is let in, not whether it may push: the protocol tells that only to
// those who begin to. Where there is nothing to ask for, it logs in all the
// same: then a plan tells whether the registry can be used at all.
func (s *Sink) Plan(ctx context.Context, r *gate.Release) ([]gate.Action, error) {
	if len(r.Artifacts()) == 0 {
		return nil, s.explain(s.client.Ping(ctx, s.host))
	}
	var actions []gate.Action
	for _, a := range r.Artifacts() {
		action, err := s.plan(ctx, r, a)
		if err != nil {
			return nil, s.explain(err)
		}
		actions = append(actions, action)
	}
	return actions, nil
}

func (s *Sink) plan(ctx context.Context, r *gate.Release, a bundle.Artifact) (gate.Action, error) {
	action := gate.Action{Name: r.Name(a), Effect: gate.EffectCreate, Bytes: a.Size}
	packed, err := s.refusesPacks(r, a)
	if err != nil {
		return action, err
	}
	if packed != nil {
		action.Effect, action.Reason = gate.EffectBlocked, packed.Error()
		return action, nil
	}
	ref, err := s.reference(action.Name)
	if err != nil {
		action.Effect, action.Reason = gate.EffectBlocked, err.Error()
		return action, nil
	}
	to := s.client.Writer(ref)
	d, found, err := to.HasManifest(ctx, ref.Tag)
	if err == nil && found && d.Digest.IsZero() {
		d, _, found, err = to.Manifest(ctx, ref.Tag, bundle.MaxOCIManifestSize)
	}
	if reason := stands(err); reason != "" {
		action.Effect, action.Reason = gate.EffectBlocked, reason
		return action, nil
	}
	switch {
	case err != nil:
		return gate.Action{}, err
	case found && d.Digest == a.Root.Digest:
		action.Effect = gate.EffectKeep
		action.Bytes, err = s.lacking(ctx, r, to, a)
	case found:
		action.Effect = gate.EffectReplace
	}
	return action, err
}

// refusesPacks gives the reason for which a tree with packs is not loaded where
// the configuration does not ask for packs; nil for anything else. Whoever pulls
// such a tree gets the packs and has to unpack them.
func (s *Sink) refusesPacks(r *gate.Release, a bundle.Artifact) (why *problem.Problem, err error) {
	if s.packs || !a.Kind.IsTree() {
		return nil, nil
	}
	root := bundle.OCIDescriptor{MediaType: a.Root.MediaType, Digest: a.Root.Digest, Size: a.Root.Size}
	err = bundle.Walk(root, r.Document, func(d bundle.OCIDescriptor, _ bundle.Role) error {
		if d.MediaType == bundle.TypePack {
			why = problem.New("destination/refused", "the small files of this tree lie in packs, which this registry is not configured to take").
				Hint("set packs: true at the destination, or leave the kind out of its accepts: the depot and S3 destinations have the files themselves")
		}
		return nil
	})
	return why, err
}

// lacking adds up what may be missing of an artifact whose root is there: its
// referrers can be others than before.
func (s *Sink) lacking(ctx context.Context, r *gate.Release, to *registry.Writer, a bundle.Artifact) (int64, error) {
	var bytes int64
	for _, referrer := range a.Referrers {
		own := walk{release: r, seen: map[bundle.Digest]bool{}}
		at, err := own.referrer(referrer)
		if err != nil {
			return 0, err
		}
		n, err := lackingOf(ctx, to, append(own.manifests, at.OCIDescriptor), own.blobs)
		if err != nil {
			return 0, err
		}
		bytes += n
	}
	return bytes, nil
}

// lackingOf adds up those manifests that are not there and, if there are any,
// all of the blobs.
func lackingOf(ctx context.Context, to *registry.Writer, manifests, blobs []bundle.OCIDescriptor) (int64, error) {
	var bytes int64
	for _, d := range manifests {
		_, found, err := to.HasManifest(ctx, d.Digest.String())
		if err != nil {
			return 0, err
		}
		if !found {
			bytes += d.Size
		}
	}
	if bytes == 0 {
		return 0, nil
	}
	for _, blob := range blobs {
		bytes += blob.Size
	}
	return bytes, nil
}

// stands gives the reason for which a registry that answers does not let us
// in; "" for any other error.
func stands(err error) string {
	if refused, ok := errors.AsType[*registry.RefusedError](err); ok {
		switch refused.Status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusPreconditionFailed, http.StatusBadRequest:
			return reason(refused)
		}
		return ""
	}
	p, ok := errors.AsType[*problem.Problem](err)
	if ok && (p.Code() == "registry/auth-required" || p.Code() == "registry/forbidden") {
		return p.Error()
	}
	return ""
}

// reason is an answer in one line: the registry's own words where it has any.
func reason(refused *registry.RefusedError) string {
	if refused.Said != "" {
		return refused.Said
	}
	return refused.Error()
}
