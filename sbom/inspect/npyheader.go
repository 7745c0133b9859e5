package inspect

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// npyHeader is a header of npy: a literal of Python. It is read by a grammar
// that has nothing but what numpy writes. Python knows more spellings of the
// same (strings side by side, escapes, keys that come twice), and what is
// spelt differently is refused.
type npyHeader struct {
	objects bool   // elements hold Python objects
	bytes   uint64 // of all elements
}

var errNpyHeader = errors.New("its header is not as numpy writes one")

// mostTuple bounds lists and tuples within each other, and mostItems how many
// of them, and of values, a header may have.
const (
	mostTuple = 16
	mostItems = 16_384
)

func readNpyHeader(text string) (npyHeader, error) {
	l := &literal{rest: text}
	v, err := l.value(0)
	if err != nil {
		return npyHeader{}, err
	}
	fields, ok := v.(map[string]any)
	if l.space(); !ok || l.rest != "" {
		return npyHeader{}, errNpyHeader
	}
	for key, value := range fields {
		_, isBool := value.(bool)
		if key != "descr" && key != "shape" && (key != "fortran_order" || !isBool) {
			return npyHeader{}, errNpyHeader
		}
	}
	var t npyType
	if err := t.add(fields["descr"], 1); err != nil {
		return npyHeader{}, err
	}
	n, err := product(fields["shape"], t.bytes)
	return npyHeader{objects: t.objects, bytes: n}, err
}

// npyType adds up an element of one or several fields.
type npyType struct {
	objects bool
	bytes   uint64
}

// plainType is a type of elements that are no objects.
var plainType = regexp.MustCompile(`^[<>|=]?(\?|b1|[iu][1248]|f(2|4|8|12|16)|c(8|16|24|32)|[SUaV]\d{1,9}|[mM]8(\[\d{0,9}[a-zA-Zμ]{1,2}\])?)$`)

// add takes in times elements of a type, which is a string, or a list of
// fields: a name or a pair of title and name, a type, and perhaps a shape.
func (t *npyType) add(descr any, times uint64) error {
	switch d := descr.(type) {
	case string:
		return t.addPlain(d, times)
	case []any:
		for _, field := range d {
			parts, ok := field.(tuple)
			if !ok || len(parts) < 2 || len(parts) > 3 || !isFieldName(parts[0]) {
				return errNpyHeader
			}
			n := times
			if len(parts) == 3 {
				var err error
				if n, err = product(parts[2], times); err != nil {
					return err
				}
			}
			if err := t.add(parts[1], n); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("a header without the type of its elements")
}

func isFieldName(v any) bool {
	if pair, ok := v.(tuple); ok && len(pair) == 2 {
		_, title := pair[0].(string)
		_, name := pair[1].(string)
		return title && name
	}
	_, ok := v.(string)
	return ok
}

func (t *npyType) addPlain(name string, times uint64) error {
	switch strings.TrimLeft(name, "<>|=") {
	case "O", "O4", "O8", "object":
		t.objects = true
		return nil
	}
	if !plainType.MatchString(name) {
		return fmt.Errorf("elements of the unknown type %.40q", name)
	}
	name = strings.TrimLeft(name, "<>|=")
	size := uint64(1)
	if name != "?" {
		digits, _, _ := strings.Cut(name[1:], "[")
		var err error
		if size, err = strconv.ParseUint(digits, 10, 63); err != nil {
			return err
		}
	}
	if name[0] == 'U' {
		size *= 4
	}
	high, low := bits.Mul64(size, times)
	sum, carry := bits.Add64(t.bytes, low, 0)
	if high != 0 || carry != 0 {
		return errNpySize
	}
	t.bytes = sum
	return nil
}

var errNpySize = errors.New("the shape of an array is out of range")

// product multiplies a size by a shape: a tuple of numbers, or in a field also
// one number.
func product(shape any, size uint64) (uint64, error) {
	dimensions, ok := shape.(tuple)
	if n, single := shape.(uint64); single {
		dimensions, ok = tuple{n}, true
	}
	if !ok {
		return 0, errors.New("a header without a shape")
	}
	for _, d := range dimensions {
		n, isNumber := d.(uint64)
		high, low := bits.Mul64(size, n)
		if !isNumber || high != 0 || low >= unknownSize {
			return 0, errNpySize
		}
		size = low
	}
	return size, nil
}

// literal reads values: string, uint64, bool, tuple, []any, map[string]any.
type literal struct {
	rest  string
	items int
}

type tuple []any

func (l *literal) space() { l.rest = strings.TrimLeft(l.rest, " \n") }

// take passes a word if it comes next.
func (l *literal) take(word string) bool {
	l.space()
	rest, ok := strings.CutPrefix(l.rest, word)
	l.rest = rest
	return ok
}

func (l *literal) value(depth int) (any, error) {
	if l.items++; depth > mostTuple || l.items > mostItems {
		return nil, fmt.Errorf("%w: a header with too many values", errTooMany)
	}
	switch {
	case l.take("{"):
		return l.dict(depth)
	case l.take("["):
		items, _, err := l.list(depth, "]")
		return items, err
	case l.take("("):
		items, comma, err := l.list(depth, ")")
		if err == nil && len(items) == 1 && !comma {
			err = errNpyHeader // no tuple, but what is in it
		}
		return tuple(items), err
	case l.take("True"):
		return true, nil
	case l.take("False"):
		return false, nil
	}
	if l.rest != "" && (l.rest[0] == '\'' || l.rest[0] == '"') {
		return l.text()
	}
	return l.number()
}

func (l *literal) dict(depth int) (map[string]any, error) {
	fields := map[string]any{}
	for !l.take("}") {
		if len(fields) > 0 && !l.take(",") {
			return nil, errNpyHeader
		}
		if len(fields) > 0 && l.take("}") {
			break
		}
		l.space()
		key, err := l.text()
		if err != nil {
			return nil, err
		}
		if _, twice := fields[key]; twice || !l.take(":") {
			return nil, errNpyHeader
		}
		if fields[key], err = l.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// list reads what is in a list or tuple; comma tells that one is behind the
// last of it.
func (l *literal) list(depth int, end string) (items []any, comma bool, err error) {
	for !l.take(end) {
		if len(items) > 0 && !comma {
			return nil, false, errNpyHeader
		}
		v, err := l.value(depth + 1)
		if err != nil {
			return nil, false, err
		}
		items = append(items, v)
		comma = l.take(",")
	}
	return items, comma, nil
}

func (l *literal) text() (string, error) {
	if l.rest == "" || l.rest[0] != '\'' && l.rest[0] != '"' {
		return "", errNpyHeader
	}
	text, rest, ok := strings.Cut(l.rest[1:], l.rest[:1])
	if !ok || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\\' }) {
		return "", errNpyHeader
	}
	l.rest = rest
	return text, nil
}

// number reads what Python 2 wrote with an L as well.
func (l *literal) number() (uint64, error) {
	end := 0
	for end < len(l.rest) && l.rest[end] >= '0' && l.rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseUint(l.rest[:end], 10, 63)
	if err != nil || end > 1 && l.rest[0] == '0' {
		return 0, errNpyHeader
	}
	l.rest = strings.TrimPrefix(l.rest[end:], "L")
	return n, nil
}
