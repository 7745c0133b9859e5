package inspect

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const opProto = 0x80

// arg is the form of an opcode's argument.
type arg int

const (
	noArg    arg = iota
	fixed1       // a number of 1, 2, 4 or 8 bytes
	fixed2       //
	fixed4       //
	fixed8       //
	oneLine      // text to a line feed
	twoLines     //
	counted1     // bytes after their number in 1, 4 or 8 bytes
	counted4     //
	counted8     //
	bytes1       // the same, for what can hold another pickle
	bytes4       //
	bytes8       //
)

// value is an argument: a number, or the beginning of text.
type value struct {
	number uint64
	text   string // at most mostName bytes and one
	second string
}

type opcode struct {
	arg arg
	do  func(*walk, value) error
}

// opcodes are all of protocol 0 to 5.
var opcodes = map[byte]opcode{
	'(':  {noArg, (*walk).mark},
	'.':  {noArg, (*walk).stop},
	'0':  {noArg, (*walk).pop},
	'1':  {noArg, toMark(false)},
	'2':  {noArg, (*walk).dup},
	'F':  {oneLine, plain(0)},
	'I':  {oneLine, plain(0)},
	'L':  {oneLine, plain(0)},
	'J':  {fixed4, plain(0)},
	'K':  {fixed1, plain(0)},
	'M':  {fixed2, plain(0)},
	'N':  {noArg, plain(0)},
	'G':  {fixed8, plain(0)},
	'P':  {oneLine, plain(0)},
	'Q':  {noArg, plain(1)},
	'R':  {noArg, call(2)},
	'b':  {noArg, (*walk).build},
	'o':  {noArg, (*walk).object},
	'i':  {twoLines, (*walk).instance},
	'c':  {twoLines, (*walk).global},
	'S':  {oneLine, (*walk).quoted},
	'T':  {bytes4, (*walk).text},
	'U':  {bytes1, (*walk).text},
	'V':  {oneLine, (*walk).text},
	'X':  {counted4, (*walk).text},
	0x8c: {counted1, (*walk).text},
	0x8d: {counted8, (*walk).text},
	'B':  {bytes4, plain(0)},
	'C':  {bytes1, plain(0)},
	0x8e: {bytes8, plain(0)},
	0x96: {bytes8, plain(0)},
	0x8a: {counted1, plain(0)},
	0x8b: {counted4, plain(0)},
	'a':  {noArg, into(1)},
	's':  {noArg, into(2)},
	'e':  {noArg, intoFromMark},
	'u':  {noArg, intoFromMark},
	0x90: {noArg, intoFromMark},
	'd':  {noArg, toMark(true)},
	'l':  {noArg, toMark(true)},
	't':  {noArg, toMark(true)},
	0x91: {noArg, toMark(true)},
	']':  {noArg, plain(0)},
	'}':  {noArg, plain(0)},
	')':  {noArg, plain(0)},
	0x8f: {noArg, plain(0)},
	0x85: {noArg, plain(1)},
	0x86: {noArg, plain(2)},
	0x87: {noArg, plain(3)},
	0x88: {noArg, plain(0)},
	0x89: {noArg, plain(0)},
	'g':  {oneLine, (*walk).getLine},
	'h':  {fixed1, (*walk).get},
	'j':  {fixed4, (*walk).get},
	'p':  {oneLine, (*walk).putLine},
	'q':  {fixed1, (*walk).put},
	'r':  {fixed4, (*walk).put},
	0x94: {noArg, func(w *walk, _ value) error { return w.put(value{number: uint64(len(w.memo))}) }},
	opProto: {fixed1, func(_ *walk, v value) error {
		if v.number > 5 {
			return fmt.Errorf("protocol %d", v.number)
		}
		return nil
	}},
	0x95: {fixed8, func(*walk, value) error { return nil }}, // frames say nothing that must be believed
	0x81: {noArg, call(2)},
	0x92: {noArg, call(3)},
	0x93: {noArg, (*walk).stackGlobal},
	0x82: {fixed1, (*walk).extension},
	0x83: {fixed2, (*walk).extension},
	0x84: {fixed4, (*walk).extension},
	0x97: {noArg, plain(0)},
	0x98: {noArg, func(w *walk, _ value) error { return w.need(1) }},
}

