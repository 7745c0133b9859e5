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
		return visible(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return "?"
}

// visible writes what nobody can see, or what changes how its surroundings are
// seen, as its number.
func visible(s string) string {
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

func hidden(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }

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
