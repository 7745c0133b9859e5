package s3

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/s3"
)

// Plan implements gate.Sink. It finds out whether the account is let in and
// may list and read, not whether it may write: S3 tells that only to those who
// do.
func (s *Sink) Plan(ctx context.Context, r *gate.Release) ([]gate.Action, error) {
	closed := s.explain(s.client.Check(ctx))
	if closed != nil && (reason(closed) == "" || len(r.Artifacts()) == 0) {
		return nil, closed
	}
	var actions []gate.Action
	for _, a := range r.Artifacts() {
		action, err := gate.Action{Name: r.Name(a)}, closed
		if err == nil {
			action, err = s.plan(ctx, r, a)
			err = s.explain(err)
		}
		if why := reason(err); why != "" {
			action, err = gate.Action{Name: r.Name(a), Effect: gate.EffectBlocked, Bytes: a.Size, Reason: why}, nil
		}
		if err != nil {
			return nil, err
		}
		actions = append(actions, action)
	}
	return actions, nil
}

// reason is why a destination would not take something; "" if the error is
// another one, or none.
func reason(err error) string {
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Code() == "destination/refused" {
		return err.Error()
	}
	return ""
}

func (s *Sink) plan(ctx context.Context, r *gate.Release, a bundle.Artifact) (gate.Action, error) {
	action := gate.Action{Name: r.Name(a), Effect: gate.EffectCreate}
	t, err := s.treeOf(r, a)
	if err != nil {
		return action, err
	}
	list, err := s.published(ctx, t.key(sumsName))
	if err != nil {
		return action, err
	}
	if err := s.checkPlace(ctx, r, t, list == nil); err != nil {
		return action, err
	}
	var listed sums
	switch {
	case list == nil:
	case list.digest == cas.DigestOf(t.sums):
		action.Effect = gate.EffectKeep
		listed = list.paths
	default:
		action.Effect = gate.EffectReplace
		listed = list.paths
	}
	for _, o := range t.objects {
		if listed[o.path] != o.digest {
			action.Bytes += o.size
		}
	}
	return action, nil
}

// checkPlace makes sure that no name lies within the folder of another one,
// whose files could be called the same, and that nothing of others is in the
// place of a new name.
func (s *Sink) checkPlace(ctx context.Context, r *gate.Release, t *tree, isNew bool) error {
	for _, other := range r.Names() {
		if dir := folder(other); other.String() != t.name.String() && strings.HasPrefix(folder(t.name), dir) {
			return within(t.name.String(), other.String())
		}
	}
	parts := strings.Split(t.name.Repository, "/")
	for i := range parts[1:] {
		outer := strings.Join(parts[:i+2], "/")
		_, err := s.client.Head(ctx, outer+"/"+documentName)
		if err == nil {
			return within(t.name.String(), "what is at "+s.client.Location(outer))
		}
		if !s3.Is(err, s3.CodeNotFound) {
			return err
		}
	}
	if !isNew {
		return nil
	}
	return s.checkNew(ctx, t)
}

func within(inner, outer string) error {
	return problem.New("destination/refused", "%s would lie within the folder of %s", inner, outer).Hint("tell them apart in the destination's naming")
}

// checkNew looks at what is below a name that is not published: leftovers of
// a load that ended early may be, other things in our way may not.
func (s *Sink) checkNew(ctx context.Context, t *tree) error {
	for info, err := range s.client.List(ctx, folder(t.name)) {
		if err != nil {
			return err
		}
		path := strings.TrimPrefix(info.Key, folder(t.name))
		if inner, ok := strings.CutSuffix(path, "/"+documentName); ok {
			return within("what is at "+s.client.Location(t.key(inner)), t.name.String())
		}
		if _, ours := slices.BinarySearchFunc(t.objects, path, func(o object, path string) int { return strings.Compare(o.path, path) }); !ours {
			continue
		}
		found, err := s.client.Head(ctx, info.Key)
		if err != nil {
			return err
		}
		if found.SHA256.IsZero() {
			return s.foreign(info.Key)
		}
	}
	return nil
}
