package gate

import (
	"context"
	"database/sql"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// leaf is one record of the audit log, in canonical JSON. Its bytes are the
// record: they are hashed into the tree and never written again.
type leaf struct {
	Version int            `json:"v"`
	N       int64          `json:"n"`
	Wall    bundle.Instant `json:"wall"`  // what the clock said
	Floor   bundle.Instant `json:"floor"` // what is certain
	Actor   string         `json:"actor"`
	Type    string         `json:"type"`
	Outcome string         `json:"outcome"` // ok, refused, failed
	Case    CaseID         `json:"case,omitzero"`
	Bundle  *leafBundle    `json:"bundle,omitzero"`
	Detail  string         `json:"detail"`        // for people; English
	Said    Sentence       `json:"said,omitzero"` // Detail, where the gate itself says it
	Data    any            `json:"data,omitzero"`
	Stands  []standing     `json:"stands,omitzero"` // how the rows stand that were changed for it
}

// leafBundle says which bundle an event is about.
type leafBundle struct {
	Manifest bundle.Digest `json:"manifest"`
	Channel  string        `json:"channel"`
	Epoch    int64         `json:"epoch"`
	Serial   int64         `json:"serial"`
}

const (
	outcomeOK      = "ok"
	outcomeRefused = "refused"
	outcomeFailed  = "failed"
)

// tx is one step: rows change together with the leaf that says so, or not at
// all.
type tx struct {
	*sql.Tx
	gate    *Gate
	now     time.Time
	changed []subject // of which no leaf says yet how they stand
	failed  error     // the first statement that did; none follows it
	size    int64     // of the log with the leaves of this step, 0 if it has none
	root    tlog.Hash // of that log
	sealing map[subject]int64
}

// step runs one transaction, and raises the anchor to what it has logged.
// point names it for tests that kill the gate before and after every commit.
func (g *Gate) step(ctx context.Context, point string, change func(*tx) error) error {
	if err := g.fault(point + ":before"); err != nil {
		return err
	}
	t := &tx{gate: g}
	if err := g.db.alone(ctx, func(writer *sql.Conn) error { return t.commit(ctx, point, writer, change) }); err != nil {
		return g.trouble(err)
	}
	g.newest.raise(t.sealing)
	if err := g.fault(point + ":after"); err != nil {
		return err
	}
	if err := g.anchor.raise(t.size, t.root); err != nil {
		return problem.New(codeAnchorBehind, "it is done and written down, but not yet in the anchor of the audit log: %w", err).
			With("file:  " + g.anchor.path).Hint("make room in the data directory and give it to the user of the gate; the next step, or a restart, brings the anchor up")
	}
	return nil
}

// commit makes the changes of a step, all or none.
func (t *tx) commit(ctx context.Context, point string, writer *sql.Conn, change func(*tx) error) (err error) {
	if t.Tx, err = writer.BeginTx(ctx, nil); err != nil {
		return fmt.Errorf("%s: %w", point, t.gate.trouble(err))
	}
	t.now = t.gate.clock()
	if err = change(t); err == nil {
		err = t.failed
	}
	if err == nil {
		err = t.everythingSaid()
	}
	if err != nil {
		return errors.Join(err, rolledBack(t.Tx))
	}
	if err := t.Commit(); err != nil {
		return fmt.Errorf("%s: %w", point, t.gate.trouble(err))
	}
	return nil
}

// codeAnchorBehind says that a step was committed, and that only the anchor
// does not know of it yet.
const codeAnchorBehind = "gate/anchor-behind"

// isWrittenDown tells an error that comes after a step was committed from one
// that kept it from being.
func isWrittenDown(err error) bool {
	return err == nil || problem.CodeOf(err) == codeAnchorBehind
}

func (t *tx) trouble(err error) error { return t.gate.trouble(err) }

// QueryRowContext implements queryer.
func (t *tx) QueryRowContext(ctx context.Context, query string, args ...any) scanner {
	return oneRow{t.Tx.QueryRowContext(ctx, query, args...), t}
}

// ExecContext changes rows. After one statement has failed there are no others:
// where the disk is full SQLite takes the transaction back by itself, and what
// followed would stand alone, for good, with no leaf that says so.
func (t *tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if t.failed != nil {
		return nil, t.failed
	}
	result, err := t.Tx.ExecContext(ctx, query, args...)
	t.failed = err
	return result, err
}

// rolledBack takes a transaction back. Where the disk is full, or the context
// has ended, the database has done it already.
func rolledBack(t *sql.Tx) error {
	err := t.Rollback()
	if errors.Is(err, sql.ErrTxDone) || err != nil && strings.Contains(err.Error(), "no transaction is active") {
		return nil
	}
	return err
}

// everythingSaid makes sure that nothing has changed since the last leaf of a
// step.
func (t *tx) everythingSaid() error {
	if len(t.changed) > 0 {
		return fmt.Errorf("%s changed, and no entry of the audit log says so", t.changed[0])
	}
	return nil
}

// sign writes down the head of the log with the leaves so far.
func (t *tx) sign(ctx context.Context) (err error) {
	if t.root, err = tlog.TreeHash(t.size, treeHashes{ctx, t}); err != nil {
		return err
	}
	signed, err := t.gate.anchor.checkpoint(t.size, t.root)
	if err != nil {
		return err
	}
	_, err = t.ExecContext(ctx, `INSERT INTO head_signed (one, checkpoint) VALUES (1, ?) ON CONFLICT DO UPDATE SET checkpoint = excluded.checkpoint`, signed)
	return err
}

func (g *Gate) fault(point string) error {
	if g.faults == nil {
		return nil
	}
	return g.faults(point)
}

// log appends a leaf. It fills in number, version, times, and how the rows
// stand that the step has changed: it comes after the changes that it is about.
func (t *tx) log(ctx context.Context, l leaf) error {
	n, err := logSize(ctx, t)
	if err != nil {
		return err
	}
	floor, err := t.floor(ctx)
	if err != nil {
		return err
	}
	if l.Stands, err = t.standings(ctx); err != nil {
		return err
	}
	l.Version, l.N, l.Wall, l.Floor = 1, n, bundle.At(t.now), bundle.At(floor)
	if l.Said.Form != "" {
		l.Detail = l.Said.String()
	}
	record, err := canonical(l)
	if err != nil {
		return err
	}
	hashes, err := tlog.StoredHashes(n, record, treeHashes{ctx, t})
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	var id any
	if l.Case != 0 {
		id = l.Case
	}
	if _, err := t.ExecContext(ctx, `INSERT INTO leaf (n, bytes, at, case_id) VALUES (?, ?, ?, ?)`, n, record, seconds(t.now), id); err != nil {
		return err
	}
	first := tlog.StoredHashIndex(0, n)
	for i, h := range hashes {
		if _, err := t.ExecContext(ctx, `INSERT INTO leaf_hash (i, hash) VALUES (?, ?)`, first+int64(i), h[:]); err != nil {
			return err
		}
	}
	t.size = n + 1
	return errors.Join(t.seal(ctx, n, l.Stands), t.sign(ctx))
}

// treeHashes reads stored hashes of the tree.
type treeHashes struct {
	ctx context.Context
	q   queryer
}

// ReadHashes implements tlog.HashReader.
func (r treeHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		var b []byte
		if err := r.q.QueryRowContext(r.ctx, `SELECT hash FROM leaf_hash WHERE i = ?`, index).Scan(&b); err != nil {
			return nil, fmt.Errorf("audit log: hash %d: %w", index, err)
		}
		if copy(hashes[i][:], b) != tlog.HashSize {
			return nil, fmt.Errorf("audit log: hash %d has %d bytes", index, len(b))
		}
	}
	return hashes, nil
}

