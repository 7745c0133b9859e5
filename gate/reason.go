package gate

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/packhof/packhof/internal/problem"
)

// CheckReason says what is wrong with the reason of a decision; nil if nothing
// is, and if there is none. A reason is what others read later: what nobody can
// see, or what moves a cursor, is none.
func CheckReason(reason string) error {
	wrong := func(format string, args ...any) error {
		return problem.New("case/reason", format, args...).Hint("say why, in a sentence")
	}
	switch {
	case reason == "":
		return nil
	case len(reason) > MaxReason || !utf8.ValidString(reason):
		return wrong("a reason has up to %d bytes of text", MaxReason)
	case strings.ContainsFunc(reason, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) }):
		return wrong("a reason has no control characters")
	case !problem.HasWords(reason):
		return wrong("a reason has letters that can be seen, and few marks over each of them")
	}
	return nil
}
