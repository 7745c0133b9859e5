package cli

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/goccy/go-yaml"

	"github.com/packhof/packhof/internal/problem"
)

// escaped gives the same JSON without what could act on a terminal or cannot be
// seen: it can stand in strings only, which may have any character as a number.
func escaped(document []byte) []byte {
	if !bytes.ContainsFunc(document, unprinted) {
		return document
	}
	var b bytes.Buffer
	for _, r := range string(document) {
		switch high, low := utf16.EncodeRune(r); {
		case !unprinted(r):
			b.WriteRune(r)
		case high != unicode.ReplacementChar:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// unprinted finds what is not printed as it is; lines are broken between the
// members of a document.
func unprinted(r rune) bool { return r != '\n' && problem.Hidden(r) }

// quoted is text that YAML has to have in quotes, with escapes.
type quoted string

// asYAML writes JSON as YAML, in its order.
func asYAML(document []byte) ([]byte, error) {
	value, err := ordered(jsontext.NewDecoder(bytes.NewReader(document)))
	if err != nil {
		return nil, err
	}
	return yaml.MarshalWithOptions(value, yaml.CustomMarshaler(func(s quoted) ([]byte, error) {
		return []byte(strconv.QuoteToASCII(string(s))), nil // all escapes of Go are some of YAML
	}))
}

// ordered reads a JSON value; members of objects stay in their order.
func ordered(d *jsontext.Decoder) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case jsontext.KindBeginObject:
		return members(d)
	case jsontext.KindBeginArray:
		return items(d)
	case jsontext.KindString:
		return text(t.String()), nil
	case jsontext.KindNumber:
		return number(t.String())
	case jsontext.KindTrue, jsontext.KindFalse:
		return t.Bool(), nil
	case jsontext.KindNull:
		return nil, nil
	}
	return nil, io.ErrUnexpectedEOF
}

func members(d *jsontext.Decoder) (any, error) {
	group := yaml.MapSlice{}
	for d.PeekKind() != jsontext.KindEndObject {
		key, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		name := key.String() // before the decoder goes on
		if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			name = strings.Trim(strconv.QuoteToASCII(name), `"`) // keys stand without quotes
		}
		value, err := ordered(d)
		if err != nil {
			return nil, err
		}
		group = append(group, yaml.MapItem{Key: name, Value: value})
	}
	_, err := d.ReadToken()
	return group, err
}

func items(d *jsontext.Decoder) (any, error) {
	list := []any{}
	for d.PeekKind() != jsontext.KindEndArray {
		value, err := ordered(d)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := d.ReadToken()
	return list, err
}

// text is a string, or one that has to be quoted: what is not to be printed
// would stand in a block of lines as it is, blanks at the end of a line there
// would be lost, and what begins with a blank or a question mark would be read
// as something else.
func text(s string) any {
	if s != "" && strings.IndexByte(" \n?", s[0]) >= 0 || strings.Contains(s, " \n") || strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		return quoted(s)
	}
	return s
}

// number is an integer where that holds all of it.
func number(s string) (any, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err
}
