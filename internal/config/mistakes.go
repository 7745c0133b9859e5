package config

import (
	"cmp"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/packhof/packhof/internal/problem"
)

// unknownKey is the code of what may be another key misspelt.
const unknownKey = "config/unknown-key"

// maxMistakes is how many mistakes of a file are told at once.
const maxMistakes = 20

// Mistake says what is wrong in a configuration file, and where.
type Mistake struct {
	File         string
	Line, Column int // 0 when unknown
	What         string
	Fix          string
	Kind         string // the stable code

	path   string // of the field, if it is about one
	absent bool   // the field does not stand in the file; the place is that of its parent
}

func (e *Mistake) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.What)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.What)
}

// Code is the stable code of this error.
func (e *Mistake) Code() string { return e.Kind }

// Remedy says what to write instead.
func (e *Mistake) Remedy() string { return e.Fix }

// Mistakes are several mistakes in a configuration file, in its order.
type Mistakes struct {
	File string
	Each []*Mistake // at least two
}

func (e *Mistakes) Error() string {
	if len(e.Each) > maxMistakes {
		return fmt.Sprintf("%s has more than %d mistakes", e.File, maxMistakes)
	}
	return fmt.Sprintf("%s has %d mistakes", e.File, len(e.Each))
}

// Code is that of the mistakes if they have the same, else that of files that
// cannot be right.
func (e *Mistakes) Code() string {
	for _, m := range e.Each {
		if m.Kind != e.Each[0].Kind {
			return "config/invalid"
		}
	}
	return e.Each[0].Kind
}

// Evidence is a line for each mistake, with what to write instead.
func (e *Mistakes) Evidence() []string {
	var lines []string
	for _, m := range e.Each[:min(len(e.Each), maxMistakes)] {
		line := m.Error()
		if m.Fix != "" {
			line += "   (" + m.Fix + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// mistaken is nil, the one mistake, or all of them.
func mistaken(mistakes []*Mistake) error {
	switch len(mistakes) {
	case 0:
		return nil
	case 1:
		return mistakes[0]
	}
	slices.SortStableFunc(mistakes, func(a, b *Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Mistakes{File: mistakes[0].File, Each: mistakes}
}

// mistakesOf finds the fields that an error is about, which may be several
// joined ones. An error about none is given back.
func (c *File) mistakesOf(err error) (mistakes []*Mistake, other error) {
	if err == nil {
		return nil, nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			more, other := c.mistakesOf(one)
			if other != nil {
				return nil, err
			}
			mistakes = append(mistakes, more...)
		}
		return mistakes, nil
	}
	field, ok := errors.AsType[*problem.FieldError](err)
	if !ok {
		return nil, err
	}
	e := c.mistakeAt(splitPath(field.Path))
	e.path, e.What, e.Fix, e.Kind = field.Path, field.Error(), field.Fix, field.Code()
	return []*Mistake{e}, nil
}

// withoutEchoes leaves out what is wrong only because something could not be
// decoded: what is around it or in it, and what may be there under a misspelt
// key.
func withoutEchoes(wrong, undecoded []*Mistake) []*Mistake {
	return slices.DeleteFunc(wrong, func(w *Mistake) bool {
		return slices.ContainsFunc(undecoded, func(u *Mistake) bool {
			return within(u.path, w.path) || within(w.path, u.path) || w.absent && u.Kind == unknownKey && above(w.path) == above(u.path)
		})
	})
}

// above is the path of the group or list that a field is in.
func above(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// within tells whether a path is another, or leads below it.
func within(path, above string) bool {
	below, ok := strings.CutPrefix(path, above)
	return above == wholeFile || ok && (below == "" || below[0] == '.' || below[0] == '[')
}

// decode decodes the file. The decoder stops at the first mistake; what it
// stopped at is taken out, and it begins again.
func (c *File) decode(document jsontext.Value, into any) (mistakes []*Mistake) {
	target := reflect.ValueOf(into).Elem()
	for len(mistakes) <= maxMistakes {
		target.SetZero() // also of what was decoded before a mistake
		err := json.Unmarshal(document, into, json.RejectUnknownMembers(true))
		if err == nil {
			break
		}
		semantic, ok := errors.AsType[*json.SemanticError](err)
		if !ok {
			return append(mistakes, &Mistake{File: c.name, What: err.Error(), Kind: "config/syntax"})
		}
		path := slices.Collect(semantic.JSONPointer.Tokens())
		mistakes = append(mistakes, c.decodeError(semantic, path, target.Type()))
		var gone bool
		if document, gone = takeOut(document, path); !gone {
			break
		}
	}
	return mistakes
}

// takeOut takes a member out of a document; an item of a list, whose
// neighbours keep their numbers, becomes null, which every type takes.
func takeOut(document jsontext.Value, path []string) (rest jsontext.Value, gone bool) {
	if len(path) == 0 {
		return nil, false
	}
	var whole any
	switch document.Kind() {
	case jsontext.KindBeginArray:
		var items []jsontext.Value
		i, err := strconv.Atoi(path[0])
		if json.Unmarshal(document, &items) != nil || err != nil || i < 0 || i >= len(items) {
			return nil, false
		}
		if len(path) == 1 {
			items[i], gone = jsontext.Value("null"), items[i].Kind() != jsontext.KindNull
		} else {
			items[i], gone = takeOut(items[i], path[1:])
		}
		whole = items
	case jsontext.KindBeginObject:
		var members map[string]jsontext.Value
		if json.Unmarshal(document, &members) != nil {
			return nil, false
		}
		if len(path) == 1 {
			_, gone = members[path[0]]
			delete(members, path[0])
		} else {
			members[path[0]], gone = takeOut(members[path[0]], path[1:])
		}
		whole = members
	}
	if !gone {
		return nil, false
	}
	rest, err := json.Marshal(whole, json.Deterministic(true))
	return rest, err == nil
}

// decodeError turns an error of the JSON decoder into one about the file.
func (c *File) decodeError(semantic *json.SemanticError, path []string, t reflect.Type) *Mistake {
	e := c.mistakeAt(path)
	e.Kind = "config/invalid"
	switch {
	case errors.Is(semantic, json.ErrUnknownName):
		name, names := path[len(path)-1], fieldNames(t, path[:len(path)-1])
		e.Kind, e.What = unknownKey, fmt.Sprintf("unknown key %.60q", name)
		e.Fix = "known here: " + strings.Join(names, ", ")
		if near := Nearest(name, names); near != "" {
			e.Fix = fmt.Sprintf("did you mean %q?", near)
		}
	case semantic.Err != nil:
		e.What = fmt.Sprintf("%s: %s", e.path, suiting(semantic.Err, fieldAt(t, path)))
	case semantic.GoType != nil:
		e.What = fmt.Sprintf("%s: %s stands where %s belongs", e.path, found(semantic.JSONKind), wanted(semantic.GoType))
		if semantic.GoType.Kind() == reflect.String {
			e.Fix = "put it in quotes"
		}
	default:
		e.What = e.path + " has the wrong form"
	}
	return e
}

func found(k jsontext.Kind) string {
	switch k {
	case jsontext.KindString:
		return "text"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "true or false"
	case jsontext.KindBeginArray:
		return "a list"
	case jsontext.KindBeginObject:
		return "a group of keys"
	}
	return "nothing"
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a group of keys"
	}
	return "a number"
}
