package inspect

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// json reads a JSON text through, for the keys by which a model asks for code
// and brings chat templates.
// Several values in a row, as in JSON lines, are text; so is what only begins
// like JSON.
func (s *scan) json(f *source, at place) (Format, error) {
	size := f.size
	if f.have < f.size || size > s.limits.Header {
		size = min(f.have, s.limits.Header)
	}
	begin, err := f.part(0, size)
	if err != nil {
		return JSON, err
	}
	text := &pythonJSON{r: begin.stream(0)}
	dec := jsontext.NewDecoder(text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err = s.jsonKeys(dec, at)
	switch {
	case s.failed != nil || isBound(err):
		return JSON, err
	case size < f.size:
		return JSON, fmt.Errorf("%w: only the first %d bytes were looked at", errTooMany, size)
	case err != nil || text.replaced:
		return Text, nil
	}
	return JSON, nil
}

var errNotOneValue = errors.New("not one JSON value")

// jsonKeys looks at keys and what is under them until there is no JSON any
// more.
func (s *scan) jsonKeys(dec *jsontext.Decoder, at place) error {
	key, template := "", 0 // the depth of the key whose value is a template, 0 outside
	for {
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		depth := dec.StackDepth()
		kind, n := dec.StackIndex(depth)
		if depth == 0 && n > 1 {
			return errNotOneValue
		}
		isKey := kind == '{' && n%2 == 1
		if depth < template || depth == template && isKey {
			template = 0
		}
		switch text := token.String(); {
		case isKey:
			if key = text; template == 0 && strings.HasPrefix(key, templateKey) {
				template = depth
			}
			if key == "auto_map" {
				s.find(at, CodeRemoteCode, "auto_map")
			}
		case template > 0 && token.Kind() == '"':
			s.template(templateKey, text, at)
		case slices.Contains([]string{"class_name", "registered_name", "function_type"}, key) && saysLambda(text):
			s.find(at, CodeLambda, "")
		default:
			key = ""
		}
	}
}

// saysLambda tells whether Keras of some version takes a name for Python code
// that the file brings: "Lambda", "__lambda__", or "Package>Lambda".
func saysLambda(name string) bool {
	name = name[strings.LastIndexAny(name, ">.")+1:]
	return strings.EqualFold(strings.Trim(name, "_"), "lambda")
}

// pythonJSON takes for numbers what Python takes for numbers in JSON and
// nobody else does, NaN and Infinity, so that it hides nothing behind it. Any
// other word with such a letter goes through as well.
type pythonJSON struct {
	r        io.Reader
	inText   bool // between quotes
	escaped  bool // behind a backslash
	inWord   bool
	replaced bool // it was no JSON by the rules
}

// Read implements io.Reader.
func (p *pythonJSON) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	for i, c := range b[:n] {
		b[i] = p.next(c)
	}
	return n, err
}

func (p *pythonJSON) next(c byte) byte {
	if p.inText {
		p.inText = p.escaped || c != '"'
		p.escaped = !p.escaped && c == '\\'
		return c
	}
	letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	switch {
	case p.inWord && letter:
		return ' '
	case c == 'N' || c == 'I':
		p.inWord, p.replaced = true, true
		return '0'
	}
	p.inWord, p.inText = false, c == '"'
	return c
}
