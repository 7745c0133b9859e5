package clitest

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/internal/cli"
)

// Program runs a program without input and environment. It gives the commands as
// they run, with help topics and completion, and what the program printed.
func Program(t *testing.T, name string, newRoot func(*cli.App) *cobra.Command, args ...string) (*cobra.Command, string) {
	t.Helper()
	var out bytes.Buffer
	app := &cli.App{
		Name: name, Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard,
		Now:       func() time.Time { return time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC) },
		LookupEnv: func(string) (string, bool) { return "", false },
	}
	root := newRoot(app)
	if code := app.Execute(t.Context(), args, root); code != cli.ExitOK {
		t.Fatalf("%s %s: exit %d", name, strings.Join(args, " "), code)
	}
	return root, out.String()
}

// CheckCall finds what is wrong with a call of a program, such as a page shows
// it: words of no command, flags that the command has not, a help topic or an
// error code that there is not.
func CheckCall(root *cobra.Command, words []string) error {
	command, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	command.InitDefaultHelpFlag()
	if command.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%s has no command %q", command.CommandPath(), rest[0])
	}
	if command.Name() == "help" && len(rest) > 0 {
		return checkTopic(root, rest)
	}
	for _, word := range rest {
		if long, ok := strings.CutPrefix(word, "--"); ok {
			name, _, _ := strings.Cut(long, "=")
			if command.Flag(name) == nil {
				return fmt.Errorf("%s has no flag --%s", command.CommandPath(), name)
			}
		} else if len(word) == 2 && word[0] == '-' && root.PersistentFlags().ShorthandLookup(word[1:]) == nil && word != "-h" {
			return fmt.Errorf("there is no flag %s", word)
		}
	}
	return nil
}

func checkTopic(root *cobra.Command, words []string) error {
	if topic, _, err := root.Find(words[:1]); err != nil || topic == root {
		return fmt.Errorf("there is no help about %q", words[0])
	}
	if len(words) < 2 || words[0] != "errors" || words[1] == "CODE" {
		return nil
	}
	if _, known := cli.Lookup(words[1]); !known {
		return fmt.Errorf("there is no error code %q", words[1])
	}
	return nil
}

var flagForm = regexp.MustCompile(`--([a-z][a-z-]*)`)

// Lacking lists the commands and flags of a program that its reference does not
// mention. Those of completion are the same in every program of this kind.
func Lacking(c *cobra.Command, reference string) (lacking []string) {
	if c.IsAvailableCommand() && !(c.HasParent() && c.Parent().Name() == "completion") {
		if !strings.Contains(reference, "`"+c.CommandPath()) {
			lacking = append(lacking, "the command "+c.CommandPath())
		}
		for _, m := range flagForm.FindAllStringSubmatch(c.LocalFlags().FlagUsages(), -1) {
			if !strings.Contains(reference, "`--"+m[1]) {
				lacking = append(lacking, fmt.Sprintf("the flag --%s of %s", m[1], c.CommandPath()))
			}
		}
	}
	for _, sub := range c.Commands() {
		lacking = append(lacking, Lacking(sub, reference)...)
	}
	return lacking
}
