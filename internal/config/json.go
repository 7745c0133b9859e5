package config

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
)

// plainNumber is a number as everybody reads it: YAML knows others, such as
// 010, which is 8.
var plainNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17}|-?(0|[1-9][0-9]{0,17})\.[0-9]{1,17})$`)

// asJSON writes the file as JSON: text, numbers, true, false and null in groups
// and lists. It refuses the rest of YAML, with the place: what stands elsewhere
// (anchors expand to more than any memory holds), what says how to read what
// follows, and what reads otherwise than it looks.
func (c *File) asJSON() (jsontext.Value, error) {
	var out bytes.Buffer
	if err := c.writeNode(jsontext.NewEncoder(&out), c.root); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (c *File) writeNode(e *jsontext.Encoder, node ast.Node) error {
	switch n := node.(type) {
	case *ast.MappingNode:
		return c.writeGroup(e, n.Values)
	case *ast.MappingValueNode:
		return c.writeGroup(e, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		return c.writeList(e, n.Values)
	case *ast.StringNode:
		return c.writeText(e, n, n.Value)
	case *ast.LiteralNode:
		return c.writeText(e, n, n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return c.writeNumber(e, n)
	case *ast.BoolNode:
		return e.WriteToken(jsontext.Bool(n.Value))
	case *ast.NullNode:
		return e.WriteToken(jsontext.Null)
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return c.refused(node, "anchors (&) and aliases (*) are not accepted", "write the value out, or put the text in quotes")
	case *ast.TagNode:
		return c.refused(node, "tags (!) are not accepted", "take it out, or put the text in quotes")
	}
	return c.refused(node, "this form of YAML is not accepted", "write it as key: value, or as a list")
}

func (c *File) writeGroup(e *jsontext.Encoder, values []*ast.MappingValueNode) error {
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, v := range values {
		if _, merges := v.Key.(*ast.MergeKeyNode); merges {
			return c.writeNode(e, v.Key)
		}
		switch v.Key.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode: // all of them as they are written
		default:
			return c.refused(v.Key, "a key has to be one word or text", "write it as key: value")
		}
		if err := c.writeText(e, v.Key, v.Key.GetToken().Value); err != nil {
			return err
		}
		if err := c.writeNode(e, v.Value); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndObject)
}

func (c *File) writeList(e *jsontext.Encoder, values []ast.Node) error {
	if err := e.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for _, v := range values {
		if err := c.writeNode(e, v); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndArray)
}

// writeText writes text, which may have been written with escapes.
func (c *File) writeText(e *jsontext.Encoder, node ast.Node, text string) error {
	switch i := strings.IndexFunc(text, isControl); {
	case !utf8.ValidString(text):
		return c.refused(node, "the text is no UTF-8", "take out what is escaped in it")
	case i >= 0:
		r, _ := utf8.DecodeRuneInString(text[i:])
		return c.refused(node, fmt.Sprintf("the text holds the control character %U", r), "take it out")
	case len(text) > maxScalar:
		return c.refused(node, fmt.Sprintf("the text has %d bytes, and one at most %d", len(text), maxScalar), "shorten it")
	}
	return e.WriteToken(jsontext.String(text))
}

func (c *File) writeNumber(e *jsontext.Encoder, node ast.Node) error {
	text := node.GetToken().Value
	if !plainNumber.MatchString(text) {
		return c.refused(node, fmt.Sprintf("%.40q is no plain decimal number", text), "write it with the digits 0 to 9 alone, or in quotes if it is text")
	}
	return e.WriteValue(jsontext.Value(text))
}

func (c *File) refused(node ast.Node, what, fix string) error {
	at := begin(node).Position
	return &Mistake{File: c.name, Line: at.Line, Column: at.Column, What: what, Kind: "config/syntax", Fix: fix}
}
