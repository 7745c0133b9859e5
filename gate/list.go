package gate

import (
	"context"
	"encoding/json/v2"
	"unicode/utf8"
)

// maxCases is how many cases a list shows.
const maxCases = 1000

// Cases lists cases, the newest first: all that somebody still has to do
// something about, and as many of the rest as make 1,000. A case whose row
// cannot be right is Unreadable.
func (g *Gate) Cases(ctx context.Context, by Actor) ([]Summary, error) {
	if err := by.needs(MayRead); err != nil {
		return nil, err
	}
	rows, err := rowsOf(ctx, g.db.read, func(s scanner) (*row, error) {
		r, err := scanSummary(s)
		if isRowDamaged(err) {
			return &row{Summary: broken(r), unread: true}, nil
		}
		return r, err
	},
		`SELECT * FROM (SELECT `+summaryColumns+` FROM cases ORDER BY state IN (?, ?, ?, ?, ?), id DESC LIMIT ?) ORDER BY id DESC`,
		Loaded, NotGenuine, Blocked, Rejected, Expired, maxCases)
	if err != nil {
		return nil, err
	}
	withdrawn, err := withdrawnNames(ctx, g.db.read)
	if err != nil {
		return nil, err
	}
	held, err := channelsHold(ctx, g.db.read)
	if err != nil {
		return nil, err
	}
	list := []Summary{}
	for _, r := range rows {
		r.Withdrawn = withdrawn[r.ID]
		r.Later = r.overtakenBy(held[r.Channel])
		if r.unread {
			list = append(list, r.Summary)
			continue
		}
		if r.Approvals, err = approvalsOf(ctx, g.db.read, r); err != nil {
			return nil, err
		}
		r.Waiting = g.waits(r)
		list = append(list, r.Summary)
	}
	return list, nil
}

// Case tells all about one case.
func (g *Gate) Case(ctx context.Context, by Actor, id CaseID) (*Case, error) {
	if err := by.needs(MayRead); err != nil {
		return nil, err
	}
	r, err := rowOf(ctx, g.db.read, id)
	if isRowDamaged(err) {
		return g.brokenCase(ctx, r, err)
	}
	if err != nil {
		return nil, err
	}
	if r.Approvals, err = approvalsOf(ctx, g.db.read, r); err != nil {
		return nil, err
	}
	r.Waiting = g.waits(r)
	c := &Case{Summary: r.Summary, File: r.file, Problem: r.problem}
	var lacked *Lacking
	if c.History, lacked, err = g.history(ctx, id); err != nil {
		return nil, err
	}
	if c.Loads, err = loadsOf(ctx, g.db.read, id); isRowDamaged(err) {
		return g.brokenCase(ctx, r, err)
	} else if err != nil {
		return nil, err
	}
	if c.Later, err = overtaking(ctx, g.db.read, &r.Summary); err != nil {
		return nil, err
	}
	for i := range c.Loads {
		if c.Loads[i].Withdrawn, err = withdrawnReason(ctx, g.db.read, r.Channel, c.Loads[i].Artifact); err != nil {
			return nil, err
		}
		if c.Loads[i].Withdrawn != "" {
			c.Withdrawn++
		}
	}
	if c.Progress, err = g.progressOf(ctx, r); err == nil && r.State == Received && lacked.stillHolds(c.Size-c.Progress) {
		c.Lacks = lacked
	}
	return c, err
}

// stillHolds tells whether what was lacking after the last volume is what is
// lacking now, by how much it is: other bundles may have brought some of it, and
// then nobody knows which volumes have the rest.
func (l *Lacking) stillHolds(bytes int64) bool {
	return l != nil && l.Bytes == bytes && len(l.Volumes) > 0
}

// waits tells whether nothing happens to a case before somebody brings more of
// it.
func (g *Gate) waits(r *row) bool {
	return r.State == Received && !g.busy.holds(manifestLock(r.Manifest))
}

