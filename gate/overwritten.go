package gate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// Whoever copies an older file over the database of a gate that runs leaves it
// the log of what it wrote last, and its pages in memory: they would be written
// into the older file, and what comes of both is none. Only the process that has
// the lock writes to the file, and only while it has the connection that writes:
// what else changes it is somebody else.

// leftFile is the file of the database, without the write-ahead log beside it, as
// this process has left it.
type leftFile struct {
	size     int64 // in bytes
	modified time.Time
	known    fileState // when it was last read alone: SQLite may have brought a part of its log into it since
}

// fileState is what the file says of itself.
type fileState struct {
	schema  int64
	entries int64     // of the audit log
	root    tlog.Hash // of that log
}

// alone uses the connection that writes, which nobody else has meanwhile. The
// file must be there, and be as it was left.
func (d *database) alone(ctx context.Context, use func(*sql.Conn) error) (err error) {
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if closed := conn.Close(); !errors.Is(closed, sql.ErrConnDone) { // or else it broke, and is closed
			err = errors.Join(err, closed)
		}
	}()
	if err := d.there(ctx, conn); err != nil {
		return err
	}
	err = use(conn)
	return errors.Join(err, d.leave(context.WithoutCancel(ctx), conn))
}

// leave takes the file as it is now for how this process has left it. It judges
// nothing: while others read, SQLite brings only a part of its log into the
// file, which alone is no whole database then.
func (d *database) leave(ctx context.Context, writer *sql.Conn) error {
	info, err := os.Stat(d.path)
	if err != nil || !os.SameFile(info, d.file) {
		return d.there(ctx, writer) // which keeps what is in it
	}
	if d.isAsLeft(info) {
		return nil
	}
	d.left.size, d.left.modified = info.Size(), info.ModTime()
	if now, err := d.readAlone(ctx); err == nil {
		d.left.known = now
	}
	return nil
}

func (d *database) isAsLeft(info os.FileInfo) bool {
	return info.Size() == d.left.size && info.ModTime().Equal(d.left.modified)
}

// remember takes the file as it is for the one that this process goes on with.
func (d *database) remember(ctx context.Context) error {
	if err := d.write.QueryRowContext(ctx, `PRAGMA schema_version`).Scan(&d.schema); err != nil {
		return err
	}
	d.left = leftFile{size: d.file.Size(), modified: d.file.ModTime()}
	now, err := d.readAlone(ctx)
	if isAnother(err) {
		return nil // all of it may be in the write-ahead log yet
	}
	d.left.known = now
	return err
}

// asLeft makes sure that the file is as it was left, or goes on from that: with
// all that it had, or as a part of what it is with the log beside it.
func (d *database) asLeft(ctx context.Context, info os.FileInfo) error {
	if d.overwritten != nil || d.isAsLeft(info) {
		return d.overwritten
	}
	now, err := d.readAlone(ctx)
	if isAnother(err) && info.Size() > 0 && d.isWholeWithLog(ctx) { // SQLite would throw the log of an empty file away
		now, err = d.left.known, nil
	}
	if isAnother(err) {
		d.overwritten = d.giveUp(err)
		close(d.lost)
		return d.overwritten
	}
	if err != nil {
		return err
	}
	d.left = leftFile{size: info.Size(), modified: info.ModTime(), known: now}
	return nil
}

// anotherError says that a file is not the one that was left.
type anotherError struct{ why error }

func (e *anotherError) Error() string { return e.why.Error() }
func (e *anotherError) Unwrap() error { return e.why }

func isAnother(err error) bool {
	_, is := errors.AsType[*anotherError](err)
	return is
}

// readAlone reads the file without the log beside it. A file that cannot be what
// was left is an anotherError.
func (d *database) readAlone(ctx context.Context) (now fileState, err error) {
	db, err := openSQLiteAlone(d.path)
	if err != nil {
		return now, err
	}
	now, err = stateOf(ctx, db)
	switch {
	case isBroken(err):
		err = &anotherError{err}
	case err == nil:
		err = d.goesOn(ctx, db, now)
	}
	return now, errors.Join(err, db.Close())
}

