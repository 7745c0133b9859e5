package web

import (
	"strings"
	"unicode/utf8"

	"github.com/packhof/packhof/policy"
)

// longestText is how much of one text a page shows, in characters.
const longestText = 4000

// visible prepares text that came with an artifact, or from anywhere else, for
// a page: short enough, and with nothing in it that cannot be seen. Markup is
// the business of html/template. Every such text goes through this function, in
// templates by the name "show".
func visible(s string) string {
	if utf8.RuneCountInString(s) > longestText {
		s = string([]rune(s)[:longestText]) + "…"
	}
	return policy.Visible(s)
}

// visibleLines prepares text of several lines, such as a note.
func visibleLines(s string) []string {
	const most = 100
	lines := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	if len(lines) > most {
		lines = append(lines[:most], "…")
	}
	for i, l := range lines {
		lines[i] = visible(l)
	}
	return lines
}
