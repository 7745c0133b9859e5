package web

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestText is how much of one text a page shows, in characters.
const longestText = 4000

// visible prepares text that came with an artifact, or from anywhere else, for
// a page: characters that nobody can see, or that change how their
// surroundings are seen, are written as their numbers. Markup is the business
// of html/template. Every such text goes through this function, in templates
// by the name "show".
func visible(s string) string {
	if utf8.RuneCountInString(s) > longestText {
		s = string([]rune(s)[:longestText]) + "…"
	}
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) || r == utf8.RuneError {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// hidden finds control and formatting characters, all spaces but the plain
// one, and letters and marks that look like nothing.
func hidden(r rune) bool {
	switch {
	case r == ' ':
		return false
	case !unicode.IsPrint(r):
		return true
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF, r >= 0x180B && r <= 0x180F: // variation selectors
		return true
	}
	return slices.Contains([]rune{0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}, r)
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