func (w *walk) argument(kind arg) (v value, err error) {
	switch kind {
	case fixed1, fixed2, fixed4, fixed8:
		v.number, err = w.c.little(1 << (kind - fixed1))
	case oneLine:
		v.text, err = w.lineText()
	case twoLines:
		if v.text, err = w.lineText(); err == nil {
			v.second, err = w.lineText()
		}
	case counted1, counted4, counted8, bytes1, bytes4, bytes8:
		width := map[arg]int{counted1: 1, counted4: 4, counted8: 8, bytes1: 1, bytes4: 4, bytes8: 8}[kind]
		n, err := w.c.little(width)
		if err != nil {
			return v, err
		}
		begin := w.c.off
		if v.text, err = w.c.text(n, mostName+1); err != nil {
			return v, err
		}
		if kind >= bytes1 {
			return v, w.payload(begin, int64(n), v.text)
		}
	}
	return v, err
}

func (w *walk) lineText() (string, error) {
	line, _, err := w.c.line(mostName + 1)
	return line, err
}

// payload remembers bytes that begin as a pickle does: some function called
// later may load them.
func (w *walk) payload(begin, size int64, head string) error {
	if len(head) < 3 || head[0] != opProto || head[1] > 5 {
		return nil
	}
	if len(w.nested) >= mostNested {
		w.lose("pickles within", mostNested)
		w.vague = true
		return nil
	}
	w.nested = append(w.nested, span{begin, begin + size})
	return nil
}

var errStack = errors.New("an opcode needs more than is on the stack")

// need asks for n values above the last mark.
func (w *walk) need(n int) error {
	floor := 0
	if len(w.marks) > 0 {
		floor = w.marks[len(w.marks)-1]
	}
	if len(w.stack)-floor < n {
		return errStack
	}
	return nil
}

func (w *walk) push(s string) error {
	if len(w.stack) >= mostStack {
		return fmt.Errorf("%w: a stack of %d values", errTooMany, mostStack)
	}
	w.stack = append(w.stack, s)
	return nil
}

func (w *walk) drop(n int) error {
	if err := w.need(n); err != nil {
		return err
	}
	w.stack = w.stack[:len(w.stack)-n]
	return nil
}

// plain takes n values off and puts one on that is no name.
func plain(n int) func(*walk, value) error {
	return func(w *walk, _ value) error {
		if err := w.drop(n); err != nil {
			return err
		}
		return w.push("")
	}
}

func call(n int) func(*walk, value) error {
	return func(w *walk, v value) error {
		err := plain(n)(w, v)
		if err == nil {
			w.calls++
		}
		return err
	}
}

// into takes n values off and puts them into the one below.
func into(n int) func(*walk, value) error {
	return func(w *walk, _ value) error {
		if err := w.need(n + 1); err != nil {
			return err
		}
		return w.drop(n)
	}
}

func (w *walk) dropMark() error {
	if len(w.marks) == 0 {
		return errStack
	}
	last := len(w.marks) - 1
	w.stack, w.marks = w.stack[:w.marks[last]], w.marks[:last]
	return nil
}

// toMark takes everything above the last mark off.
func toMark(push bool) func(*walk, value) error {
	return func(w *walk, _ value) error {
		if err := w.dropMark(); err != nil || !push {
			return err
		}
		return w.push("")
	}
}

func intoFromMark(w *walk, _ value) error {
	if err := w.dropMark(); err != nil {
		return err
	}
	return w.need(1)
}

func (w *walk) mark(value) error {
	if len(w.marks) >= mostStack {
		return fmt.Errorf("%w: %d marks", errTooMany, mostStack)
	}
	w.marks = append(w.marks, len(w.stack))
	return nil
}

