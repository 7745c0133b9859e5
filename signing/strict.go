package signing

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// maxDepth bounds the nesting of our documents; the deepest one needs six.
	maxDepth = 8
	// maxNumber bounds every version, epoch, serial and threshold. It is far
	// below 2^53, above which JSON libraries stop agreeing about integers.
	maxNumber = 1 << 40
	// maxText bounds every owner and reason, in bytes.
	maxText = 500
)

// decodeStrict reads one of our documents into v. It is refused unless v,
// written back as RFC 8785, gives the same bytes: no duplicate, unknown or
// missing member, no null, no second spelling of anything, so that all who
// parse a document read the same.
func decodeStrict(raw []byte, v any) error {
	if err := checkDepth(raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v, json.RejectUnknownMembers(true)); err != nil {
		return inWords(err)
	}
	want, err := encodeCanonical(v)
	if err != nil {
		return err
	}
	return sameBytes(want, raw)
}

// inWords says where a document is wrong. The decoder's own text names Go types
// and is worded differently from build to build.
func inWords(err error) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntactic):
		return fmt.Errorf("not JSON, or a duplicate key, at byte %d", syntactic.ByteOffset)
	case errors.As(err, &semantic) && errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("unknown key at %q", semantic.JSONPointer)
	case errors.As(err, &semantic) && semantic.Err != nil:
		return fmt.Errorf("at %q: %w", semantic.JSONPointer, semantic.Err)
	case errors.As(err, &semantic):
		return fmt.Errorf("at %q: something else belongs there", semantic.JSONPointer)
	}
	return err
}

// encodeCanonical writes v as RFC 8785.
func encodeCanonical(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return canonical(raw)
}

// canonical is the RFC 8785 form of raw, in new memory.
func canonical(raw []byte) ([]byte, error) {
	value := jsontext.Value(bytes.Clone(raw))
	if err := value.Canonicalize(); err != nil {
		return nil, err
	}
	return value, nil
}

func checkDepth(raw []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		if _, err := dec.ReadToken(); err != nil {
			// The end, or a syntax error that the decoder proper reports.
			return nil
		}
		if dec.StackDepth() > maxDepth {
			return fmt.Errorf("nested deeper than %d", maxDepth)
		}
	}
}

func sameBytes(want, got []byte) error {
	if bytes.Equal(want, got) {
		return nil
	}
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	return fmt.Errorf("not in canonical form (RFC 8785) from byte %d on", at)
}

// checkText refuses names and reasons that could lie to the person who reads
// them: control and formatting characters, direction marks, emptiness.
func checkText(what, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%s is empty", what)
	case len(s) > maxText:
		return fmt.Errorf("%s is longer than %d bytes", what, maxText)
	case !utf8.ValidString(s):
		return fmt.Errorf("%s is not UTF-8", what)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%s holds the character %U, which does not print", what, r)
		}
	}
	return nil
}

func checkNumber(what string, n int64) error {
	if n < 1 || n > maxNumber {
		return fmt.Errorf("%s is %d, not a number from 1 to %d", what, n, int64(maxNumber))
	}
	return nil
}

// parseTime reads the one form of a time in our documents: whole seconds, UTC.
func parseTime(what, s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || formatTime(t) != s {
		return time.Time{}, fmt.Errorf("%s %q is not a time like 2026-01-31T12:00:00Z", what, clip(s))
	}
	return t, nil
}

func formatTime(t time.Time) string { return t.UTC().Truncate(time.Second).Format(time.RFC3339) }

// checkWritable refuses a time that could not be read back.
func checkWritable(what string, t time.Time) error {
	if t.IsZero() {
		return errors.New(what + " is missing")
	}
	_, err := parseTime(what, formatTime(t))
	return err
}