var errLogBroken = problem.New("audit/broken", "the audit log was changed: entries and hashes do not fit together").
	Hint("stop, keep the data directory as it is, and compare it with the last backup")

// history gives the events of a case.
//
// lacked is what was lacking after the last volume that was copied, nil where
// none says so.
func (g *Gate) history(ctx context.Context, id CaseID) (events []Event, lacked *Lacking, err error) {
	events, err = rowsOf(ctx, g.db.read, func(s scanner) (Event, error) {
		var raw []byte
		if err := s.Scan(&raw); err != nil {
			return Event{}, err
		}
		var l struct {
			N       int64          `json:"n"`
			Wall    bundle.Instant `json:"wall"`
			Actor   string         `json:"actor"`
			Type    string         `json:"type"`
			Outcome string         `json:"outcome"`
			Detail  string         `json:"detail"`
			Said    Sentence       `json:"said"`
			Data    jsontext.Value `json:"data"`
		}
		if err := json.Unmarshal(raw, &l); err != nil {
			return Event{}, errors.Join(errLogBroken, err)
		}
		e := Event{Leaf: l.N, At: l.Wall.Time, Actor: l.Actor, Type: l.Type, Outcome: l.Outcome, Detail: l.Detail, Said: l.Said}
		if l.Type == "case.volume" && l.Data != nil {
			lacked = &Lacking{}
			return e, json.Unmarshal(l.Data, lacked)
		}
		if l.Outcome == outcomeOK || l.Data == nil {
			return e, nil
		}
		var why Problem
		err := json.Unmarshal(l.Data, &why)
		e.Code = why.Code
		return e, err
	}, `SELECT bytes FROM leaf WHERE case_id = ? ORDER BY n`, id)
	return events, lacked, err
}

// canonical is JSON as RFC 8785 says, so that the same value always gives the
// same bytes.
func canonical(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	value := jsontext.Value(b)
	return value, value.Canonicalize()
}
