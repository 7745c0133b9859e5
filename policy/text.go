package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a finding in the words of one language.
type Text struct {
	Title    string // the rule's
	Sentence string // what was found
	Remedy   string // what may be done about it
}

// Words gives a finding in German ("de") or English (any other language).
// Parameters come from artifacts: control characters and characters that turn
// text around are written as their numbers. Markup is not escaped here.
func Words(r Rule, f Finding, lang string) Text {
	w := r.words(lang)
	return Text{Title: w.Title, Sentence: fill(w.Message, f.Params), Remedy: w.Remedy}
}

// Worded is a finding together with its words in one language.
type Worded struct {
	Finding
	Title    string `json:"title"`
	Sentence string `json:"sentence"`
	Remedy   string `json:"remedy"`
}

// InWords gives findings with their words in German ("de") or English (any
// other language). Where the policy does not have the rule any more, its name
// says what it was about, and there is no sentence.
func (p *Policy) InWords(findings []Finding, lang string) []Worded {
	list := []Worded{}
	for _, f := range findings {
		text := Text{Title: f.Rule}
		if rule, ok := p.Rule(f.Rule); ok {
			text = Words(rule, f, lang)
		}
		list = append(list, Worded{f, text.Title, text.Sentence, text.Remedy})
	}
	return list
}

func (r Rule) words(lang string) Wording {
	if lang == "de" {
		return r.German
	}
	return r.English
}

// fill replaces placeholders in one pass, so that a parameter's value is never
// taken for a placeholder.
func fill(message string, params map[string]any) string {
	var b strings.Builder
	for message != "" {
		before, rest, found := strings.Cut(message, "{")
		b.WriteString(before)
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			b.WriteString("{" + rest)
			break
		}
		b.WriteString(paramText(params[name]))
		message = after
	}
	return b.String()
}

func paramText(v any) string {
	const longest = 500
	switch v := v.(type) {
	case string:
		if runes := []rune(v); len(runes) > longest {
			v = string(runes[:longest]) + "…"
		}
		return Visible(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return "?"
}

// Visible writes what nobody can see, or what changes how its surroundings are
// seen, as its number, such as ⟨U+202E⟩: whatever came with an artifact goes
// through it before people read it. Markup is left alone.
func Visible(s string) string {
	if !strings.ContainsFunc(s, hidden) && utf8.ValidString(s) {
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

// placeholders lists the names in braces, sorted, each once; ok is false if a
// brace stands alone or a name is not one.
func placeholders(message string) (names []string, ok bool) {
	for {
		before, rest, found := strings.Cut(message, "{")
		if strings.Contains(before, "}") {
			return nil, false
		}
		if !found {
			slices.Sort(names)
			return slices.Compact(names), true
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !isParamName(name) {
			return nil, false
		}
		names, message = append(names, name), after
	}
}

func isParamName(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' {
			return false
		}
	}
	return s != "" && len(s) <= 40
}
