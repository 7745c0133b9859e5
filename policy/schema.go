package policy

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// schema is the form of the input as its Go types say: the one source for the
// check of every input, for the type checks of rules, and for the JSON Schema
// in docs/policy-input.schema.json.
type schema struct {
	kind    jsontext.Kind // '{', '[', '"', '0' (an integer) or 't' (a boolean)
	fields  []field       // of '{', in order
	sorted  []field       // the same by name
	items   *schema       // of '['
	enum    []string
	pattern *regexp.Regexp
	minimum bool // not below 0
	filled  bool // not ""
}

type field struct {
	name  string
	index int // in the Go type
	value *schema
}

// instantPattern is the form of Instant.
const instantPattern = `^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$`

// inputSchema never changes; it is made when it is first asked for.
var inputSchema = sync.OnceValue(func() *schema { return schemaOf(reflect.TypeFor[Input](), "") })

// schemaOf panics on a type or tag that it does not know: that is a mistake in
// this package, and any test of it finds it.
func schemaOf(t reflect.Type, tag string) *schema {
	s := &schema{}
	switch {
	case t == reflect.TypeFor[Instant]():
		s.kind, s.pattern = '"', regexp.MustCompile(instantPattern)
	case t.Kind() == reflect.String:
		s.kind = '"'
	case t.Kind() == reflect.Int64:
		s.kind = '0'
	case t.Kind() == reflect.Bool:
		s.kind = 't'
	case t.Kind() == reflect.Slice:
		s.kind, s.items = '[', schemaOf(t.Elem(), "")
	case t.Kind() == reflect.Struct:
		s.kind = '{'
		for f := range t.Fields() {
			s.fields = append(s.fields, field{f.Tag.Get("json"), f.Index[0], schemaOf(f.Type, f.Tag.Get("jsonschema"))})
		}
		s.sorted = slices.SortedFunc(slices.Values(s.fields), func(a, b field) int { return strings.Compare(a.name, b.name) })
	default:
		panic("no schema for " + t.String())
	}
	s.bound(tag)
	return s
}

func (s *schema) bound(tag string) {
	if tag == "" {
		return
	}
	for term := range strings.SplitSeq(tag, ",") {
		name, value, _ := strings.Cut(term, "=")
		switch name {
		case "enum":
			s.enum = append(s.enum, value)
		case "pattern":
			s.pattern = regexp.MustCompile(value)
		case "minimum":
			s.minimum = true
		case "minLength":
			s.filled = true
		default:
			panic("no bound " + name)
		}
	}
}

// document gives the schema as JSON Schema.
func (s *schema) document() map[string]any {
	switch s.kind {
	case '{':
		properties, required := map[string]any{}, []any{}
		for _, f := range s.fields {
			properties[f.name] = f.value.document()
			required = append(required, f.name)
		}
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	case '[':
		return map[string]any{"type": "array", "items": s.items.document()}
	case '0':
		doc := map[string]any{"type": "integer"}
		if s.minimum {
			doc["minimum"] = 0
		}
		return doc
	case 't':
		return map[string]any{"type": "boolean"}
	}
	doc := map[string]any{"type": "string"}
	if s.enum != nil {
		values := []any{}
		for _, v := range s.enum {
			values = append(values, v)
		}
		doc["enum"] = values
	}
	if s.pattern != nil {
		doc["pattern"] = s.pattern.String()
	}
	if s.filled {
		doc["minLength"] = 1
	}
	return doc
}

// InputSchema is the JSON Schema of Input, indented, with a newline at its end.
func InputSchema() ([]byte, error) {
	doc := inputSchema().document()
	doc["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	doc["$id"] = FormatV1
	doc["title"] = "The document that rules of Packhof see"
	b, err := json.Marshal(doc, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, fmt.Errorf("schema of the policy input: %w", err)
	}
	return append(b, '\n'), nil
}

// check reads one value and reports the first thing that does not fit. It works
// on tokens, so a large document costs no memory.
func (s *schema) check(d *jsontext.Decoder) error {
	token, err := d.ReadToken()
	if err != nil {
		return fault(codeInvalidInput, "the facts are not JSON").because(err)
	}
	got := token.Kind()
	if got == 'f' {
		got = 't'
	}
	if got != s.kind {
		return s.misfit(d, "a "+kindName(s.kind), "a "+kindName(got))
	}
	switch s.kind {
	case '{':
		return s.checkObject(d)
	case '[':
		for d.PeekKind() != ']' && d.PeekKind() != 0 {
			if err := s.items.check(d); err != nil {
				return err
			}
		}
		return skip(d)
	case '0':
		return s.checkNumber(d, token.String())
	case '"':
		return s.checkText(d, token.String())
	}
	return nil
}

func (s *schema) checkObject(d *jsontext.Decoder) error {
	at := d.StackPointer()
	seen := make([]bool, len(s.fields))
	for d.PeekKind() != '}' && d.PeekKind() != 0 {
		token, err := d.ReadToken()
		if err != nil {
			return fault(codeInvalidInput, "the facts are not JSON").because(err)
		}
		i := slices.IndexFunc(s.fields, func(f field) bool { return f.name == token.String() })
		if i < 0 {
			return fault(codeInvalidInput, "the facts have a property that nobody knows").with("at:  " + Visible(string(d.StackPointer())))
		}
		seen[i] = true
		if err := s.fields[i].value.check(d); err != nil {
			return err
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		return fault(codeInvalidInput, "the facts lack a property").with("at:  " + string(at) + "/" + s.fields[i].name)
	}
	return skip(d)
}

func (s *schema) checkNumber(d *jsontext.Decoder, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return s.misfit(d, anInteger, text)
	}
	if want := s.misfitNumber(n); want != "" {
		return s.misfit(d, want, text)
	}
	return nil
}

const (
	anInteger  = "an integer"
	maxInteger = 1 << 53 // what a JSON number holds exactly everywhere
)

// misfitNumber says what a number should be; "" if it is.
func (s *schema) misfitNumber(n int64) (want string) {
	switch {
	case n > maxInteger || n < -maxInteger:
		return anInteger
	case s.minimum && n < 0:
		return "0 or more"
	}
	return ""
}

func (s *schema) checkText(d *jsontext.Decoder, text string) error {
	if want := s.misfitText(text); want != "" {
		return s.misfit(d, want, strconv.Quote(text))
	}
	return nil
}

// misfitText says what a text should be; "" if it is.
func (s *schema) misfitText(text string) (want string) {
	switch {
	case s.enum != nil && !slices.Contains(s.enum, text):
		return "one of " + strings.Join(s.enum, ", ")
	case s.pattern != nil && !s.pattern.MatchString(text):
		return s.pattern.String()
	case s.filled && text == "":
		return "text"
	}
	return ""
}

func (s *schema) misfit(d *jsontext.Decoder, want, got string) error {
	return misfit(string(d.StackPointer()), want, got)
}

func misfit(at, want, got string) error {
	const longest = 200
	if len(got) > longest {
		got = got[:longest] + "…"
	}
	return fault(codeInvalidInput, "the facts do not fit their schema").
		with("at:    "+Visible(at), "want:  "+want, "got:   "+Visible(got))
}

func skip(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return fault(codeInvalidInput, "the facts are not JSON").because(err)
	}
	return nil
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "object"
	case '[':
		return "list"
	case '"':
		return "text"
	case '0':
		return "number"
	case 't':
		return "true or false"
	case 'n':
		return "null"
	}
	return "value"
}
