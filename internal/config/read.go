package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// File is a document that has been read; it remembers where its fields stand.
type File struct {
	name string
	root ast.Node
}

// Form is what a document has to look like.
type Form struct {
	Into   any          // pointer to a struct with json tags
	Check  func() error // finds wrong values in Into: a *problem.FieldError, or several joined
	Remedy string       // the remedy where there is no document, or nothing in it
}

// Read reads strict YAML into form.Into, and then asks form.Check what is wrong
// with the values: unknown and duplicate keys, wrong types and wrong values are
// errors with line and suggestion. Of several mistakes all are told, up to
// maxMistakes, unless the file is no YAML at all.
func Read(path string, form Form) (*File, error) {
	b, err := readBytes(path, form.Remedy)
	if err != nil {
		return nil, err
	}
	c, err := parse(path, bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), form.Remedy) // some editors begin with a byte order mark
	if err != nil {
		return nil, err
	}
	asJSON, err := c.asJSON()
	if err != nil {
		return nil, err
	}
	mistakes := c.decode(asJSON, form.Into)
	wrong, err := c.mistakesOf(form.Check())
	if err != nil {
		return nil, err
	}
	return c, mistaken(append(mistakes, withoutEchoes(wrong, mistakes)...))
}

// parse parses within bounds.
func parse(path string, b []byte, remedy string) (*File, error) {
	if err := legible(path, b); err != nil {
		return nil, err
	}
	tokens, err := tokenize(path, b)
	if err != nil {
		return nil, err
	}
	if deep := tooDeep(tokens); deep != nil {
		return nil, &Mistake{File: path, Line: deep.Position.Line, Column: deep.Position.Column, What: fmt.Sprintf("it nests deeper than %d", maxNesting), Kind: "config/syntax"}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, syntaxError(path, err)
	}
	if len(file.Docs) == 0 || len(file.Docs) == 1 && file.Docs[0].Body == nil {
		return nil, &Mistake{File: path, What: "it is empty", Kind: "config/syntax", Fix: remedy}
	}
	if len(file.Docs) != 1 {
		return nil, &Mistake{File: path, What: fmt.Sprintf("it holds %d documents, one is needed", len(file.Docs)), Kind: "config/syntax"}
	}
	return &File{name: path, root: file.Docs[0].Body}, nil
}

func readBytes(path, remedy string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Mistake{File: path, What: "there is no such file", Kind: "config/missing", Fix: remedy}
	}
	if errors.Is(err, syscall.ELOOP) {
		return nil, &Mistake{File: path, What: "it is a link that leads to no file", Kind: "config/unreadable", Fix: "put the file itself there"}
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Mistake{File: path, What: "it is not a plain file", Kind: "config/unreadable"}
	}
	if info.Size() > maxFile {
		return nil, &Mistake{File: path, What: fmt.Sprintf("it has %d bytes, and a configuration file at most %d", info.Size(), maxFile), Kind: "config/unreadable"}
	}
	return os.ReadFile(path)
}

func syntaxError(path string, err error) error {
	e := &Mistake{File: path, What: err.Error(), Kind: "config/syntax", Fix: "check indentation and quotes at this place"}
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
