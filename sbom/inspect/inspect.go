package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
)

// Limits bound one inspection. A zero field means its default.
type Limits struct {
	Bytes    int64  // read from the file and unpacked from its archives, together; out of bzip2 each counts 16 times, out of xz 4 times; default 1 GiB
	Header   int64  // of one header or directory; default 32 MiB
	Buffer   int64  // kept of a compressed member; what is behind is not looked at; default 8 MiB
	Window   int64  // history of a decoder; default 64 MiB, for an archive in an archive at most Buffer
	Entries  int    // members of all archives together; default 100,000
	Depth    int    // archives in archives; default 4
	Findings int    // default 1,000
	Opcodes  int64  // of one pickle; default 50 million
	Total    *Total // shared with the inspections of other files; default nil, no bound
}

// Total bounds what several inspections read and unpack together, counted as
// for Limits.Bytes. It is safe for use by several at once. None, nil, bounds
// nothing.
type Total struct{ left atomic.Int64 }

// NewTotal makes a bound for all inspections whose limits have it.
func NewTotal(bytes int64) *Total {
	t := &Total{}
	t.left.Store(bytes)
	return t
}

// take never gives anything back: what comes after the bound is refused, too.
func (t *Total) take(n int64) bool { return t == nil || t.left.Add(-n) >= 0 }

func (l Limits) filled() Limits {
	fill := func(v *int64, standard int64) {
		if *v <= 0 {
			*v = standard
		}
	}
	fill(&l.Bytes, 1<<30)
	fill(&l.Header, 32<<20)
	fill(&l.Buffer, 8<<20)
	fill(&l.Window, 64<<20)
	fill(&l.Opcodes, 50_000_000)
	for _, n := range []struct {
		v        *int
		standard int
	}{{&l.Entries, 100_000}, {&l.Depth, 4}, {&l.Findings, 1000}} {
		if *n.v <= 0 {
			*n.v = n.standard
		}
	}
	return l
}

// File inspects a file of size bytes. The name is used for nothing but to say
// whether it fits. It reads nothing behind size, and takes it as a finding if
// there is less. An error means that the file could not be read, or that ctx
// ended: then nothing is known of it. Everything that is wrong with its
// content is in the report.
func File(ctx context.Context, r io.ReaderAt, size int64, name string, limits Limits) (Report, error) {
	if size < 0 {
		return Report{}, fmt.Errorf("inspect %.200q: size %d", name, size)
	}
	s := &scan{ctx: ctx, limits: limits.filled(), seen: map[Finding]bool{}}
	s.report.Findings = []Finding{}
	whole := &source{r: &root{scan: s, r: r}, size: size, have: size}
	format, err := s.look(whole, place{name: name})
	if err != nil {
		return Report{}, fmt.Errorf("inspect %.200q: %w", name, err)
	}
	s.report.Format = format
	s.report.NameSays, s.report.Mismatch = compare(name, format)
	return s.report, nil
}

// scan is one inspection under way.
type scan struct {
	ctx     context.Context
	limits  Limits
	used    int64 // of Limits.Bytes
	entries int
	report  Report
	seen    map[Finding]bool
	failed  error // why reading failed: ends the inspection
}

// place says where in the file something is.
type place struct {
	path  string // within the file
	name  string // for the comparison with the content
	depth int
}

func (p place) inside(name string) place {
	path := clip(name)
	if p.path != "" {
		path = clip(p.path + "/" + name)
	}
	return place{path: path, name: name, depth: p.depth + 1}
}

const maxDetail = 300

// clip keeps what is quoted short, and UTF-8 whatever the file has.
func clip(s string) string {
	if len(s) > maxDetail {
		s = s[:maxDetail-10] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}

func (s *scan) find(at place, code, format string, args ...any) {
	f := Finding{Code: code, Detail: clip(fmt.Sprintf(format, args...)), Path: at.path}
	if s.seen[f] {
		return
	}
	if len(s.report.Findings) >= s.limits.Findings {
		s.cannot(at, "more than the %d findings that a report may have", s.limits.Findings)
		return
	}
	s.seen[f] = true
	s.report.Findings = append(s.report.Findings, f)
}

// cannot marks the file as not looked into everywhere.
func (s *scan) cannot(at place, format string, args ...any) {
	if s.report.Unreadable {
		return
	}
	s.report.Unreadable = true
	s.report.Reason = clip(fmt.Sprintf(format, args...))
	if at.path != "" {
		s.report.Reason = clip(fmt.Sprintf("%q: %s", at.path, s.report.Reason))
	}
}

// unread is a finding that also makes the file unreadable.
func (s *scan) unread(at place, code, format string, args ...any) {
	s.cannot(at, format, args...)
	s.find(at, code, format, args...)
}

// Errors that end the look at one thing and become findings. Any other error
// says what is malformed.
var (
	errLimit  = errors.New("it has more bytes than an inspection may read")
	errTotal  = errors.New("the inspections together have more bytes than they may read")
	errBeyond = errors.New("what is behind the beginning of a compressed member is not looked at")
	errShort  = errors.New("it has fewer bytes than announced")
)

// settle turns an error of the look at one thing into findings; it returns
// those that end the inspection.
func (s *scan) settle(at place, format Format, err error) error {
	switch {
	case err == nil:
		return nil
	case s.failed != nil:
		return s.failed
	case errors.Is(err, errShort):
		s.unread(at, CodeShort, "%v", errShort)
	case isBound(err):
		code := CodeFileLimit
		if at.depth > 0 || isArchive(format) {
			code = CodeArchiveLimit
		}
		s.unread(at, code, "%v", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		s.unread(at, string(format)+codeMalformed, "it ends too early")
	default:
		s.unread(at, string(format)+codeMalformed, "%v", err)
	}
	return nil
}

// isBound tells whether an error says that not everything could be seen, and
// not that something is wrong with what was.
func isBound(err error) bool {
	return errors.Is(err, errLimit) || errors.Is(err, errTotal) || errors.Is(err, errBeyond) || errors.Is(err, errTooMany) || errors.Is(err, errShort)
}

var errTooMany = errors.New("it has more parts than an inspection looks at")

// enter counts a member of an archive.
func (s *scan) enter() error {
	if s.entries++; s.entries > s.limits.Entries {
		return fmt.Errorf("%w: %d", errTooMany, s.limits.Entries)
	}
	return s.ctx.Err()
}