func (w *walk) stop(value) error {
	if err := w.need(1); err != nil {
		return err
	}
	w.stopped = true
	return nil
}

// pop takes a mark if nothing is above it.
func (w *walk) pop(value) error {
	if last := len(w.marks) - 1; last >= 0 && w.marks[last] == len(w.stack) {
		w.marks = w.marks[:last]
		return nil
	}
	return w.drop(1)
}

func (w *walk) dup(value) error {
	if err := w.need(1); err != nil {
		return err
	}
	return w.push(w.stack[len(w.stack)-1])
}

func (w *walk) build(v value) error {
	err := into(1)(w, v)
	if err == nil {
		w.calls++
	}
	return err
}

// object calls a class that stands above the mark.
func (w *walk) object(value) error {
	if err := w.need(1); err != nil {
		return err
	}
	if err := w.dropMark(); err != nil {
		return err
	}
	w.calls++
	return w.push("")
}

func (w *walk) instance(v value) error {
	if !couldBeName(v.text) || !couldBeName(v.second) {
		return errNoName
	}
	if err := w.dropMark(); err != nil {
		return err
	}
	w.calls++
	w.imported(asName(v.text), asName(v.second))
	return w.push("")
}

var errNoName = errors.New("what it imports has no name that Python could have")

func (w *walk) global(v value) error {
	if !w.proto && (!couldBeName(v.text) || !couldBeName(v.second)) {
		return errNoName // text that happens to begin with a c
	}
	w.imported(asName(v.text), asName(v.second))
	return w.push("")
}

func (w *walk) stackGlobal(value) error {
	if err := w.need(2); err != nil {
		return err
	}
	n := len(w.stack)
	module, name := w.stack[n-2], w.stack[n-1]
	w.stack = w.stack[:n-2]
	if (module == "" || name == "") && w.lost != nil {
		w.vague = true
	}
	w.imported(module, name)
	return w.push("")
}

func (w *walk) extension(value) error {
	w.extensions = true
	w.calls++
	return w.push("")
}

func (w *walk) text(v value) error { return w.push(w.name(v.text)) }

// quoted is a string in quotes. One with escapes is no name to us.
func (w *walk) quoted(v value) error {
	s := strings.TrimRight(v.text, " \t\r")
	if len(s) < 2 || s[0] != '\'' && s[0] != '"' {
		return errors.New("a string without quotes")
	}
	return w.push(w.name(strings.Trim(s, s[:1])))
}

func (w *walk) get(v value) error {
	name, there := w.memo[v.number]
	if !there && !w.forgot {
		return errors.New("it takes from its memo what is not there")
	}
	return w.push(name)
}

// put keeps every value, names or not: MEMOIZE counts the places in use.
func (w *walk) put(v value) error {
	if err := w.need(1); err != nil {
		return err
	}
	if _, there := w.memo[v.number]; !there && len(w.memo) >= mostMemo {
		w.forgot = true
	}
	if w.forgot {
		w.lose("values in the memo", mostMemo)
		clear(w.memo) // which place is meant is no longer certain
		return nil
	}
	w.memo[v.number] = w.stack[len(w.stack)-1]
	return nil
}

// getLine takes from a place that is written out. Readers of pickles take
// more for a number than digits (spaces, signs, underscores, whatever is
// behind a zero byte), and each something else: a place that is not plainly
// written could be any.
func (w *walk) getLine(v value) error {
	if n, ok := plainPlace(v.text); ok {
		return w.get(value{number: n})
	}
	return w.push("")
}

// putLine is the counterpart of getLine: after it, every place could hold
// something else.
func (w *walk) putLine(v value) error {
	if n, ok := plainPlace(v.text); ok {
		return w.put(value{number: n})
	}
	w.forgot = true
	clear(w.memo)
	return w.need(1)
}

func plainPlace(line string) (n uint64, ok bool) {
	if len(line) > mostName { // the rest of it was not kept
		return 0, false
	}
	n, err := strconv.ParseUint(line, 10, 63)
	return n, err == nil
}
