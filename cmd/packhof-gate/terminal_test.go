package main

import (
	"os"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/testkit"
)

// types gives a terminal of the kernel's at which somebody has typed this.
func types(t *testing.T, text string) *os.File {
	t.Helper()
	person, program := testkit.Terminal(t)
	if _, err := person.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return program
}

// TestDecideAtATerminal: who gave no reason is asked for it before the question,
// and who does not say yes is told what would have counted.
func TestDecideAtATerminal(t *testing.T) {
	t.Parallel()
	l := waiting(t)
	for _, k := range []struct {
		name, typed string
		run         []string
		exit        int
		says        []string
	}{
		{"no reason", "\n", []string{"approve", "1"}, 2, []string{"Why, in a sentence: ", "needs a reason", `--reason "…"`}},
		{"no", "only notes\nno\n", []string{"approve", "1"}, 1, []string{"Let case 1 through? [yes/no]", "hint: answer the question with yes"}},
		{"no, in German", "nur Notizen\nnein\n", []string{"--lang", "de", "approve", "1"}, 1, []string{"Begründung, in einem Satz: ", "Abhilfe: die Frage mit ja beantworten"}},
		{"a rejection without a reason", "\n", []string{"reject", "1"}, 2, []string{"Why, in a sentence: ", "a rejection needs a reason"}},
		{"yes", "only notes\nyes\n", []string{"approve", "1"}, 0, []string{"Why, in a sentence: ", "Let case 1 through? [yes/no]"}},
	} {
		c := l.Command("packhof-gate", append(k.run, "--as", "anna")...)
		c.Stdin = types(t, k.typed)
		o := l.Finish(c)
		if o.Exit != k.exit {
			t.Errorf("%s: exit %d, want %d\n%s", k.name, o.Exit, k.exit, o.Stderr)
		}
		for _, want := range k.says {
			if !strings.Contains(o.Stderr, want) {
				t.Errorf("%s: does not say %q:\n%s", k.name, want, o.Stderr)
			}
		}
	}
	if shown := l.must("show", "1").Stdout; !strings.Contains(shown, "only notes") {
		t.Errorf("the reason that was typed is not kept:\n%s", shown)
	}
}
