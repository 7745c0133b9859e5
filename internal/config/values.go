package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Span is a duration written as 30d, 12h or 15m.
type Span time.Duration

const day = 24 * time.Hour

// UnmarshalText parses a Span.
func (s *Span) UnmarshalText(b []byte) error {
	no := &misreadError{text: string(b), form: "span of time", such: "30d, 12h or 15m"}
	if days, ok := strings.CutSuffix(no.text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 32)
		if err != nil || time.Duration(n) > math.MaxInt64/day {
			return no
		}
		*s = Span(time.Duration(n) * day)
		return nil
	}
	d, err := time.ParseDuration(no.text)
	if err != nil || d < 0 {
		return no
	}
	*s = Span(d)
	return nil
}

func (s Span) String() string {
	if d := time.Duration(s); d%day != 0 || d == 0 {
		return d.String()
	}
	return fmt.Sprintf("%dd", time.Duration(s)/day)
}

// MarshalText writes a Span as it is read.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Size is a number of bytes, a multiple of a KiB, written as 512MiB or 4GiB.
type Size int64

var units = [...]struct {
	name  string
	bytes Size
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// UnmarshalText parses a Size.
func (s *Size) UnmarshalText(b []byte) error {
	text := string(b)
	for _, unit := range units {
		digits, ok := strings.CutSuffix(text, unit.name)
		if n, err := strconv.ParseUint(digits, 10, 31); ok && err == nil && Size(n) <= (1<<62)/unit.bytes {
			*s = Size(n) * unit.bytes
			return nil
		}
	}
	return &misreadError{text: text, form: "size", such: "512MiB or 4GiB"}
}

// String writes a Size in the largest unit of which it is a multiple.
func (s Size) String() string {
	for _, unit := range units {
		if s >= unit.bytes && s%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", s/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%dKiB", int64(s)>>10)
}

// MarshalText writes a Size as it is read.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// misreadError is a text that has not the form of its type.
type misreadError struct {
	text string
	form string
	such string // examples of the form
}

func (e *misreadError) Error() string {
	return fmt.Sprintf("%q is no %s such as %s", e.text, e.form, e.such)
}

// suiting puts the examples of a field, which are in its tag "such", in the
// place of those of its type: of what is decided within seconds, 30d is none.
func suiting(err error, field reflect.StructField) error {
	no, ok := errors.AsType[*misreadError](err)
	such, has := field.Tag.Lookup("such")
	if !ok || !has {
		return err
	}
	return &misreadError{text: no.text, form: no.form, such: such}
}
