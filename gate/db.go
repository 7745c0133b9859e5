package gate

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

//go:embed migrations/*.sql
var migrations embed.FS

// database is the gate's rows. One connection writes, so that transactions
// queue instead of failing; others read what was committed.
type database struct {
	write *sql.DB
	read  *reading
	path  string
	file  os.FileInfo // which file it is

	schema      int64    // its version
	left        leftFile // how this process has left the file; whoever writes has it
	overwritten error    // that it is not so any more; likewise
	lost        chan struct{}
	stands      func(context.Context, queryer) error // whether all rows are what the audit log says of them

	ending sync.Once // of all
	ended  error

	rescue  sync.Once // of what is in it, when the file is gone
	copied  string
	rescued error
}

// inMemory is the SQLite file system that keeps the index of the write-ahead
// log in memory instead of in a file beside the database.
const inMemory = "unix-excl"

// openDatabase opens or makes the file, with the log that belongs to it, brings its
// tables up to date, and holds them against those that this program makes.
//
// The index of the write-ahead log is a file that other programs can share.
// Where the disk has no room for it, it is kept in memory: a gate on a full
// disk must still tell what it has. One process has the data directory anyway.
func openDatabase(ctx context.Context, path string) (*database, error) {
	if err := logBelongs(ctx, path); err != nil {
		return nil, err
	}
	d, err := openUpToDate(ctx, path, "")
	if noRoomForIndex(err) {
		d, err = openUpToDate(ctx, path, inMemory)
	}
	if err != nil {
		return nil, databaseTrouble(path, err)
	}
	return d, nil
}

func openUpToDate(ctx context.Context, path, vfs string) (*database, error) {
	write, err := openSQLite(path, vfs, 1)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, write); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	if err := checkTables(ctx, &reading{write, path}); err != nil {
		return nil, errors.Join(err, write.Close())
	}
	file, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read, err := openSQLite(path, vfs, 8)
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	d := &database{write: write, read: &reading{read, path}, path: path, file: file, lost: make(chan struct{})}
	if err := d.remember(ctx); err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	return d, nil
}

// openSQLite uses a write-ahead log, which is synced at every commit: a step
// that was reported is one that lasts.
func openSQLite(path, vfs string, connections int) (*sql.DB, error) {
	query := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)", "busy_timeout(10000)"}, "_txlock": {"immediate"}}
	if vfs != "" {
		query.Set("vfs", vfs)
	}
	return openSQLiteAs(path, query, connections)
}

func openSQLiteAs(path string, query url.Values, connections int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+query.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	return db, nil
}

// openSQLiteToLook opens a file for one connection that writes nothing, neither
// into it nor beside it.
func openSQLiteToLook(path string) (*reading, error) {
	db, err := openSQLiteAs(path, url.Values{"mode": {"ro"}, "vfs": {inMemory}}, 1)
	return &reading{db, path}, err
}

func migrate(ctx context.Context, db *sql.DB) error {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, sub)
	if err != nil {
		return err
	}
	has, knows, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if has > knows {
		return problem.New("gate/newer-database", "the database is of a later version of packhof-gate than this one").
			With(fmt.Sprintf("database:      version %d", has), fmt.Sprintf("this program:  version %d", knows)).
			Hint("run the later packhof-gate, or bring gate.db and gate.anchor back from a backup of before it ran")
	}
	_, err = provider.Up(ctx)
	return err
}

// close ends it. Where the file is gone, what was in it is kept first. Where
// another was copied over it nothing is closed, which would write to it: the end
// of the process does without.
func (d *database) close() error {
	d.ending.Do(func() {
		d.ended = d.alone(context.Background(), func(*sql.Conn) error { return nil })
		if d.overwritten == nil {
			d.ended = errors.Join(d.ended, d.read.Close(), d.write.Close())
		}
	})
	return d.ended
}

// queryer reads rows, in a transaction or outside one. What SQLite says of a
// database that it cannot read becomes databaseTrouble.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) scanner
	trouble(err error) error
}

// reading reads a database outside of transactions.
type reading struct {
	*sql.DB
	path string
}

func (r *reading) trouble(err error) error { return databaseTrouble(r.path, err) }

// QueryRowContext implements queryer.
func (r *reading) QueryRowContext(ctx context.Context, query string, args ...any) scanner {
	return oneRow{r.DB.QueryRowContext(ctx, query, args...), r}
}

// oneRow is a row that may turn out not to be readable.
type oneRow struct {
	row *sql.Row
	of  queryer
}

// Scan implements scanner.
func (r oneRow) Scan(dest ...any) error { return r.of.trouble(r.row.Scan(dest...)) }

// rowsOf runs a query and gives what scan makes of each row.
func rowsOf[T any](ctx context.Context, q queryer, scan func(scanner) (T, error), query string, args ...any) (list []T, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, q.trouble(err)
	}
	defer func() { err = errors.Join(err, q.trouble(rows.Close())) }()
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, q.trouble(rows.Err())
}

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

// exists runs a query that gives at most one number, and tells whether it did.
func exists(ctx context.Context, q queryer, query string, args ...any) (bool, error) {
	var n int64
	err := q.QueryRowContext(ctx, query, args...).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// digestColumn reads a digest from a text column; NULL or "" give nil.
type digestColumn struct{ digest *bundle.Digest }

// Scan implements sql.Scanner.
func (c *digestColumn) Scan(value any) error {
	text, _ := value.(string)
	if text == "" {
		c.digest = nil
		return nil
	}
	d, err := cas.ParseDigest(text)
	if err != nil {
		return damagedRow(problem.New(codeRowDamaged, "a row of the database cannot be right: %w", err))
	}
	c.digest = &d
	return nil
}

func (c digestColumn) value() bundle.Digest {
	if c.digest == nil {
		return bundle.Digest{}
	}
	return *c.digest
}

func seconds(t time.Time) int64 { return t.Unix() }

func fromSeconds(n int64) time.Time { return time.Unix(n, 0).UTC() }
