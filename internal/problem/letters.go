package problem

import (
	"strings"
	"unicode"
)

// Hidden tells whether a character cannot be seen, or changes how its
// surroundings are seen: control and formatting characters (bidi marks among
// them), separators of lines, and letters and marks that look like nothing. A
// blank is none of them.
func Hidden(r rune) bool {
	switch {
	case r < 0x7F:
		return r < ' '
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
		return true
	}
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == 0x2800 // Braille without dots
}

// HasHidden tells whether text has a character that is Hidden.
func HasHidden(s string) bool { return strings.ContainsFunc(s, Hidden) }

// maxMarks is how many marks may stand over one letter. Living languages need
// up to four.
const maxMarks = 8

// HasWords tells whether text says anything to who looks at it: it has a letter
// or a digit that can be seen, and no letter with marks beyond number.
func HasWords(s string) bool {
	marks, seen := 0, false
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
			marks++
		case !Hidden(r): // what is hidden between marks does not part them
			marks = 0
		}
		if marks > maxMarks {
			return false
		}
		seen = seen || (unicode.IsLetter(r) || unicode.IsNumber(r)) && !Hidden(r)
	}
	return seen
}
