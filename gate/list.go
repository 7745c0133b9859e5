package gate

import (
	"context"
	"encoding/json/v2"
	"errors"
)

// Cases lists every case, the newest first.
func (g *Gate) Cases(ctx context.Context, by Actor) ([]Summary, error) {
	if err := by.needs(MayRead); err != nil {
		return nil, err
	}
	rows, err := rowsOf(ctx, g.db.read, scanRow, `SELECT `+rowColumns+` FROM cases ORDER BY id DESC`)
	if err != nil {
		return nil, err
	}
	list := []Summary{}
	for _, r := range rows {
		if r.Approvals, err = approvalsOf(ctx, g.db.read, r); err != nil {
			return nil, err
		}
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
	if err != nil {
		return nil, err
	}
	if r.Approvals, err = approvalsOf(ctx, g.db.read, r); err != nil {
		return nil, err
	}
	c := &Case{Summary: r.Summary, File: r.file, Problem: r.problem}
	if c.History, err = g.history(ctx, id); err != nil {
		return nil, err
	}
	if c.Loads, err = loadsOf(ctx, g.db.read, id); err != nil {
		return nil, err
	}
	c.Progress, err = g.progressOf(ctx, r)
	return c, err
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
		err := json.Unmarshal(text, &receipt)
		l.Artifact, l.Name = digest.value(), Name{Repository: repository, Tag: tag}.String()
		l.Location, l.Blobs, l.Bytes, l.Kept = receipt.Location, receipt.Blobs, receipt.Bytes, receipt.Kept
		return l, err
	}, `SELECT destination, digest, repository, tag, state, receipt FROM load WHERE case_id = ? ORDER BY destination, artifact`, id)
	return append([]Load{}, list...), err
}

// progressOf counts the bytes of a case that are here. Only while it is being
// received is that not simply all of them.
func (g *Gate) progressOf(ctx context.Context, r *row) (int64, error) {
	switch r.State {
	case NotGenuine, Blocked, Expired:
		if r.decision == nil {
			return 0, nil
		}
		return r.Size, nil
	case Received, Damaged:
	default:
		return r.Size, nil
	}
	b, err := g.bundleOf(ctx, g.db.read, r.ID)
	if err != nil {
		return 0, nil // it is a figure for people; who acts on the case will meet the error
	}
	var here int64
	for _, blob := range b.Manifest().Blobs {
		there, err := g.store.Has(blob.Digest, blob.Size)
		if err != nil {
			return 0, err
		}
		if there {
			here += blob.Size
		}
	}
	return here, nil
}

// Resume goes on, after a restart, with every case that can go on by itself:
// what was copied is inspected and judged, and a release that was under way is
// brought to its end. What waits for a medium or for people stays as it is. The
// errors of several cases are joined.
func (g *Gate) Resume(ctx context.Context) error {
	rows, err := rowsOf(ctx, g.db.read, scanRow, `SELECT `+rowColumns+` FROM cases WHERE state IN (?, ?, ?) ORDER BY id`, Verified, Inspected, Loading)
	if err != nil {
		return err
	}
	var failed error
	for _, r := range rows {
		if r.State == Loading {
			if _, err := g.Release(ctx, itself(), r.ID, nil); err != nil {
				failed = errors.Join(failed, err)
			}
			continue
		}
		if err := g.advance(ctx, itself(), r.ID, nil); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
