package web

import (
	"fmt"
	"time"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

// Say says what is English in the source in the language of l. The form is the
// key of its translation; {name} in it stands for the value behind name. A
// form without a translation stays as it is, which no form of ours does.
func (l *Words) Say(form string, pairs ...any) string {
	text := form
	if german, ok := l.said[form]; ok {
		text = german
	}
	filled, err := l.fill(text, pairs)
	if err != nil {
		panic(fmt.Errorf("%q: %w", form, err)) // only where a call is wrong, whatever people do
	}
	return filled
}

// Many is Say with one form for one thing and another for several; {n} is how
// many.
func (l *Words) Many(n int, one, other string, pairs ...any) string {
	form := other
	if n == 1 {
		form = one
	}
	return l.Say(form, append([]any{"n", n}, pairs...)...)
}

// Sentence says what the gate says.
func (l *Words) Sentence(s gate.Sentence) string {
	var pairs []any
	for name, v := range s.Params {
		if name == "verdict" {
			v = l.word(name, v)
		}
		pairs = append(pairs, name, l.param(v))
	}
	return visible(l.Say(s.Form, pairs...))
}

// param makes a parameter that may have been JSON one that can be said.
func (l *Words) param(v any) any {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case string:
		if moment, err := time.Parse(time.RFC3339, v); err == nil {
			return l.date(moment)
		}
		return v
	}
	return fmt.Sprint(v)
}

// Meaning says what a code means, where the error itself speaks another
// language: "" in English, and for a code without translation.
func (l *Words) Meaning(code string) string {
	if l.code != "de" {
		return ""
	}
	entry, _ := cli.German(code)
	return entry.Meaning
}

// Remedy gives what helps against a problem, or what a check advises. foreign
// says that it is in English although that is not the language of l.
func (l *Words) Remedy(code, english string) (text string, foreign bool) {
	if l.code != "de" || english == "" && code == "" {
		return english, false
	}
	if german, ok := cli.GermanRemedy(code, english); ok {
		return german, false
	}
	if german, ok := l.said[english]; ok {
		return german, false
	}
	return english, english != ""
}

// Evidence gives lines of evidence with their labels in the language of l.
func (l *Words) Evidence(lines []string) []string {
	if l.code != "de" {
		return lines
	}
	return cli.GermanEvidence(lines)
}

// Word gives the word for a value of a fixed set, such as a state.
func (l *Words) Word(set string, value any) string { return l.word(set, value) }

// Size writes bytes in binary units with one decimal.
func (l *Words) Size(n int64) string { return l.size(n) }
