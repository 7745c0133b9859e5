package gate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// roomForSteps is how much space a step of a case may need, in bytes: what
// inspection found and what people decide on are in its row.
const roomForSteps = 64 << 20

// noRoomForIndex tells that the index of the write-ahead log could not be made
// or enlarged.
func noRoomForIndex(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() {
	case sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP:
		return true
	}
	return false
}

// databaseTrouble says of an error of the database what is to be done about it.
// Other errors, and those that say so already, it gives back.
func databaseTrouble(path string, err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) || problem.CodeOf(err) != "" {
		return err
	}
	switch primary := e.Code() & 0xff; primary {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		free, freeErr := bundle.FreeSpace(filepath.Dir(path))
		if primary == sqlite3.SQLITE_FULL || freeErr == nil && free < roomForSteps {
			return errors.Join(fullDisk(path, free, err), freeErr)
		}
		return problem.New("gate/database-io", "the disk of the database fails: %w", err).With("file:  " + path).
			Hint("look at the disk: journalctl -k; then start again")
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN:
		return problem.New("gate/read-only", "the database cannot be written: %w", err).With("file:  "+path).
			Hint("give the file and its folder back to the user of the gate: chmod u+rw %s", path)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return databaseBroken(path, err)
	case sqlite3.SQLITE_ERROR:
		if strings.Contains(e.Error(), "no such table") || strings.Contains(e.Error(), "no such column") {
			return databaseBroken(path, err)
		}
	}
	return err
}

func fullDisk(path string, free int64, cause error) error {
	return problem.New("gate/full", "there is not enough space for the database: %w", cause).
		With("file:    "+path, fmt.Sprintf("needed:  %d bytes", roomForSteps), fmt.Sprintf("free:    %d bytes", free)).
		Hint("free space, or move the data directory to a larger disk; then run the same again")
}

// codeBroken says that a file is no database of a gate.
const codeBroken = "gate/database-broken"

func databaseBroken(path string, cause error) error {
	return problem.New(codeBroken, "the database cannot be read: %w", cause).With("file:  "+path).Hint("%s", restoreHint)
}

// trouble is databaseTrouble of this database.
func (g *Gate) trouble(err error) error { return databaseTrouble(g.db.path, err) }

// suffixRescued is added to the name of the database for the copy that is made
// when the file is gone, with a number where there is such a copy already.
const suffixRescued = ".rescued"

// there makes sure that the file that is open is the one in the data directory:
// what is written to one that was deleted is gone when the process ends. Then
// all of it is written to a file beside, once. It must also be as it was left.
func (d *database) there(ctx context.Context, writer *sql.Conn) error {
	info, err := os.Stat(d.path)
	if err == nil && os.SameFile(info, d.file) {
		return d.asLeft(ctx, info)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	d.rescue.Do(func() { d.copied, d.rescued = copyBeside(context.WithoutCancel(ctx), d.path, writer) }) // whoever asks may be about to end
	what := problem.New("gate/no-database", "the database was deleted or replaced while the gate ran").With("missing:  " + d.path)
	if d.rescued != nil {
		return errors.Join(what.Hint("keep this process running, and bring the newest gate.db back before it ends"), d.rescued)
	}
	// SQLite would replay what it left of the lost file into the copy.
	return what.With("copy:     "+d.copied).Hint("stop the gate, then: %s", bringBack(d.path, d.copied))
}

// bringBack is the command that makes a copy the database.
func bringBack(path, copied string) string {
	return fmt.Sprintf("rm -f %s %s && mv -f %s %s", shellWord(path+"-wal"), shellWord(path+"-shm"), shellWord(copied), shellWord(path))
}

// shellWord is a path as a shell takes it.
func shellWord(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// copyBeside writes all of the database at path to a new file.
func copyBeside(ctx context.Context, path string, writer *sql.Conn) (string, error) {
	free, err := freeName(path)
	if err != nil {
		return free, err
	}
	_, err = writer.ExecContext(ctx, `VACUUM INTO ?`, free)
	return free, err
}

// freeName is a name beside path that nothing has yet.
func freeName(path string) (string, error) {
	free := path + suffixRescued
	for n := 2; ; n++ {
		if _, err := os.Lstat(free); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				err = nil
			}
			return free, err
		}
		free = fmt.Sprintf("%s%s-%d", path, suffixRescued, n)
	}
}

// checkTables holds the tables, indexes and triggers of a database against
// those that this program makes.
func checkTables(ctx context.Context, q queryer) (err error) {
	fresh, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fresh.Close()) }()
	fresh.SetMaxOpenConns(1) // each connection would have a database of its own
	if err := migrate(ctx, fresh); err != nil {
		return err
	}
	want, err := tablesOf(ctx, &reading{fresh, ":memory:"})
	if err != nil {
		return err
	}
	have, err := tablesOf(ctx, q)
	if err != nil || maps.Equal(have, want) {
		return err
	}
	broken := problem.New(codeBroken, "the tables of the database are not those of a gate").Hint("%s", restoreHint)
	for name, text := range want {
		if have[name] != text {
			broken = broken.With("missing:  " + name)
		}
	}
	for name, text := range have {
		if want[name] != text {
			broken = broken.With("unknown:  " + name)
		}
	}
	return broken
}

// tablesOf gives how everything in a database was made, by kind and name.
func tablesOf(ctx context.Context, q queryer) (map[string]string, error) {
	tables := map[string]string{}
	_, err := rowsOf(ctx, q, func(s scanner) (struct{}, error) {
		var name, text string
		err := s.Scan(&name, &text)
		tables[name] = text
		return struct{}{}, err
	}, `SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'`)
	return tables, err
}
