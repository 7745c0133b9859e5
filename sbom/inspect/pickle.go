package inspect

import (
	"fmt"
	"regexp"
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
	forgot     bool // the memo had too many values
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

// Bounds of what a walk remembers; what is over them is not known to it, and
// so is not taken for harmless.
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
	if len(s) > mostName || len(w.known) >= mostNames || !dotted.MatchString(s) {
		return ""
	}
	w.known[s] = s
	return s
}

func (w *walk) imported(module, name string) error {
	text := orUnknown(module) + "." + orUnknown(name)
	if w.listed[text] {
		return nil
	}
	if len(w.globals) >= mostGlobals {
		return fmt.Errorf("%w: %d imported names", errTooMany, mostGlobals)
	}
	w.listed[text] = true
	w.globals = append(w.globals, text)
	return nil
}

func orUnknown(name string) string {
	if name == "" {
		return "?"
	}
	return name
}