func loadsOf(ctx context.Context, q queryer, id CaseID) ([]Load, error) {
	list, err := rowsOf(ctx, q, func(s scanner) (Load, error) {
		var l Load
		var digest digestColumn
		var repository, tag string
		var text []byte
		if err := s.Scan(&l.Destination, &digest, &repository, &tag, &l.State, &text); err != nil {
			return l, err
		}
		var receipt Receipt
		if err := json.Unmarshal(text, &receipt); err != nil {
			return l, rowDamaged(id, "what was loaded of it cannot be read: %w", err)
		}
		l.Artifact, l.Name = digest.value(), Name{Repository: repository, Tag: tag}.String()
		l.Location, l.Blobs, l.Bytes, l.Kept = receipt.Location, receipt.Blobs, receipt.Bytes, receipt.Kept
		if !utf8.ValidString(l.Destination + l.Name + l.State) {
			return l, rowDamaged(id, "what was loaded of it is no text")
		}
		return l, nil
	}, `SELECT destination, digest, repository, tag, state, receipt FROM load WHERE case_id = ? ORDER BY destination, artifact`, id)
	return append([]Load{}, list...), err
}

// progressOf counts the bytes of a case that are here. Only while it is being
// received is that not simply all of them.
func (g *Gate) progressOf(ctx context.Context, r *row) (int64, error) {
	switch r.State {
	case NotGenuine, Blocked, Expired, Rejected:
		if r.decision == nil {
			return 0, nil
		}
		return r.Size, nil
	case Received, Damaged:
	default:
		return r.Size, nil
	}
	v, err := g.bundleOf(ctx, g.db.read, r.ID)
	if err != nil {
		return 0, nil // it is a figure for people; who acts on the case will meet the error
	}
	lacks, err := v.bundle.StoreLacks(g.store)
	return max(0, r.Size-bytesOf(lacks)), err
}

// Resume goes on, after a restart, with every case that can go on by itself:
// what was copied is inspected and judged, what lacks nothing any more is proven
// first, and a release that was under way is brought to its end. What waits for a medium or for people stays as it is.
// What stands against a case is written down with it; only a failure of the
// gate itself is an error. Rows that cannot be right are left alone: the list
// and Doctor show them.
func (g *Gate) Resume(ctx context.Context) error {
	ids, err := rowsOf(ctx, g.db.read, scanNumber, `SELECT id FROM cases WHERE state IN (?, ?, ?, ?, ?, ?) ORDER BY id`, Received, Verified, Inspected, Loading, Approved, PartlyLoaded)
	if err != nil {
		return err
	}
	for _, id := range ids {
		r, err := rowOf(ctx, g.db.read, id)
		if isRowDamaged(err) {
			continue
		}
		if err == nil {
			err = g.resume(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resume goes on with one case, if that can go on by itself.
func (g *Gate) resume(ctx context.Context, r *row) (err error) {
	interrupted := r.problem != nil && r.problem.Code == codeInterrupted
	switch {
	case r.State == Received:
		_, err = g.goOnIfWhole(ctx, r.ID, nil)
	case r.State == Verified || r.State == Inspected:
		err = g.advanceAlone(ctx, r)
	case r.State == Loading || interrupted:
		_, err = g.Release(ctx, itself(), r.ID, nil)
	}
	if ctx.Err() != nil {
		return err
	}
	return g.notResumed(ctx, r, err)
}

// advanceAlone advances a case unless its bundle is just being received, which
// does the same.
func (g *Gate) advanceAlone(ctx context.Context, r *row) error {
	free, ok := g.busy.take(manifestLock(r.Manifest))
	if !ok {
		return nil
	}
	defer free()
	return g.advance(ctx, itself(), r.ID, nil)
}

// notResumed records why a release that a restart interrupted could not even be
// begun again, so that not every start tries anew. Where it had begun, what
// failed has been recorded already, and the case is loading no more.
func (g *Gate) notResumed(ctx context.Context, r *row, failure error) error {
	if failure == nil {
		return nil
	}
	now, err := rowOf(ctx, g.db.read, r.ID)
	if err != nil || now.State != Loading {
		return err
	}
	why := asProblem(failure)
	return g.step(ctx, "not-resumed", func(t *tx) error { return t.stopLoading(ctx, itself(), now, why, why.What, false) })
}
