package inspect

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
)

// json reads a JSON text through, for the keys by which a model asks for code.
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
	dec := jsontext.NewDecoder(begin.stream(0), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err = s.jsonKeys(dec, at)
	switch {
	case s.failed != nil || isBound(err):
		return JSON, err
	case size < f.size:
		return JSON, fmt.Errorf("%w: only the first %d bytes were looked at", errTooMany, size)
	case err != nil:
		return Text, nil
	}
	return JSON, nil
}

var errNotOneValue = errors.New("not one JSON value")

func (s *scan) jsonKeys(dec *jsontext.Decoder, at place) error {
	key := ""
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
		switch text := token.String(); {
		case kind == '{' && n%2 == 1:
			if key = text; key == "auto_map" {
				s.find(at, CodeRemoteCode, "auto_map")
			}
		case key == "class_name" && text == "Lambda":
			s.find(at, CodeLambda, "")
		default:
			key = ""
		}
	}
}
