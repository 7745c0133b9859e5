package mirror

import (
	"errors"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// planSet settles the volumes of an export, and makes sure that nothing else
// stands where they go.
func (e *Exporter) planSet(head bundle.Head, dir string, l *Lock) (*bundle.SetPlan, error) {
	only, err := e.only(head.Manifest)
	if err != nil {
		return nil, err
	}
	e.pieces = only
	set, err := bundle.PlanSet(head, bundle.SetOptions{Limits: e.VolumeSizes, Only: only, Recipients: e.Recipients})
	if err != nil {
		return nil, err
	}
	if e.Again != nil && e.Again.Set != set.ID() {
		return nil, problem.New("volume/no-such-set", "the set %s cannot be made again: another comes of it now", e.Again.Set.Short()).
			With("was:  "+e.Again.Set.String(), "now:  "+set.ID().String()).Hint("leave --set out to send all of the serial")
	}
	numbers, err := set.Numbers(e.Volumes)
	if err != nil {
		return nil, e.withSets(err, head.Digest())
	}
	paths := set.Paths(dir)
	for _, n := range numbers {
		if err := checkTarget(paths[n-1], set, l); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// checkTarget refuses to replace what is no volume of the set. A bundle of the
// same serial that has another manifest means that the ledger has fallen behind.
func checkTarget(path string, set *bundle.SetPlan, l *Lock) error {
	err := set.CheckTarget(path)
	if taken, ok := errors.AsType[*bundle.TakenError](err); ok {
		return serialChanged(l.Serial, "manifest", taken.Got, taken.Want).
			With("found:   " + path).Hint("keep that bundle; bring the newest packhof.ledger back from version control, then  packhof plan")
	}
	return err
}
