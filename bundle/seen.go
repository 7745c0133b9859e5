package bundle

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/packhof/packhof/internal/problem"
)

// seen refuses characters that nobody sees in what people compare: two names
// that look alike have to be alike. Blanks are seen, if they are plain ones.
func seen(what, text string) error {
	i := strings.IndexFunc(text, func(r rune) bool { return problem.Hidden(r) || r != ' ' && unicode.IsSpace(r) })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s %+.60q has a character that cannot be seen, at byte %d", what, text, i+1)
}
