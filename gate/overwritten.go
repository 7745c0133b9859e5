package gate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/packhof/packhof/internal/problem"
)

// Whoever copies an older file over the database of a gate that runs leaves it
// the log of what it wrote last, and its pages in memory: they would be written
// into the older file, and what comes of both is none. Only the process that has
// the lock writes to the file, and only when it ends a step: what else changes
// it is somebody else.

// leftFile is the file of the database, without the write-ahead log beside it, as
// this process has left it.
type leftFile struct {
	size     int64 // in bytes
	modified time.Time

	known   bool // what follows
	schema  int64
	entries int64     // of the audit log
	root    tlog.Hash // of that log
}

// alone uses the connection that writes, which nobody else has meanwhile. The
// file must be there, and be as it was left, before and after.
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
	if err := use(conn); err != nil {
		return err
	}
	info, err := os.Stat(d.path)
	if err != nil || !os.SameFile(info, d.file) {
		return nil // it is done, and who comes next is told
	}
	return d.asLeft(context.WithoutCancel(ctx), info)
}

// remember takes the file as it is for the one that this process goes on with.
func (d *database) remember(ctx context.Context) error {
	if err := d.write.QueryRowContext(ctx, `PRAGMA schema_version`).Scan(&d.schema); err != nil {
		return err
	}
	now, err := lookAtFile(ctx, d.path)
	if err != nil && !isBroken(err) { // all of it may be in the write-ahead log yet
		return err
	}
	now.size, now.modified = d.file.Size(), d.file.ModTime()
	d.left = now
	return nil
}

// asLeft makes sure that the file is as it was left, or goes on from that.
func (d *database) asLeft(ctx context.Context, info os.FileInfo) error {
	if d.overwritten != nil || info.Size() == d.left.size && info.ModTime().Equal(d.left.modified) {
		return d.overwritten
	}
	now, err := lookAtFile(ctx, d.path)
	if err != nil && !isBroken(err) {
		return err
	}
	if err == nil {
		err = d.goesOn(ctx, now)
	}
	if err != nil {
		d.overwritten = d.giveUp(err)
		close(d.lost)
		return d.overwritten
	}
	now.size, now.modified = info.Size(), info.ModTime()
	d.left = now
	return nil
}

// goesOn holds the file against what it was.
func (d *database) goesOn(ctx context.Context, now leftFile) error {
	switch {
	case !d.left.known:
		return nil
	case now.schema != d.left.schema && now.schema != d.schema:
		return errors.New("it was made anew")
	case now.entries < d.left.entries:
		return fmt.Errorf("its audit log has %d entries, and it had %d", now.entries, d.left.entries)
	}
	db, err := openSQLiteAlone(d.path)
	if err != nil {
		return err
	}
	root, err := tlog.TreeHash(d.left.entries, treeHashes{ctx, db})
	if err == nil && root != d.left.root {
		err = errors.New("its audit log is another one")
	}
	return errors.Join(err, db.Close())
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
	return p
}

// lookAtFile reads what the file says of itself.
func lookAtFile(ctx context.Context, path string) (now leftFile, err error) {
	db, err := openSQLiteAlone(path)
	if err != nil {
		return now, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.QueryRowContext(ctx, `PRAGMA schema_version`).Scan(&now.schema); err != nil {
		return now, err
	}
	if now.entries, err = logSize(ctx, db); err != nil {
		return now, err
	}
	now.root, err = tlog.TreeHash(now.entries, treeHashes{ctx, db})
	now.known = err == nil
	return now, err
}

// openSQLiteAlone opens a file for reading as if nobody had it, without the
// write-ahead log beside it.
func openSQLiteAlone(path string) (*reading, error) {
	query := url.Values{"immutable": {"1"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+query.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &reading{db, path}, nil
}

// isBroken tells a file that is no database of a gate from one that could not
// be read.
func isBroken(err error) bool {
	return errors.Is(err, sql.ErrNoRows) || problem.CodeOf(err) == codeBroken
}

// Lost is closed when another file was copied over the database. Nothing is
// written from then on; Close says what happened.
func (g *Gate) Lost() <-chan struct{} { return g.db.lost }
