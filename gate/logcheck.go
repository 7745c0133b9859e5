package gate

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/packhof/packhof/bundle"
)

// logCheck is the last result of checkLog, which reads all of the log.
type logCheck struct {
	mu   sync.Mutex
	at   time.Time
	size int64
	root tlog.Hash
	err  error
}

const logCheckHolds = time.Minute

// checkedLog is checkLog, at most once a minute.
func (g *Gate) checkedLog(ctx context.Context) (int64, tlog.Hash, error) {
	c := &g.logs
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := g.clock(); c.at.IsZero() || now.Sub(c.at) > logCheckHolds || now.Before(c.at) {
		size, root, err := g.checkLog(ctx)
		if ctx.Err() != nil {
			return size, root, err
		}
		c.at, c.size, c.root, c.err = now, size, root, err
	}
	return c.size, c.root, c.err
}

// checkLog holds the whole log against its anchor, computes the tree anew from
// the leaves, and compares every hash and every seal with the stored ones.
func (g *Gate) checkLog(ctx context.Context) (size int64, root tlog.Hash, err error) {
	err = g.snapshot(ctx, func(q *view) error {
		if err := q.holds(ctx); err != nil {
			return err
		}
		log, err := readLog(ctx, q)
		if err != nil {
			return err
		}
		if err := errors.Join(log.compareHashes(ctx, q), log.compareSeals(ctx, q)); err != nil {
			return err
		}
		size = log.size
		root, err = q.covers(ctx, g.anchor, log)
		return err
	})
	return size, root, err
}

// view is one state of the database, with what was certain of the log before
// it: what was written since is not held against it.
type view struct {
	*sql.Tx
	path   string
	newest map[subject]int64
	size   int64 // and root, of the anchor
	root   tlog.Hash
}

func (v *view) trouble(err error) error { return databaseTrouble(v.path, err) }

// QueryRowContext implements queryer.
func (v *view) QueryRowContext(ctx context.Context, query string, args ...any) scanner {
	return oneRow{v.Tx.QueryRowContext(ctx, query, args...), v}
}

// snapshot reads from one state of the database, whatever is written meanwhile.
func (g *Gate) snapshot(ctx context.Context, read func(*view) error) error {
	v := &view{path: g.db.path, newest: g.newest.all()}
	v.size, v.root = g.anchor.head()
	tx, err := g.db.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return g.trouble(err)
	}
	v.Tx = tx
	return errors.Join(read(v), rolledBack(tx))
}

// wholeLog is what all leaves of the log give, one after the other.
type wholeLog struct {
	size   int64
	hashes []tlog.Hash
	seals  map[subject]int64
	logins map[login]time.Time // of accounts, where they have begun sessions, and when last
}

// ReadHashes implements tlog.HashReader.
func (l *wholeLog) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index >= int64(len(l.hashes)) {
			return nil, errLogBroken
		}
		list[i] = l.hashes[index]
	}
	return list, nil
}

func readLog(ctx context.Context, q queryer) (*wholeLog, error) {
	log := &wholeLog{seals: map[subject]int64{}, logins: map[login]time.Time{}}
	_, err := rowsOf(ctx, q, func(s scanner) (struct{}, error) {
		var n, of int64
		var record []byte
		if err := s.Scan(&n, &record, &of); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, log.add(n, of, record)
	}, `SELECT n, bytes, coalesce(case_id, 0) FROM leaf ORDER BY n`)
	return log, err
}

// add takes the next leaf. The column by which the leaves of a case are found
// must be what the leaf itself says.
func (l *wholeLog) add(n int64, of CaseID, record []byte) error {
	if n != l.size {
		return errors.Join(errLogBroken, fmt.Errorf("entry %d is missing", l.size))
	}
	hashes, err := tlog.StoredHashes(n, record, l)
	if err != nil {
		return err
	}
	l.hashes = append(l.hashes, hashes...)
	l.size++
	var said struct { // little of it, since a gate reads all leaves when it is opened
		Case   CaseID     `json:"case"`
		Type   string     `json:"type"`
		Stands []followed `json:"stands"`
	}
	if err := json.Unmarshal(record, &said); err != nil || said.Case != of {
		return errors.Join(errLogBroken, err)
	}
	if said.Type == typeLogin {
		return l.addLogin(record)
	}
	return l.addStandings(n, said.Stands)
}

