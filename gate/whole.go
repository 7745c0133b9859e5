package gate

import (
	"context"
	"strconv"
	"strings"

	"github.com/packhof/packhof/bundle"
)

// What a bundle brings may be what another case was waiting for. Such a case
// goes on by itself: nobody has to bring a volume of it once more.

// mostGoneOn bounds how many other cases one receive has go on: whoever brought
// a bundle waits for that. The next one, or the next start, goes on with more.
const mostGoneOn = 10

// goOnWithOthers has cases go on of which nothing is lacking any more. What
// keeps one of them from it is no failure of the receive that this is a part
// of: it is written down with that case, or show and Doctor tell of it.
func (g *Gate) goOnWithOthers(ctx context.Context, but CaseID, observe func(Progress)) {
	waiting, err := waitingCases(ctx, g.db.read)
	if err != nil {
		return // what was received is written down; this was only to go on from there
	}
	gone := 0
	for _, id := range waiting {
		if ctx.Err() != nil || gone == mostGoneOn {
			return
		}
		if id == but {
			continue
		}
		if whole, _ := g.goOnIfWhole(ctx, id, observe); whole {
			gone++
		}
	}
}

// waitingCases are the oldest cases of which not everything has been copied.
func waitingCases(ctx context.Context, q queryer) ([]CaseID, error) {
	return rowsOf(ctx, q, scanNumber, `SELECT id FROM cases WHERE state = ? ORDER BY id LIMIT ?`, Received, maxCases)
}

// goOnIfWhole has a case that waits go on as its last volume would, if nothing
// of it is lacking: every byte is read before it is verified. A case that
// somebody is bringing more of is left to them.
func (g *Gate) goOnIfWhole(ctx context.Context, id CaseID, observe func(Progress)) (whole bool, err error) {
	r, err := rowOf(ctx, g.db.read, id)
	if err != nil {
		return false, err
	}
	free, ok := g.busy.take(manifestLock(r.Manifest))
	if !ok {
		return false, nil
	}
	defer free()
	if r, err = rowOf(ctx, g.db.read, id); err != nil || r.State != Received { // somebody may have brought the rest meanwhile
		return false, err
	}
	if whole, err = g.hasAll(ctx, r); err != nil || !whole {
		return whole, err
	}
	if whole, err = g.proveWhole(ctx, r, observe); err != nil || !whole {
		return whole, err
	}
	return true, g.advance(ctx, itself(), id, observe)
}

// hasAll tells whether nothing of a case's content is lacking, by names and
// sizes.
func (g *Gate) hasAll(ctx context.Context, r *row) (bool, error) {
	v, err := g.bundleOf(ctx, g.db.read, r.ID)
	if err != nil {
		return false, err
	}
	lacks, err := v.bundle.StoreLacks(g.store)
	return err == nil && len(lacks) == 0, err
}

// proveWhole reads all of a case's content in the store. What has rotted is
// dropped, and then it waits as before, for somebody who brings that again.
func (g *Gate) proveWhole(ctx context.Context, r *row, observe func(Progress)) (whole bool, err error) {
	v, err := g.bundleOf(ctx, g.db.read, r.ID)
	if err != nil {
		return false, err
	}
	b := v.bundle
	err = b.CopyTo(ctx, g.store, bundle.CopyOptions{
		Observe: observer(observe, r.ID, "prove", b.Manifest().Totals.Bytes), Known: g.begun.begin(b.Digest(), g.store),
	})
	if ctx.Err() != nil {
		return true, err
	}
	lacks, lacksErr := b.StoreLacks(g.store)
	if lacksErr != nil || len(lacks) > 0 {
		return false, lacksErr
	}
	if err != nil {
		return true, g.wholeButWrong(ctx, r, err)
	}
	g.begun.end(b.Digest())
	return true, g.step(ctx, "verified", func(t *tx) error { return t.noteCopied(ctx, itself(), r, b, nil) })
}

// wholeButWrong records that content which is all here, and is what was signed
// byte by byte, is not what the manifest says of it: nobody tries that again
// before somebody brings the bundle anew.
func (g *Gate) wholeButWrong(ctx context.Context, r *row, failure error) error {
	why := asProblem(failure)
	if !isDamage(failure, why.Code) {
		return failure
	}
	if err := g.step(ctx, "damaged", func(t *tx) error {
		if err := t.move(ctx, r, Damaged, why); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: itself().Name(), Type: "case.damaged", Outcome: outcomeFailed, Case: r.ID, Bundle: r.label(), Detail: why.What, Data: why})
	}); err != nil {
		return err
	}
	return failure
}

// forgotten lists cases that wait although nothing of them is lacking: what
// should have made them go on failed. Where there is no store nobody can tell.
func (g *Gate) forgotten(ctx context.Context) ([]CaseID, error) {
	if g.store == nil {
		return nil, nil
	}
	waiting, err := waitingCases(ctx, g.db.read)
	if err != nil {
		return nil, err
	}
	var list []CaseID
	for _, id := range waiting {
		r, err := rowOf(ctx, g.db.read, id)
		if err != nil || !g.waits(r) {
			continue // its row is told of beside
		}
		if whole, err := g.hasAll(ctx, r); err == nil && whole {
			list = append(list, id)
		}
	}
	return list, nil
}

func numbersText(ids []CaseID) string {
	var texts []string
	for _, id := range ids[:min(len(ids), maxEvidence)] {
		texts = append(texts, strconv.FormatInt(id, 10))
	}
	if len(ids) > maxEvidence {
		texts = append(texts, "…")
	}
	return strings.Join(texts, ", ")
}
