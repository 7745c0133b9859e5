package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/web"
)

// language is the value of --lang.
type language struct{ site *site }

// String implements pflag.Value.
func (l language) String() string {
	if l.site == nil {
		return ""
	}
	return l.site.lang
}

// Set implements pflag.Value.
func (l language) Set(text string) error {
	if text != "en" && text != "de" {
		return fmt.Errorf("there is no language %q; there are: en, de", text)
	}
	words, err := web.LoadWords(text, l.site.app.Now)
	if err != nil {
		return err
	}
	l.site.lang, l.site.words, l.site.app.German = text, words, text == "de"
	return nil
}

// Type implements pflag.Value.
func (l language) Type() string { return "language" }

// addLang gives a command, and those below it, the language in which it speaks.
func (s *site) addLang(c *cobra.Command) {
	value := language{s}
	if err := value.Set("en"); err != nil {
		panic(err) // only if the program was built without its texts
	}
	c.PersistentFlags().Var(value, "lang", "`language`: en or de")
}

// say says what is English here in the language of --lang.
func (s *site) say(form string, pairs ...any) string { return s.words.Say(form, pairs...) }

// many is say with one form for one thing and another for several.
func (s *site) many(n int, one, other string, pairs ...any) string {
	return s.words.Many(n, one, other, pairs...)
}

// heads are the heads of a table.
func (s *site) heads(names ...string) []string {
	row := make([]string, len(names))
	for i, name := range names {
		if name != "" {
			row[i] = s.say(name)
		}
	}
	return row
}

// word gives the word of a state or another value of a fixed set; in English
// these are the values themselves.
func (s *site) word(set string, value any) string {
	if s.lang == "en" {
		return fmt.Sprint(value)
	}
	return s.words.Word(set, value)
}

// told is what the gate says of a check or an event. Of a problem German tells
// what it means, and then how it is put.
func (s *site) told(said gate.Sentence, code, english string) string {
	if s.lang != "en" && said.Form != "" {
		return s.words.Sentence(said)
	}
	if meaning := s.words.Meaning(code); meaning != "" {
		return meaning + " „" + english + "“"
	}
	return english
}

// remedy is what helps against a problem.
func (s *site) remedy(code, english string) string {
	text, _ := s.words.Remedy(code, english)
	return text
}

// artifacts says how many there are.
func (s *site) artifacts(n int) string { return s.many(n, "{n} artifact", "{n} artifacts") }

// blobs says how many there are.
func (s *site) blobs(n int64) string { return s.many(int(n), "{n} blob", "{n} blobs") }

// effect says what a release does to a name.
func (s *site) effect(e gate.Effect) string {
	switch e {
	case gate.EffectCreate:
		return s.say("create")
	case gate.EffectReplace:
		return s.say("replace")
	case gate.EffectKeep:
		return s.say("keep")
	}
	return s.say("blocked")
}
