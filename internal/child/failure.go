package child

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Reason is the kind of a failure; its text is the stable code.
type Reason string

// The ways a child can fail.
const (
	Absent      Reason = "child/absent"      // no such program
	Unstartable Reason = "child/unstartable" // there, but it cannot be started or limited
	Crashed     Reason = "child/crashed"     // ended by a signal or with an exit code that is not 0
	Timeout     Reason = "child/timeout"     // still running after Spec.Timeout
	Memory      Reason = "child/memory"      // wanted more than Spec.MaxData
	Output      Reason = "child/output"      // wrote more than Spec.MaxOutput
	Disk        Reason = "child/disk"        // wrote more than Spec.MaxFile or Spec.MaxDisk
	Cancelled   Reason = "child/cancelled"   // the caller's context ended
	Unsupported Reason = "child/unsupported" // this system cannot limit a process
)

// Error says how a child failed. Unwrap leads to the operating system's error
// or, for Cancelled, to the cause of the context's end.
type Error struct {
	Program  string // base name
	Reason   Reason
	Limit    string // the limit that was hit, for people; "" otherwise
	ExitCode int    // for Crashed; -1 if by a signal
	Signal   string // for Crashed by a signal, its name
	Stderr   []byte // as in Result
	Err      error
}

func (e *Error) Error() string {
	text := e.Program + ": " + e.what()
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Error) what() string {
	switch e.Reason {
	case Absent:
		return "no such program"
	case Unstartable:
		return "cannot be started"
	case Timeout:
		return "still running after " + e.Limit
	case Memory:
		return "needed more memory than " + e.Limit
	case Output:
		return "wrote more output than " + e.Limit
	case Disk:
		return "wrote more to disk than " + e.Limit
	case Cancelled:
		return "cancelled"
	case Unsupported:
		return "cannot be limited on this system"
	}
	if e.Signal != "" {
		return "ended by signal " + e.Signal
	}
	return fmt.Sprintf("ended with exit code %d", e.ExitCode)
}

// Unwrap returns the error underneath, if there is one.
func (e *Error) Unwrap() error { return e.Err }

// Code returns the stable code of the failure.
func (e *Error) Code() string { return string(e.Reason) }

// Evidence returns the last lines the child wrote to standard error, printable
// characters only: what a child says may have come out of a hostile artifact.
func (e *Error) Evidence() []string {
	const most = 10
	var lines []string
	for line := range strings.Lines(string(e.Stderr)) {
		if line = printable(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	return lines
}

// Remedy returns the one thing to do, or "".
func (e *Error) Remedy() string {
	switch e.Reason {
	case Absent, Unstartable:
		return "install " + e.Program + " beside this program"
	case Timeout:
		return "raise the time limit"
	case Memory:
		return "raise the memory limit"
	case Output:
		return "raise the output limit"
	case Disk:
		return "raise the disk limit"
	}
	return ""
}

func printable(line string) string {
	const longest = 400
	kept := strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.TrimSpace(line))
	if runes := []rune(kept); len(runes) > longest {
		kept = string(runes[:longest]) + "…"
	}
	return kept
}

// stopped translates why we ended the child ourselves; ok is false if we did not.
func (s Spec) stopped(cause error) (reason Reason, limit string, ok bool) {
	switch {
	case cause == nil:
		return "", "", false
	case errors.Is(cause, errTimeout):
		return Timeout, s.Timeout.String(), true
	case errors.Is(cause, errOutput):
		return Output, bytesText(s.MaxOutput), true
	case errors.Is(cause, errDisk):
		return Disk, bytesText(s.MaxDisk), true
	}
	return Cancelled, "", true
}

func bytesText(n int64) string { return fmt.Sprintf("%d bytes", n) }

// outOfMemory recognises how the Go runtime, and C code beside it, die when
// the kernel refuses them memory: no signal tells it, only these words.
func outOfMemory(stderr []byte) bool {
	text := string(stderr)
	for _, sign := range []string{
		"fatal error: runtime: out of memory",
		"fatal error: runtime: cannot allocate memory",
		"fatal error: out of memory",
		"runtime: failed to create new OS thread",
		"pthread_create failed: Resource temporarily unavailable",
		"fatal error: failed to reserve",
		"fatal error: cannot allocate",
		"fatal error: runtime: cannot map pages",
		"ThreadSanitizer failed to allocate", // built to find data races
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// cancelled hides our own causes from Unwrap: a timeout of ours is not a
// context error the caller would know.
func cancelled(reason Reason, ctx context.Context) error {
	if reason != Cancelled {
		return nil
	}
	return context.Cause(ctx)
}
