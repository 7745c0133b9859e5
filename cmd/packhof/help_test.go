package main

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/testkit"
)

// helpColumns is how wide a terminal has to be for our help.
const helpColumns = 100

// TestHelp: what a person is told fits on a terminal, and every command that
// does something shows how it is typed, with words that it takes.
func TestHelp(t *testing.T) {
	l := &lab{testkit.NewLab(t)}
	ways := [][]string{nil, {"help", "errors"}, {"help", "environment"}, {"help", "exit-codes"}, {"help", "json"}, {"help", "formats"}}
	visit(newRoot(&cli.App{Name: "packhof"}), func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		ways = append(ways, append(path, "--help"))
		if c.Runnable() && !c.Hidden {
			checkExamples(t, c)
		}
	})
	if len(ways) < 20 {
		t.Fatalf("%d ways to ask for help", len(ways))
	}
	for _, args := range ways {
		for line := range strings.Lines(l.mustRun(args...).Stdout) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpColumns {
				t.Errorf("packhof %s: %d columns: %s", strings.Join(args, " "), n, line)
			}
		}
	}
}

func visit(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		visit(sub, do)
	}
}

// checkExamples makes sure that examples call the command, with flags that it
// has and as many arguments as it takes.
func checkExamples(t *testing.T, c *cobra.Command) {
	t.Helper()
	if c.Example == "" {
		t.Errorf("%s has no example", c.CommandPath())
		return
	}
	for line := range strings.Lines(c.Example) {
		_, rest, ok := strings.Cut(line, c.CommandPath())
		command, _, _ := strings.Cut(rest, ">")
		if !ok || !strings.HasPrefix(line, "  ") {
			t.Errorf("%s: %q is no example of it", c.CommandPath(), line)
			continue
		}
		if err := parses(c, strings.Fields(strings.ReplaceAll(command, `"$(cat fingerprint-by-telephone)"`, "0000"))); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// parses tells whether a command takes these words.
func parses(c *cobra.Command, words []string) error {
	if err := c.ParseFlags(ownFlags(words)); err != nil {
		return err
	}
	if c.Args == nil {
		return fmt.Errorf("%s takes any arguments", c.CommandPath())
	}
	return c.Args(c, c.Flags().Args())
}

// ownFlags leaves out the flags that internal/cli gives to every command when
// it runs.
func ownFlags(words []string) []string {
	var own []string
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "-o":
			i++
		case "-q":
		default:
			own = append(own, words[i])
		}
	}
	return own
}
