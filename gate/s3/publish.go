package s3

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/s3"
)

// Publish implements gate.Sink. For each name it makes sure that every object
// is there, for which the server copies what waits in the staging area into
// its place; then SHA256SUMS is written, then what only other lists name is
// deleted. Killed at any point and begun again, it ends with the same objects.
// The staging area is empty afterwards.
func (s *Sink) Publish(ctx context.Context, r *gate.Release, names []gate.Name) error {
	for _, name := range names {
		t, err := s.treeNamed(r, name)
		if err == nil {
			err = s.publish(ctx, r, t)
		}
		if err != nil {
			return s.explain(err)
		}
	}
	return s.explain(s.clearStaging(ctx))
}

// treeNamed lays out the artifact that a name stands for.
func (s *Sink) treeNamed(r *gate.Release, name gate.Name) (*tree, error) {
	for _, a := range r.Artifacts() {
		if have := r.Name(a); have.String() == name.String() && have.Digest == name.Digest {
			return s.treeOf(r, a)
		}
	}
	return nil, fmt.Errorf("the name %s is of %s, which is not in this release", name, name.Digest)
}

func (s *Sink) publish(ctx context.Context, r *gate.Release, t *tree) error {
	before, err := s.published(ctx, t.key(sumsName))
	if err != nil {
		return err
	}
	if before == nil || before.digest != cas.DigestOf(t.sums) {
		if err := s.replace(ctx, r, t, before); err != nil {
			return err
		}
	}
	return s.deleteOthers(ctx, t)
}

func (s *Sink) replace(ctx context.Context, r *gate.Release, t *tree, before *published) error {
	if err := each(ctx, t.objects, func(ctx context.Context, o object) error { return s.place(ctx, t, o) }); err != nil {
		return err
	}
	if before != nil {
		if err := s.client.Copy(ctx, t.key(sumsName), t.key(listFolder+before.digest.Hex())); err != nil {
			return err
		}
	}
	m := r.Manifest()
	own := listObject(t)
	return s.client.Put(ctx, t.key(own.path), bytes.NewReader(own.content), own.size, s3.Options{
		SHA256: own.digest, ContentType: "text/plain; charset=utf-8",
		Metadata: map[string]string{
			"packhof-root":    t.name.Digest.String(),
			"packhof-case":    strconv.FormatInt(r.Case(), 10),
			"packhof-channel": m.Channel,
			"packhof-serial":  fmt.Sprintf("%d/%d", m.Epoch, m.Serial),
		},
	})
}

// listObject is SHA256SUMS itself.
func listObject(t *tree) object {
	return object{path: sumsName, size: int64(len(t.sums)), digest: cas.DigestOf(t.sums), content: t.sums}
}

// place makes sure that an object is there, by staged content if need be.
func (s *Sink) place(ctx context.Context, t *tree, o object) error {
	key := t.key(o.path)
	if _, _, same, err := s.holds(ctx, key, o); err != nil || same {
		return err
	}
	err := s.client.Copy(ctx, staged(o.digest), key)
	if s3.Is(err, s3.CodeNotFound) {
		return problem.New("destination/mismatch", "%s has not been put, or is gone", s.client.Location(key)).Hint("release the case again")
	}
	return err
}

// deleteOthers deletes what the lists of other versions name and the tree
// lacks, and then those lists.
func (s *Sink) deleteOthers(ctx context.Context, t *tree) error {
	var lists []string
	for info, err := range s.client.List(ctx, t.key(listFolder)) {
		if err != nil {
			return err
		}
		lists = append(lists, info.Key)
	}
	for _, key := range lists {
		if err := s.deleteListed(ctx, t, key); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sink) deleteListed(ctx context.Context, t *tree, at string) error {
	list, err := s.published(ctx, at)
	if err != nil || list == nil {
		return err
	}
	for _, o := range t.objects {
		delete(list.paths, o.path)
	}
	var keys []string
	for path := range list.paths {
		keys = append(keys, t.key(path))
	}
	if err := each(ctx, keys, s.client.Delete); err != nil {
		return err
	}
	return s.client.Delete(ctx, at)
}

// clearStaging deletes what waited, also for a release that never came to its
// end.
func (s *Sink) clearStaging(ctx context.Context) error {
	if _, err := s.client.AbortStale(ctx, staging, nil); err != nil {
		return err
	}
	var keys []string
	for info, err := range s.client.List(ctx, staging) {
		if err != nil {
			return err
		}
		keys = append(keys, info.Key)
	}
	return each(ctx, keys, s.client.Delete)
}
