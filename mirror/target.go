package mirror

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// planSet settles the volumes of an export, and makes sure that nothing else
// stands where they go.
func (e *Exporter) planSet(head bundle.Head, dir string, l *Lock) (*bundle.SetPlan, error) {
	only, err := e.only(head.Manifest)
	if err != nil {
		return nil, err
	}
	set, err := bundle.PlanSet(head, bundle.SetOptions{Limits: e.VolumeSizes, Only: only})
	if err != nil {
		return nil, err
	}
	numbers, err := e.numbers(set)
	if err != nil {
		return nil, err
	}
	paths := set.Paths(dir)
	for _, n := range numbers {
		if err := e.checkTarget(paths[n-1], set, l); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// numbers are the volumes to write: those asked for, or all of the set.
func (e *Exporter) numbers(set *bundle.SetPlan) ([]int, error) {
	for _, n := range e.Volumes {
		if n < 1 || n > set.Count() {
			return nil, problem.New("volume/no-such", "the set has no volume %d", n).With(fmt.Sprintf("volumes:  %d", set.Count()))
		}
	}
	if len(e.Volumes) > 0 {
		return e.Volumes, nil
	}
	numbers := make([]int, set.Count())
	for i := range numbers {
		numbers[i] = i + 1
	}
	return numbers, nil
}

// checkTarget refuses to replace a bundle of the same serial that has another
// manifest, and a volume of another set of this bundle: somebody may have
// carried it away already, or need it beside its siblings.
func (e *Exporter) checkTarget(path string, set *bundle.SetPlan, l *Lock) error {
	if _, err := os.Lstat(path); isMissing(err) {
		return nil
	} else if err != nil {
		return err
	}
	there, err := bundle.OpenFile(path)
	if there == nil {
		return problem.New("medium/taken", "%s is there and is no bundle: %w", path, err).Hint("remove it, or write to another folder with --to")
	}
	head := there.Head()
	manifest, id, known := head.Digest(), cas.Digest{}, false
	if manifest == set.Manifest() {
		id, known = e.setOf(there)
	}
	if err := there.Close(); err != nil {
		return err
	}
	if manifest != set.Manifest() {
		return serialChanged(l.Serial, "manifest", manifest, set.Manifest()).
			With("found:   " + path).Hint("keep that bundle; bring the newest packhof.ledger back from version control, then  packhof plan")
	}
	if known && id != set.ID() {
		return problem.New("medium/taken", "%s is there and belongs to another volume set of serial %d", filepath.Base(path), l.Serial).
			With("want:  set "+set.ID().Short(), "got:   set "+id.Short()).Hint("write to another folder with --to, or remove the volumes of that set")
	}
	return nil
}

// setOf is the set that a volume of our bundle belongs to. One that cannot be
// vouched for, such as one that was cut off, is left to the writing itself.
func (e *Exporter) setOf(there *bundle.Sealed) (id cas.Digest, known bool) {
	trust, err := there.Trust(e.Trust.Trust, e.Now)
	if err != nil {
		return id, false
	}
	b, err := there.Verify(trust, e.Now)
	if err != nil {
		return id, false
	}
	return b.Volumes()[0].Set, true
}
