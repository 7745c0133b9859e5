// Package problem is the shape of an error that a person meets: what went
// wrong and with which object, the evidence, one remedy, and a stable code.
//
// Packages that may not import anything of ours (signing, sbom, internal/cas)
// give the same by having the methods Code, Evidence and Remedy themselves;
// whoever prints asks for the methods, never for this type. It never prints
// and knows no exit code: those are the business of internal/cli.
package problem

import (
	"errors"
	"fmt"
)

// Problem is an error with a stable code, evidence and at most one remedy.
// It is immutable; With and Remedy return a changed copy.
type Problem struct {
	code     string
	what     string
	evidence []string
	remedy   string
	cause    error
}

// New makes a problem. The format says what happened and to which object, in
// lower case and without a full stop; a %w in it becomes the cause.
func New(code, format string, args ...any) *Problem {
	err := fmt.Errorf(format, args...)
	return &Problem{code: code, what: err.Error(), cause: errors.Unwrap(err)}
}

// With appends lines of evidence, such as "want:  sha256:…".
func (p *Problem) With(lines ...string) *Problem {
	changed := *p
	changed.evidence = append(append([]string(nil), p.evidence...), lines...)
	return &changed
}

// Hint sets the remedy: one thing that can be typed or done.
func (p *Problem) Hint(format string, args ...any) *Problem {
	changed := *p
	changed.remedy = fmt.Sprintf(format, args...)
	return &changed
}

func (p *Problem) Error() string      { return p.what }
func (p *Problem) Unwrap() error      { return p.cause }
func (p *Problem) Code() string       { return p.code }
func (p *Problem) Evidence() []string { return p.evidence }
func (p *Problem) Remedy() string     { return p.remedy }
