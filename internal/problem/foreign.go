package problem

import (
	"strings"
	"unicode"
)

// maxLine is how many characters of a foreign text are shown.
const maxLine = 200

// Line makes text that a server chose fit for a message: printable, in one
// line, and short.
func Line(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), func(r rune) bool {
		return !unicode.IsPrint(r) || unicode.IsSpace(r)
	}), " ")
	if runes := []rune(s); len(runes) > maxLine {
		return string(runes[:maxLine-1]) + "…"
	}
	return s
}

// Foreign is an error whose text may repeat what a server said, such as the
// names in its certificate; it is made fit for a message, as Line does it.
func Foreign(err error) error { return foreign{err} }

type foreign struct{ err error }

func (f foreign) Error() string { return Line(f.err.Error()) }
func (f foreign) Unwrap() error { return f.err }