// stateOf reads what a file says of itself. Pages of two files that happen to
// fit are an anotherError: each step writes the head of its log down.
func stateOf(ctx context.Context, q queryer) (now fileState, err error) {
	if err := q.QueryRowContext(ctx, `PRAGMA schema_version`).Scan(&now.schema); err != nil {
		return now, err
	}
	if now.entries, err = logSize(ctx, q); err != nil {
		return now, err
	}
	if now.root, err = tlog.TreeHash(now.entries, treeHashes{ctx, q}); err != nil {
		return now, err
	}
	said, err := saidEntries(ctx, q)
	if err == nil && said != now.entries && said >= 0 {
		err = &anotherError{fmt.Errorf("its audit log has %d entries, and says that it has %d", now.entries, said)}
	}
	return now, err
}

// saidEntries is how many entries the log had when its head was last written
// down; -1 where none was.
func saidEntries(ctx context.Context, q queryer) (int64, error) {
	var head []byte
	err := q.QueryRowContext(ctx, `SELECT checkpoint FROM head_signed`).Scan(&head)
	if errors.Is(err, sql.ErrNoRows) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	var n int64
	if lines := strings.SplitN(string(head), "\n", 3); len(lines) == 3 {
		if n, err = strconv.ParseInt(lines[1], 10, 64); err == nil && n >= 0 {
			return n, nil
		}
	}
	return 0, &anotherError{errors.New("the head of its audit log is none")}
}

// goesOn holds what the file is against what it was.
func (d *database) goesOn(ctx context.Context, q queryer, now fileState) error {
	was := d.left.known
	switch {
	case was == fileState{}: // nothing was in it yet
		return nil
	case now.schema != was.schema && now.schema != d.schema:
		return &anotherError{errors.New("it was made anew")}
	}
	return was.isBeginning(ctx, q, now.entries)
}

// isBeginning holds a log of so many entries against what it was.
func (s fileState) isBeginning(ctx context.Context, q queryer, entries int64) error {
	if entries < s.entries {
		return &anotherError{fmt.Errorf("its audit log has %d entries, and it had %d", entries, s.entries)}
	}
	root, err := tlog.TreeHash(s.entries, treeHashes{ctx, q})
	if err == nil && root != s.root {
		err = &anotherError{errors.New("its audit log is another one")}
	}
	return err
}

// isWholeWithLog tells a file that somebody else's checkpoint has brought half
// up to date from one that belongs to no log of ours: together with the log the
// first is a whole database that goes on from what was left.
func (d *database) isWholeWithLog(ctx context.Context) bool {
	look, err := openSQLiteAs(d.path, url.Values{"mode": {"ro"}}, 1)
	if err != nil {
		return false
	}
	db := &reading{look, d.path}
	now, err := stateOf(ctx, db)
	if err == nil {
		err = errors.Join(d.goesOn(ctx, db, now), wholeDatabase(ctx, db))
	}
	if err == nil {
		err = d.stands(ctx, db) // pages of an older file may fit, and say less
	}
	return errors.Join(err, db.Close()) == nil
}

// giveUp puts the log of what was written aside, which belongs to a file that is
// no more: SQLite would write it into the other one.
func (d *database) giveUp(what error) error {
	p := problem.New("gate/database-overwritten", "another file was copied over the database while the gate ran: %w", what).
		With("file:  "+d.path).Hint("%s", restoreHint)
	for _, suffix := range []string{"-wal", "-shm"} {
		aside, err := freeName(d.path + suffix)
		if err == nil {
			err = os.Rename(d.path+suffix, aside)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return errors.Join(p, err)
		}
		if err == nil {
			p = p.With("aside:  " + aside)
		}
	}
	if err := cas.SyncDir(filepath.Dir(d.path)); err != nil { // or a power cut brings them back
		return errors.Join(p, err)
	}
	return p
}

// openSQLiteAlone opens a file for reading as if nobody had it, without the
// write-ahead log beside it.
func openSQLiteAlone(path string) (*reading, error) {
	db, err := openSQLiteAs(path, url.Values{"immutable": {"1"}}, 1)
	return &reading{db, path}, err
}

// isBroken tells a file that is no database of a gate from one that could not
// be read.
func isBroken(err error) bool {
	return errors.Is(err, sql.ErrNoRows) || problem.CodeOf(err) == codeBroken
}

// Lost is closed when another file was copied over the database. Nothing is
// written from then on; Close says what happened.
func (g *Gate) Lost() <-chan struct{} { return g.db.lost }