// followed is what of a standing tells which follows which.
type followed struct {
	Of     subject `json:"of"`
	Before *int64  `json:"before"`
}

// addStandings takes what a leaf says of rows. Where it names the leaf that it
// followed, that must be the last one.
func (l *wholeLog) addStandings(n int64, list []followed) error {
	for _, s := range list {
		before, ok := l.seals[s.Of]
		if !ok {
			before = noSeal
		}
		if s.Before != nil && *s.Before != before {
			return errors.Join(errLogBroken, fmt.Errorf("entry %d goes on from entry %d, and the last about %s is %d", n, *s.Before, s.Of, before))
		}
		l.seals[s.Of] = n
	}
	return nil
}

// addLogin takes where an account has begun a session. Leaves from before that
// was written do not say.
func (l *wholeLog) addLogin(record []byte) error {
	var said struct {
		Actor   string         `json:"actor"`
		Outcome string         `json:"outcome"`
		Wall    bundle.Instant `json:"wall"`
		Data    loginFrom      `json:"data"`
	}
	if err := json.Unmarshal(record, &said); err != nil {
		return errors.Join(errLogBroken, err)
	}
	if said.Outcome == outcomeOK && said.Data.From != everywhere {
		l.logins[login{said.Actor, said.Data.From}] = said.Wall.Time
	}
	return nil
}

// compareHashes holds the stored hashes against those that the leaves give.
func (l *wholeLog) compareHashes(ctx context.Context, q queryer) error {
	next := 0
	_, err := rowsOf(ctx, q, func(s scanner) (struct{}, error) {
		var i int
		var hash []byte
		if err := s.Scan(&i, &hash); err != nil {
			return struct{}{}, err
		}
		if i != next || i >= len(l.hashes) || !bytes.Equal(hash, l.hashes[i][:]) {
			return struct{}{}, errLogBroken
		}
		next++
		return struct{}{}, nil
	}, `SELECT i, hash FROM leaf_hash ORDER BY i`)
	if err == nil && next != len(l.hashes) {
		err = errLogBroken
	}
	return err
}

// compareSeals makes sure that each seal leads to the last leaf that speaks of
// its subject.
func (l *wholeLog) compareSeals(ctx context.Context, q queryer) error {
	stored := map[subject]int64{}
	_, err := rowsOf(ctx, q, func(s scanner) (struct{}, error) {
		var of subject
		var n int64
		err := s.Scan(&of, &n)
		stored[of] = n
		return struct{}{}, err
	}, `SELECT subject, leaf FROM seal`)
	if err == nil && !maps.Equal(stored, l.seals) {
		err = errLogBroken
	}
	return err
}

// checkRows compares all rows that decide something with what the audit log
// says of them, and looks for those of which it says nothing. Steps may go on
// meanwhile: it is no snapshot, since the anchor would run ahead of that.
func (g *Gate) checkRows(ctx context.Context) error {
	subjects, err := rowsOf(ctx, g.db.read, func(s scanner) (subject, error) {
		var of subject
		return of, s.Scan(&of)
	}, `SELECT subject FROM seal UNION SELECT 'trust' UNION SELECT 'case ' || id FROM cases UNION SELECT 'case ' || case_id FROM decision
		UNION SELECT 'account ' || name FROM account UNION SELECT 'channel ' || name FROM channel UNION SELECT 'channel ' || channel FROM serial
		UNION SELECT 'channel ' || channel FROM holding UNION SELECT 'names ' || destination FROM name ORDER BY 1`)
	if err != nil {
		return err
	}
	for _, s := range subjects {
		if err := g.sealed(ctx, g.db.read, s); err != nil {
			return err
		}
	}
	if err := g.checkKept(ctx); err != nil {
		return err
	}
	return g.checkDepot(ctx)
}
