// Package child runs one of our own programs as a bounded child process: one
// document in on standard input, one document out on standard output, and
// limits on memory, time, output and disk in between. It exists so that code
// which reads hostile bytes (a scanner, a policy engine) can fail without
// taking the caller with it.
//
// It never runs a shell, never searches PATH, never hands down the caller's
// environment, and never returns partial output as if it were whole.
//
// The bounds hold against programs that misbehave, not against ones that try
// to break out: a child that leaves its process group with setsid outlives a
// kill, and nothing but the network is taken away from it.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Spec says what to run and within which bounds. MaxOutput, MaxData and
// Timeout must be positive: a child without bounds is not what this is for.
type Spec struct {
	Path string   // absolute path of the program
	Args []string // arguments, without the program's name

	// Dir is an existing directory of the child's own, given absolutely: its
	// working directory, its HOME and its TMPDIR. The caller removes it
	// afterwards; a killed child leaves things behind.
	Dir string

	// Env is all the child sees of an environment, as "NAME=value", besides
	// HOME, TMPDIR and GOMEMLIMIT, which are set here and win.
	Env []string

	// Stdin is written and then closed. The limits are in force before its
	// first byte, so a program that reads its input first does nothing unlimited.
	Stdin []byte

	MaxOutput int64         // bytes of standard output
	MaxData   int64         // bytes of private memory (RLIMIT_DATA); a Go program needs about 256 MiB to start
	MaxFile   int64         // bytes of any one file it writes (RLIMIT_FSIZE); 0: no limit
	MaxDisk   int64         // bytes added under Dir, sampled, so briefly exceeded; 0: no limit
	MaxOpen   uint64        // open files (RLIMIT_NOFILE); 0: 1024
	Timeout   time.Duration // wall time

	// NoNetwork gives the child a network namespace of its own with nothing in
	// it. Where the kernel refuses, the child runs without and the result says so.
	NoNetwork bool

	// Clock measures Result.Duration; nil leaves that zero.
	Clock func() time.Time
}

// Result is what a child left behind. It is filled in as far as known also
// when Run returns an error, except Stdout, which is then nil.
type Result struct {
	Stdout          []byte
	Stderr          []byte // the beginning and the end, at most 32 KiB together
	Duration        time.Duration
	PeakMemory      int64 // bytes resident at most, as the kernel counted
	NetworkIsolated bool  // it ran in an empty network namespace
}

// Run runs one child to its end. It returns an *Error for everything that can
// go wrong with the child and a plain error for a Spec that makes no sense.
// On timeout, cancellation and an exceeded limit the child's whole process
// group is killed before Run returns. The child also dies with the caller's
// process. Run starts nothing twice; the caller may.
func Run(ctx context.Context, spec Spec) (Result, error) {
	if err := spec.check(); err != nil {
		return Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return Result{}, &Error{Program: filepath.Base(spec.Path), Reason: Cancelled, Err: context.Cause(ctx)}
	}
	return run(ctx, spec)
}

func (s Spec) check() error {
	switch {
	case !filepath.IsAbs(s.Path):
		return fmt.Errorf("child program %q: path is not absolute", s.Path)
	case !filepath.IsAbs(s.Dir):
		return fmt.Errorf("child %s: work directory %q is not absolute", s.Path, s.Dir)
	case s.MaxOutput <= 0 || s.MaxData <= 0 || s.Timeout <= 0:
		return fmt.Errorf("child %s: output, memory and time must be limited, got %d bytes, %d bytes, %s", s.Path, s.MaxOutput, s.MaxData, s.Timeout)
	case s.MaxFile < 0 || s.MaxDisk < 0:
		return fmt.Errorf("child %s: negative disk limit", s.Path)
	}
	info, err := os.Stat(s.Dir)
	if err != nil {
		return fmt.Errorf("work directory of child %s: %w", s.Path, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("work directory of child %s: %s is not a directory", s.Path, s.Dir)
	}
	for _, entry := range s.Env {
		if name, _, found := strings.Cut(entry, "="); !found || name == "" || strings.ContainsRune(entry, 0) {
			return fmt.Errorf("child %s: environment entry %q is not NAME=value", s.Path, entry)
		}
	}
	return nil
}

// environment puts ours last, because the last entry of a name wins.
func (s Spec) environment() []string {
	env := append([]string{}, s.Env...)
	return append(env,
		"HOME="+s.Dir,
		"TMPDIR="+s.Dir,
		// Below the hard limit, so that the collector works harder before the wall.
		fmt.Sprintf("GOMEMLIMIT=%d", s.MaxData/4*3),
	)
}

// Why a child was stopped by us; each becomes a Reason.
var (
	errTimeout = errors.New("out of time")
	errOutput  = errors.New("too much output")
	errDisk    = errors.New("too much disk")
)
