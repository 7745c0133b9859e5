package inspect

import (
	"fmt"
	"regexp"
	"strings"
)

// mostPickles is how many pickles in a row are looked at: a torch file of the
// older form has five.
const mostPickles = 64

// pickles looks at the pickles from an offset on, one after the other.
func (s *scan) pickles(f *source, off int64, at place) error {
	for n := 0; ; n++ {
		if n == mostPickles {
			return fmt.Errorf("%w: more than %d pickles", errTooMany, mostPickles)
		}
		w := s.walk(f, off)
		if s.failed != nil {
			return s.failed
		}
		if n > 0 && !w.convincing(f.size) && !w.proto {
			s.find(at, CodePickleTrailing, "%d bytes follow the last pickle", f.size-off)
			return nil
		}
		if err := s.tell(w, f, at); err != nil {
			return err
		}
		if w.broken != nil {
			return w.broken
		}
		if off = w.end; off >= f.size {
			return nil
		}
	}
}

// tell turns one walk into findings, and looks at the pickles in its
// strings.
func (s *scan) tell(w *walk, f *source, at place) error {
	s.find(at, CodePickle, "")
	for _, g := range w.globals {
		s.find(at, CodeGlobal, "%s", g)
	}
	if w.extensions {
		s.find(at, CodeExtension, "")
	}
	if w.vague {
		if err := s.settle(at, Pickle, w.lost); err != nil {
			return err
		}
	}
	for _, inner := range w.nested {
		within := at.inside(fmt.Sprintf("bytes at %d", inner.begin))
		if within.depth > s.limits.Depth {
			s.unread(at, CodeFileLimit, "pickles in pickles, deeper than %d", s.limits.Depth)
			return nil
		}
		part, err := f.part(inner.begin, inner.end-inner.begin)
		if err != nil {
			return err
		}
		if err := s.enter(); err != nil {
			return err
		}
		if err := s.settle(within, Pickle, s.pickles(part, 0, within)); err != nil {
			return err
		}
	}
	return nil
}

// walk is what was seen on the way through the opcodes of one pickle. The
// opcodes are followed as far as they decide what is imported: a stack that
// knows the short strings on it, and nothing of other values.
type walk struct {
	scan       *scan
	c          *cursor
	stack      []string // "" is a value that is no name
	marks      []int    // heights of the stack
	memo       map[uint64]string
	forgot     bool  // what is where in the memo is not known
	lost       error // the first bound that was met; the walk went on
	vague      bool  // what was lost is among what it tells of
	known      map[string]string
	ops        int64
	globals    []string
	listed     map[string]bool
	nested     []span
	calls      int
	extensions bool
	proto      bool // begins with the opcode PROTO
	stopped    bool
	end        int64
	broken     error // nil: it came to STOP
}

// Bounds of what a walk remembers. It goes on behind them, knows less, and
// what is not known is not taken for harmless.
const (
	mostStack   = 1 << 20
	mostMemo    = 1 << 18
	mostNames   = 1 << 16
	mostName    = 128 // bytes
	mostGlobals = 10_000
	mostNested  = 1_000
)

// walk follows the opcodes from an offset to STOP or to the first that no
// reader could follow.
func (s *scan) walk(f *source, off int64) *walk {
	w := &walk{scan: s, c: f.cursor(off), memo: map[uint64]string{}, known: map[string]string{}, listed: map[string]bool{}}
	for w.broken == nil && !w.stopped {
		w.broken = w.step()
	}
	w.end = w.c.off
	return w
}

// convincing tells whether bytes that do not say of themselves that they are a
// pickle would work as one: a name is imported and something called, or the
// whole source is one consistent pickle.
func (w *walk) convincing(size int64) bool {
	if len(w.globals) > 0 && w.calls > 0 {
		return true
	}
	return w.stopped && w.end >= size && (len(w.globals) > 0 || w.ops >= 4)
}

// bound is why something may have been overlooked; nil if nothing was.
func (w *walk) bound() error {
	if isBound(w.broken) {
		return w.broken
	}
	return w.lost
}

func (w *walk) lose(what string, most int) {
	if w.lost == nil {
		w.lost = fmt.Errorf("%w: more than %d %s", errTooMany, most, what)
	}
}

func (w *walk) step() error {
	code, err := w.c.byte()
	if err != nil {
		return err
	}
	if w.ops++; w.ops > w.scan.limits.Opcodes {
		return fmt.Errorf("%w: %d opcodes", errTooMany, w.scan.limits.Opcodes)
	}
	if w.ops == 1 && code == opProto {
		w.proto = true
	}
	op, ok := opcodes[code]
	if !ok {
		return fmt.Errorf("at byte %d stands no opcode of a pickle", w.c.off-1)
	}
	arg, err := w.argument(op.arg)
	if err != nil {
		return err
	}
	return op.do(w, arg)
}

// dotted is the form of the names that are imported.
var dotted = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// name keeps a string if it could be a name, each once.
func (w *walk) name(s string) string {
	if kept, ok := w.known[s]; ok {
		return kept
	}
	if asName(s) == "" {
		return ""
	}
	if len(w.known) >= mostNames {
		w.lose("names", mostNames)
		return ""
	}
	w.known[s] = s
	return s
}

// asName is a string if it is a name that is listed as it is, otherwise "".
func asName(s string) string {
	if len(s) > mostName || !dotted.MatchString(s) {
		return ""
	}
	return s
}

// nameLike is what somebody's module may be called besides.
var nameLike = regexp.MustCompile(`^[\pL_][\pL\pM\pN_-]*(\.[\pL_][\pL\pM\pN_-]*)*$`)

// couldBeName tells whether a line, of which only the beginning may have been
// kept, could be what a pickle imports. No other text should look like it.
func couldBeName(line string) bool {
	if len(line) > mostName {
		line = strings.ToValidUTF8(line, "") + "x"
	}
	return nameLike.MatchString(line)
}

func (w *walk) imported(module, name string) {
	text := orUnknown(module) + "." + orUnknown(name)
	if w.listed[text] {
		return
	}
	if len(w.globals) >= mostGlobals {
		w.lose("imported names", mostGlobals)
		w.vague = true
		return
	}
	w.listed[text] = true
	w.globals = append(w.globals, text)
}

func orUnknown(name string) string {
	if name == "" {
		return "?"
	}
	return name
}
