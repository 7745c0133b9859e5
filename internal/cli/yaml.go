package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// ConfigError says what is wrong in a configuration file, and where.
type ConfigError struct {
	File         string
	Line, Column int // 0 when unknown
	What         string
	Fix          string
	Kind         string // the stable code

	path   string // of the field, if it is about one
	absent bool   // the field does not stand in the file; the place is that of its parent
}

func (e *ConfigError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.What)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.What)
}

// Code is the stable code of this error.
func (e *ConfigError) Code() string { return e.Kind }

// Remedy says what to write instead.
func (e *ConfigError) Remedy() string { return e.Fix }

// Config is a configuration file that has been read; it remembers where its
// fields stand.
type Config struct {
	name string
	root ast.Node
}

// LoadConfig reads strict YAML into a struct with json tags, and then asks
// check what is wrong with the values: unknown and duplicate keys, wrong types
// and wrong values are errors with line and suggestion. Of several mistakes all
// are told, up to maxMistakes, unless the file is no YAML at all.
func LoadConfig(path string, into any, check func() error) (*Config, error) {
	b, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	c, err := parseConfig(path, bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))) // some editors begin with a byte order mark
	if err != nil {
		return nil, err
	}
	asJSON, err := c.asJSON()
	if err != nil {
		return nil, err
	}
	mistakes := c.decode(asJSON, into)
	wrong, err := c.mistakesOf(check())
	if err != nil {
		return nil, err
	}
	return c, mistaken(append(mistakes, withoutEchoes(wrong, mistakes)...))
}

// parseConfig parses within bounds.
func parseConfig(path string, b []byte) (*Config, error) {
	if err := legible(path, b); err != nil {
		return nil, err
	}
	tokens, err := tokenize(path, b)
	if err != nil {
		return nil, err
	}
	if deep := tooDeep(tokens); deep != nil {
		return nil, &ConfigError{File: path, Line: deep.Position.Line, Column: deep.Position.Column, What: fmt.Sprintf("it nests deeper than %d", maxNesting), Kind: "config/syntax"}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, syntaxError(path, err)
	}
	if len(file.Docs) == 0 || len(file.Docs) == 1 && file.Docs[0].Body == nil {
		return nil, &ConfigError{File: path, What: "it is empty", Kind: "config/syntax", Fix: "make one with  packhof init"}
	}
	if len(file.Docs) != 1 {
		return nil, &ConfigError{File: path, What: fmt.Sprintf("it holds %d documents, one is needed", len(file.Docs)), Kind: "config/syntax"}
	}
	return &Config{name: path, root: file.Docs[0].Body}, nil
}

func readConfig(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &ConfigError{File: path, What: "there is no such file", Kind: "config/missing", Fix: "make one with  packhof init"}
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &ConfigError{File: path, What: "it is not a plain file", Kind: "config/unreadable"}
	}
	if info.Size() > maxConfig {
		return nil, &ConfigError{File: path, What: fmt.Sprintf("it has %d bytes, and a configuration file at most %d", info.Size(), maxConfig), Kind: "config/unreadable"}
	}
	return os.ReadFile(path)
}

func syntaxError(path string, err error) error {
	e := &ConfigError{File: path, What: err.Error(), Kind: "config/syntax", Fix: "check indentation and quotes at this place"}
	var at interface{ GetToken() *token.Token }
	var message interface{ GetMessage() string }
	if errors.As(err, &at) && at.GetToken() != nil {
		e.Line, e.Column = at.GetToken().Position.Line, at.GetToken().Position.Column
	}
	if errors.As(err, &message) {
		e.What = strings.ReplaceAll(message.GetMessage(), "\t", `\t`)
	}
	return e
}

// wholeFile stands where the path of a field would.
const wholeFile = "the file"

func dotted(path []string) string {
	if len(path) == 0 {
		return wholeFile
	}
	var b strings.Builder
	for i, part := range path {
		if _, err := strconv.Atoi(part); err == nil && i > 0 {
			fmt.Fprintf(&b, "[%s]", part)
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}

// Locate adds file and line to an error that names a field by its path, such
// as artifacts[2].kind, or to several that are joined. Other errors pass
// through.
func (c *Config) Locate(err error) error {
	located, other := c.mistakesOf(err)
	if other != nil {
		return other
	}
	return mistaken(located)
}

// splitPath undoes dotted. A host name may have dots; position copes.
func splitPath(path string) []string {
	path = strings.ReplaceAll(strings.ReplaceAll(path, "[", "."), "]", "")
	return strings.Split(path, ".")
}

// mistakeAt makes a mistake of a field; a missing one is at its parent.
func (c *Config) mistakeAt(path []string) *ConfigError {
	e := &ConfigError{File: c.name, path: dotted(path)}
	node := c.root
	at := begin(node)
	for len(path) > 0 {
		key, value, used := descend(node, path)
		if used == 0 {
			e.absent = true
			break
		}
		at, node, path = key, value, path[used:]
	}
	e.Line, e.Column = at.Position.Line, at.Position.Column
	return e
}

// begin is where a node begins; for a group of keys the parser names the colon.
func begin(node ast.Node) *token.Token {
	switch n := node.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			return n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return node.GetToken()
}

// descend goes down one level and says how many parts of the path that took:
// more than one where a key has dots in it.
func descend(node ast.Node, path []string) (*token.Token, ast.Node, int) {
	var values []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	case *ast.SequenceNode:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(n.Values) {
			return nil, nil, 0
		}
		return begin(n.Values[i]), n.Values[i], 1
	}
	for used := len(path); used > 0; used-- {
		name := strings.Join(path[:used], ".")
		for _, v := range values {
			if v.Key.GetToken().Value == name {
				return v.Key.GetToken(), v.Value, used
			}
		}
	}
	return nil, nil, 0
}

// fieldNames lists the keys that the type knows at the path.
func fieldNames(t reflect.Type, path []string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		if len(path) > 0 {
			return fieldNames(t.Elem(), path[1:])
		}
	case reflect.Struct:
		var names []string
		for field := range fields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if len(path) > 0 && name == path[0] {
				return fieldNames(field.Type, path[1:])
			}
			names = append(names, name)
		}
		return names
	}
	return nil
}

func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// maxMisspelt is the length, in bytes, up to which a name may be another one
// misspelt: comparing takes time with the length.
const maxMisspelt = 60

// nearest finds a name that differs by little; "" if none does.
func nearest(name string, names []string) string {
	if len(name) > maxMisspelt {
		return ""
	}
	best, distance := "", 1+max(1, len(name)/3)
	for _, candidate := range names {
		if d := editDistance(strings.ToLower(name), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, changes and swaps of neighbours.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = slices.Min([]int{rows[i-1][j] + 1, rows[i][j-1] + 1, rows[i-1][j-1] + cost})
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
