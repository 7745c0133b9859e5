package gate

import (
	"context"
	"errors"
	"os"

	"github.com/packhof/packhof/internal/problem"
)

// logBelongs makes sure that the write-ahead log which an ended process has left
// beside the database is that of this very file: SQLite brings any log into any
// file. The file alone may be half written, and is whole with its log then; one
// that is whole alone goes on with it. Nothing is changed.
func logBelongs(ctx context.Context, path string) error {
	info, err := os.Stat(path + "-wal")
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	err = goesOnWithLog(ctx, path)
	if !isBroken(err) && !isAnother(err) {
		return err
	}
	return problem.New("gate/foreign-log", "beside the database lies what a gate has left that had another file: %w", err).
		With("file:    "+path, "beside:  "+path+"-wal").
		Hint("where gate.db was brought back from a backup: rm -f %s %s; else bring the newest gate.db back", shellWord(path+"-wal"), shellWord(path+"-shm"))
}

func goesOnWithLog(ctx context.Context, path string) (err error) {
	alone, err := openSQLiteAlone(path)
	if err != nil {
		return err
	}
	was, aloneErr := stateOf(ctx, alone)
	half := isBroken(aloneErr) || isAnother(aloneErr)
	if err := alone.Close(); err != nil || aloneErr != nil && !half {
		return errors.Join(aloneErr, err)
	}
	with, err := openSQLiteToLook(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, with.Close()) }()
	if err := wholePages(ctx, with); err != nil || half {
		return err
	}
	now, err := stateOf(ctx, with)
	if err != nil {
		return err
	}
	return was.isBeginning(ctx, with, now.entries)
}
