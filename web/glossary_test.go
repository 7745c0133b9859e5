package web

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/cli"
)

// term is a row of the table of words in docs/gate.md.
type term struct {
	english string
	german  []string
	never   []string // words that would be another one for the same thing
}

func glossary(t *testing.T) []term {
	t.Helper()
	b, err := os.ReadFile("../docs/gate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(b), "| English | German |")
	if !found {
		t.Fatal("docs/gate.md has no table of words")
	}
	var terms []term
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) == 4 {
			terms = append(terms, term{strings.TrimPrefix(cells[0], "| "), strings.Split(cells[1], ", "), strings.Split(strings.TrimSuffix(strings.TrimSpace(cells[3]), " |"), ", ")})
		}
	}
	return terms
}

// germanTexts is all that is said in German, by a name for each.
func germanTexts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for key, text := range german(t).texts {
		all[key] = text
	}
	for form, text := range german(t).said {
		all[form] = text
	}
	for _, e := range cli.Catalog() {
		entry, _ := cli.German(e.Code)
		remedy, _ := cli.GermanRemedy(e.Code, "")
		all[e.Code] = entry.Meaning + " " + remedy
	}
	return all
}

// Where a word begins and ends: neither within another one nor within a path.
const begin, end = `(^|[^\pL/-])`, `($|[^\pL/-])`

// TestOneWordForOneThing holds everything that is said in German to the table
// of words: each of them is used, and none of those that would be a second word
// for the same thing.
func TestOneWordForOneThing(t *testing.T) {
	terms, texts := glossary(t), germanTexts(t)
	if len(terms) < 20 {
		t.Fatalf("only %d words", len(terms))
	}
	for _, term := range terms {
		for _, word := range term.german {
			stem := regexp.MustCompile(begin + `(?i:` + regexp.QuoteMeta(strings.TrimSuffix(word, "en")) + `)(bar|en|er|es|e|n|s|t)?` + end)
			used := false
			for _, text := range texts {
				used = used || stem.MatchString(text)
			}
			if !used {
				t.Errorf("%s: nothing says %q", term.english, word)
			}
		}
		for _, word := range term.never {
			whole := regexp.MustCompile(begin + regexp.QuoteMeta(word) + end)
			for key, text := range texts {
				if whole.MatchString(text) {
					t.Errorf("%s is %s, and %q says %q: %s", term.english, strings.Join(term.german, ", "), key, word, text)
				}
			}
		}
	}
}
