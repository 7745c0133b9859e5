package config

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a configuration file. The parser needs time with the square of the
// keys of a mapping and of the nesting, and about a KiB of memory for each
// token: a file of a megabyte would take minutes and a gigabyte.
const (
	maxFile    = 1 << 20 // bytes
	maxSigns   = 60_000  // each gives up to two tokens
	maxNesting = 100
	maxKeys    = 10_000
	maxTokens  = 45_000 // a key with its value is three
	maxScalar  = 64 << 10
)

// legible refuses bytes that are no text, with the line of the first one: what
// cannot be seen in an editor has no place in what decides.
func legible(path string, b []byte) error {
	line, column := 1, 1
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		bad := &Mistake{File: path, Line: line, Column: column, Kind: "config/syntax", Fix: "save it as UTF-8 text"}
		switch {
		case i == 0 && len(b) > 1 && (r == 0 || b[1] == 0 || b[0] == 0xFE && b[1] == 0xFF || b[0] == 0xFF && b[1] == 0xFE):
			bad.What = "it is not UTF-8; it looks like UTF-16 or UTF-32"
			return bad
		case r == utf8.RuneError && size == 1:
			bad.What = fmt.Sprintf("the byte 0x%02X is no UTF-8", b[i])
			return bad
		case isControl(r):
			bad.What, bad.Fix = fmt.Sprintf("the control character %U stands there", r), "take it out"
			return bad
		}
		i += size
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	return nil
}

// isControl finds control characters but for line breaks and tabs.
func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r >= 0x7F && r < 0xA0
}

// signs counts what may begin a token, so that it never counts too little: line
// ends of lines with text, and signs where they may mean something. What stands
// in comments and quotes counts, too: whoever wants to know what those are has
// to split the file into tokens, which is what takes memory.
func signs(b []byte) (n int) {
	before, blank := byte('\n'), true // nothing in this line yet
	for i, c := range b {
		starts := strings.IndexByte(" \t\r\n"+signBytes, before) >= 0
		switch {
		case c == '\n' || c == '\r':
			if !blank {
				n++
			}
			blank = true
		case c == ' ' || c == '\t':
		case c == '-':
			if starts && (i+1 == len(b) || strings.IndexByte(" \t\r\n"+signBytes, b[i+1]) >= 0 && b[i+1] != '-') {
				n++
			}
			blank = false
		case c == ':' || c == ',' || c == '[' || c == ']' || c == '{' || c == '}', starts && strings.IndexByte(signBytes, c) >= 0 && (c != '#' || before != '#'):
			n++
			blank = false
		default:
			blank = false
		}
		before = c
	}
	return n
}

// signBytes are all signs that mean something to YAML.
const signBytes = "-?:,[]{}#&*!|>'\"%@`"

// tokenize splits a file, and refuses what has more than the parser bears.
func tokenize(path string, b []byte) (token.Tokens, error) {
	tooMuch := func(format string, args ...any) error {
		return &Mistake{File: path, What: fmt.Sprintf(format, args...), Kind: "config/unreadable", Fix: "split it, or take together what belongs together"}
	}
	if signs(b) > maxSigns {
		return nil, tooMuch("it has more than %d lines and signs", maxSigns)
	}
	tokens := lexer.Tokenize(string(b))
	if len(tokens) > maxTokens {
		return nil, tooMuch("it has %d words and signs, and a configuration file at most %d", len(tokens), maxTokens)
	}
	keys := 0
	for _, t := range tokens {
		if t.Type == token.MappingValueType {
			keys++
		}
	}
	if keys > maxKeys {
		return nil, tooMuch("it has %d keys, and a configuration file at most %d", keys, maxKeys)
	}
	return tokens, nil
}

// depth follows how deep tokens stand. A level is a bracket, which is 0, or in
// a block the column at which it begins, from 1.
type depth struct {
	levels   []int
	brackets int
}

// tooDeep finds the first token that stands in more than maxNesting others;
// nil if there is none. Of marks that may stand before a value, such as tags,
// each counts as a level: the parser calls itself for them.
func tooDeep(tokens token.Tokens) *token.Token {
	var d depth
	for i, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			d.levels = append(d.levels, 0)
			d.brackets++
		case token.MappingEndType, token.SequenceEndType:
			d.leave(0)
			if len(d.levels) > 0 {
				d.levels = d.levels[:len(d.levels)-1]
				d.brackets--
			}
		case token.CollectEntryType:
			d.leave(0)
		case token.DocumentHeaderType, token.DocumentEndType:
			d = depth{}
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType, token.AliasType:
			d.enter(t.Position.Column)
		case token.MappingValueType: // the key before it is where it begins
			d.enter(tokens[max(0, i-1)].Position.Column)
		}
		if len(d.levels) > maxNesting {
			return t
		}
	}
	return nil
}

// enter adds a level at a column. In a block it takes the place of those that
// do not contain it; between brackets a comma does that.
func (d *depth) enter(column int) {
	if d.brackets == 0 {
		d.leave(column)
	}
	d.levels = append(d.levels, max(1, column))
}

// leave drops the levels of a block from a column on, up to a bracket.
func (d *depth) leave(column int) {
	for n := len(d.levels); n > 0 && d.levels[n-1] > 0 && d.levels[n-1] >= column; n-- {
		d.levels = d.levels[:n-1]
	}
}
