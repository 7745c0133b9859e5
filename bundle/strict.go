package bundle

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"time"

	"github.com/packhof/packhof/internal/problem"
)

// maxDepth bounds the nesting of every document that crosses.
const maxDepth = 64

// decodeStrict parses one of our own documents: duplicate and unknown keys,
// wrong case, trailing data, nesting beyond maxDepth and sizes beyond limit
// all refuse.
func decodeStrict(what string, b []byte, limit int, into any) error {
	if len(b) > limit {
		return problem.New("format/too-large", "%s has %d bytes, more than the %d allowed", what, len(b), limit)
	}
	if err := checkDepth(b); err != nil {
		return problem.New("format/malformed", "%s is malformed: %w", what, problem.JSON(err))
	}
	if err := json.Unmarshal(b, into, json.RejectUnknownMembers(true)); err != nil {
		return problem.New("format/malformed", "%s is malformed: %w", what, problem.JSON(err))
	}
	return nil
}

// decodeLoose reads what is needed of a document to decide how to judge it;
// nothing else of it counts yet. Its size has been checked.
func decodeLoose(what string, b []byte, into any) error {
	if err := checkDepth(b); err != nil {
		return problem.New("format/malformed", "%s is malformed: %w", what, problem.JSON(err))
	}
	if err := json.Unmarshal(b, into); err != nil {
		return problem.New("format/malformed", "%s is malformed: %w", what, problem.JSON(err))
	}
	return nil
}

func checkDepth(b []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(b))
	for {
		if _, err := dec.ReadToken(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if dec.StackDepth() > maxDepth {
			return fmt.Errorf("nested deeper than %d", maxDepth)
		}
	}
}

// encodeCanonical writes v as RFC 8785 (JSON canonicalization scheme) says,
// so that the same value always gives the same bytes.
func encodeCanonical(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	value := jsontext.Value(b)
	if err := value.Canonicalize(); err != nil {
		return nil, err
	}
	return value, nil
}

// Instant is a time in our documents: UTC, whole seconds, RFC 3339 with Z.
type Instant struct{ time.Time }

const instantForm = "2006-01-02T15:04:05Z"

// At cuts t to whole seconds in UTC.
func At(t time.Time) Instant { return Instant{t.UTC().Truncate(time.Second)} }

// MarshalText writes the one accepted form.
func (i Instant) MarshalText() ([]byte, error) {
	if i.Year() < 1 || i.Year() > 9999 {
		return nil, fmt.Errorf("the year %d cannot be written", i.Year())
	}
	return []byte(i.UTC().Format(instantForm)), nil
}

// UnmarshalText accepts exactly the form that MarshalText writes.
func (i *Instant) UnmarshalText(b []byte) error {
	t, err := time.Parse(instantForm, string(b))
	if err != nil || t.Format(instantForm) != string(b) {
		return fmt.Errorf("%.40q is not a time of the form %s", b, instantForm)
	}
	i.Time = t
	return nil
}

// MarshalJSON and UnmarshalJSON replace those of time.Time, which would take
// zones and fractions.
func (i Instant) MarshalJSON() ([]byte, error) {
	text, err := i.MarshalText()
	return fmt.Appendf(nil, "%q", text), err
}

// UnmarshalJSON is UnmarshalText for a JSON string.
func (i *Instant) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	return i.UnmarshalText([]byte(text))
}

func (i Instant) String() string { return i.UTC().Format(instantForm) }
