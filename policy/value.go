package policy

import (
	"reflect"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// terms makes the value that rules see out of the facts, without a document in
// between. What stands in many places (names of properties, formats, "") is
// there once: of a tree with 100,000 files the value is a third as large.
type terms struct {
	texts   map[string]*ast.Term
	numbers map[int64]*ast.Term
	empty   *ast.Term // list
}

const (
	mostShared = 10_000 // of texts and of numbers
	longShared = 40     // bytes of a text that may stand in many places
)

// value is the input as rules see it.
func (in *Input) value() ast.Value {
	t := terms{texts: map[string]*ast.Term{}, numbers: map[int64]*ast.Term{}, empty: ast.ArrayTerm()}
	return t.of(inputSchema(), reflect.ValueOf(in).Elem()).Value
}

func (t *terms) of(s *schema, v reflect.Value) *ast.Term {
	switch s.kind {
	case '{':
		items := make([][2]*ast.Term, len(s.fields))
		for i, f := range s.fields {
			items[i] = [2]*ast.Term{t.text(f.name), t.of(f.value, v.Field(f.index))}
		}
		return ast.ObjectTerm(items...)
	case '[':
		if v.Len() == 0 {
			return t.empty
		}
		items := make([]*ast.Term, v.Len())
		for i := range items {
			items[i] = t.of(s.items, v.Index(i))
		}
		return ast.ArrayTerm(items...)
	case '0':
		return t.number(v.Int())
	case 't':
		return ast.InternedTerm(v.Bool())
	}
	return t.text(v.String())
}

func (t *terms) text(text string) *ast.Term {
	if len(text) > longShared {
		return ast.StringTerm(text)
	}
	return share(t.texts, text, ast.StringTerm)
}

func (t *terms) number(n int64) *ast.Term {
	return share(t.numbers, n, func(n int64) *ast.Term { return &ast.Term{Value: ast.Number(strconv.FormatInt(n, 10))} })
}

func share[K comparable](known map[K]*ast.Term, k K, make func(K) *ast.Term) *ast.Term {
	if term, ok := known[k]; ok {
		return term
	}
	term := make(k)
	if len(known) < mostShared {
		known[k] = term
	}
	return term
}
