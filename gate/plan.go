package gate

import (
	"context"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// PlannedDestination is what a release would do at one destination.
type PlannedDestination struct {
	Destination string   `json:"destination"`
	Actions     []Action `json:"actions"`
	Problem     *Problem `json:"problem,omitempty"` // why it cannot be told
}

// Plan asks every destination what a release of the case would write. It
// writes nothing, and is possible before anybody has approved. Of a case that
// is approved it checks before what its release checks.
func (g *Gate) Plan(ctx context.Context, by Actor, id CaseID) ([]PlannedDestination, error) {
	if err := by.needs(MayRead); err != nil {
		return nil, err
	}
	r, err := rowOf(ctx, g.db.read, id)
	if err != nil {
		return nil, err
	}
	if len(r.review) == 0 {
		return nil, problem.New("case/no-review", "case %d has not been judged: it is %s", id, r.State).Hint("packhof-gate show %d", id)
	}
	ready, why := g.ready(ctx, g.db.read, r, r.Needed)
	if ready && r.State != Loaded {
		why = g.foretold(ctx, by, r)
	}
	if why != nil && asProblem(why).Code != codeWaiting {
		return nil, why
	}
	v, err := g.bundleOf(ctx, g.db.read, id)
	if err != nil {
		return nil, err
	}
	plans := []PlannedDestination{}
	for i := range g.destinations {
		d := &g.destinations[i]
		plan := PlannedDestination{Destination: d.Name, Actions: []Action{}}
		release, err := g.releaseFor(ctx, g.db.read, r, v.bundle, d)
		if err == nil {
			release.planning = true
			var actions []Action
			actions, err = d.Sink.Plan(ctx, release)
			plan.Actions = append(plan.Actions, foreignBlocked(actions)...)
		}
		plan.Problem = asProblem(err)
		plans = append(plans, plan)
	}
	return plans, nil
}

// foreignBlocked keeps a release from writing over what the gate has not set
// itself: nobody has seen that in a review.
func foreignBlocked(actions []Action) []Action {
	for i := range actions {
		if a := &actions[i]; a.Effect == EffectReplace && a.Name.Replaces == nil {
			a.Effect, a.Reason = EffectBlocked, "there is something else under this name, which this gate has not set"
		}
	}
	return actions
}

// foretold tells what a release of a case that is approved would find, before
// it asks any destination. It writes nothing, as state does.
func (g *Gate) foretold(ctx context.Context, by Actor, r *row) error {
	s, decision, err := g.judgedNow(ctx, by, r)
	if err != nil {
		return err
	}
	now, err := g.reviewNow(ctx, r, s, decision)
	switch {
	case err != nil:
		return err
	case decision.Verdict.Blocks():
		return denied(decision, r.ID, s.bundle.Manifest())
	case now != r.reviewDigest:
		return changedSince(r.ID, r.reviewDigest, now)
	}
	return nil
}

// releaseFor makes the proof for one destination. Names that a later serial of
// the channel has set stay as they are, so what would have had them is left
// out; a name that another channel has set is not taken from it.
func (g *Gate) releaseFor(ctx context.Context, q queryer, r *row, b *bundle.Bundle, d *Destination) (*Release, error) {
	if err := g.sealed(ctx, q, namesSubject(d.Name)); err != nil {
		return nil, err
	}
	m := b.Manifest()
	names, err := d.names(m.Artifacts)
	if err != nil {
		return nil, err
	}
	release := &Release{bundle: b, caseID: r.ID, destination: d.Name}
	for i, a := range m.Artifacts {
		name, ok := names[i]
		if !ok {
			continue
		}
		before, err := publishedAs(ctx, q, d.Name, name)
		if err != nil {
			return nil, err
		}
		switch {
		case before == nil:
		case before.by(m.Channel).newerThan(m):
			continue
		case before.digest == a.Root.Digest:
		case before.channel != m.Channel:
			return nil, problem.New("destination/name-taken", "the name %s at %s belongs to the channel %s", name, d.Name, before.channel).
				Hint("give the destination another naming for one of the two, or have one channel carry it")
		default:
			name.Replaces = &before.digest
		}
		if err := freeOfOthers(ctx, q, d.Name, name); err != nil {
			return nil, err
		}
		release.artifacts, release.places, release.names = append(release.artifacts, a), append(release.places, i), append(release.names, name)
	}
	return release, nil
}

// freeOfOthers refuses a tree whose files would lie inside another tree, or the
// other way round: under one path there would be two files.
func freeOfOthers(ctx context.Context, q queryer, destination string, n Name) error {
	if !n.Kind.IsTree() {
		return nil
	}
	folder := n.folder()
	others, err := rowsOf(ctx, q, func(s scanner) (Name, error) {
		var other Name
		return other, s.Scan(&other.Repository, &other.Tag, &other.Kind)
	}, `SELECT repository, tag, kind FROM name WHERE destination = ? AND NOT (repository = ? AND tag = ?)
		AND (substr(repository || '/' || tag || '/', 1, length(?)) = ? OR substr(?, 1, length(repository) + length(tag) + 2) = repository || '/' || tag || '/')`,
		destination, n.Repository, n.Tag, folder, folder, folder)
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.Kind.IsTree() {
			return problem.New("destination/name-taken", "the files of %s at %s would lie inside those of %s, or the other way round", n, destination, other).
				Hint("give the destination another naming, with {kind} for example, or the artifact another name")
		}
	}
	return nil
}

// nothingInTheWay stops before the first byte where a destination says that it
// would refuse later.
func (g *Gate) nothingInTheWay(ctx context.Context, d *Destination, release *Release) error {
	actions, err := d.Sink.Plan(ctx, release)
	if err != nil {
		return err
	}
	var blocked []string
	for _, a := range foreignBlocked(actions) {
		if a.Effect == EffectBlocked {
			blocked = append(blocked, "blocked:  "+a.Name.String()+": "+a.Reason)
		}
	}
	if len(blocked) == 0 {
		return nil
	}
	return problem.New("destination/refused", "the destination %s would not take everything", d.Name).With(blocked...).
		Hint("clear it at the destination, then release again")
}
