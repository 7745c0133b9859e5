package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/packhof/packhof/internal/problem"
)

// Exit codes. They are a promise to scripts: docs, the help topic "exit-codes"
// and a test hold them to what is written here. A code not in this list means
// failure too.
const (
	ExitOK            = 0
	ExitFailed        = 1
	ExitUsage         = 2
	ExitIncomplete    = 3
	ExitNotLoggedIn   = 4
	ExitNotGenuine    = 10
	ExitDamaged       = 11
	ExitDenied        = 12
	ExitWaiting       = 13
	ExitRejected      = 14
	ExitNoSource      = 20
	ExitNoDestination = 21
	ExitInterrupted   = 130
)

// Outcome is an exit code by which a command says something without having
// failed; nothing is printed about it.
type Outcome int

func (o Outcome) Error() string { return fmt.Sprintf("exit code %d", int(o)) }

// FailedAs gives an error another exit code than its code has, for a command
// that promises few of them.
func FailedAs(err error, exit int) error { return &failedAs{err, exit} }

type failedAs struct {
	error
	exit int
}

func (f *failedAs) Unwrap() error { return f.error }

// Standing makes an error one that is told also by a program that was told to
// stop: it did not come of that.
func Standing(err error) error { return &standing{err} }

type standing struct{ error }

func (s *standing) Unwrap() error { return s.error }

// ExitMeaning is a line of the help topic "exit-codes".
type ExitMeaning struct {
	Code    int
	Meaning string
}

// ExitCodes lists every exit code with its meaning.
func ExitCodes() []ExitMeaning {
	return []ExitMeaning{
		{ExitOK, "everything went well"},
		{ExitFailed, "failed"},
		{ExitUsage, "the command line or a configuration file is wrong"},
		{ExitIncomplete, "artifacts (nothing was sealed) or volumes of a bundle are missing"},
		{ExitNotLoggedIn, "a server wants credentials, or does not accept them"},
		{ExitNotGenuine, "not genuine: a signature or the trust root does not hold"},
		{ExitDamaged, "damaged: bytes are missing or not the promised ones"},
		{ExitDenied, "denied by policy"},
		{ExitWaiting, "waiting for approval"},
		{ExitRejected, "rejected by a person"},
		{ExitNoSource, "a source cannot be reached"},
		{ExitNoDestination, "a destination cannot be reached"},
		{ExitInterrupted, "interrupted"},
	}
}

// CodeOf gives the stable code of an error: its own, or one made of the
// operating system's answer, or "failed".
func CodeOf(err error) string {
	own := problem.CodeOf(err)
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case own != "":
		return own
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "disk/full"
	case errors.Is(err, syscall.EFBIG):
		return "disk/file-too-large"
	case errors.Is(err, syscall.EROFS):
		return "disk/read-only"
	case errors.Is(err, fs.ErrPermission):
		return "file/permission"
	case errors.Is(err, fs.ErrNotExist):
		return "file/missing"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "source/unreachable"
	}
	return "failed"
}

// ExitOf gives the exit code of an error.
func ExitOf(err error) int {
	if err == nil {
		return ExitOK
	}
	var fixed *failedAs
	if errors.As(err, &fixed) {
		return fixed.exit
	}
	if entry, ok := Lookup(CodeOf(err)); ok {
		return entry.Exit
	}
	return ExitFailed
}
