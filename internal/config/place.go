package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

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
func (c *File) Locate(err error) error {
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
func (c *File) mistakeAt(path []string) *Mistake {
	e := &Mistake{File: c.name, path: dotted(path)}
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
