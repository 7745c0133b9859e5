package problem

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
)

// JSON says what a JSON decoder refused, in words for people: where in the
// document, and why. The decoder's own text names Go types and is worded
// differently from run to run.
func JSON(err error) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, json.ErrUnknownName):
		errors.As(err, &semantic)
		return fmt.Errorf("unknown key at %s", place(semantic.JSONPointer))
	case errors.Is(err, jsontext.ErrDuplicateName):
		errors.As(err, &syntactic)
		return fmt.Errorf("duplicate key at %s", place(syntactic.JSONPointer))
	case errors.As(err, &semantic) && semantic.Err != nil:
		return fmt.Errorf("at %s: %w", place(semantic.JSONPointer), semantic.Err)
	case errors.As(err, &semantic):
		return fmt.Errorf("at %s: a JSON %s has no place there", place(semantic.JSONPointer), semantic.JSONKind)
	case errors.As(err, &syntactic):
		return fmt.Errorf("not JSON at byte %d, at %s", syntactic.ByteOffset, place(syntactic.JSONPointer))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("it ends too early")
	}
	return err
}

func place(p jsontext.Pointer) string {
	if p == "" {
		return "the top"
	}
	return fmt.Sprintf("%.200q", string(p))
}
