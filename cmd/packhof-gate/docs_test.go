package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/testkit"
)

// tree is the command tree as it runs, with help topics and completion, and
// what it printed.
func tree(t *testing.T, args ...string) (*cobra.Command, string) {
	t.Helper()
	var out bytes.Buffer
	app := &cli.App{
		Name: "packhof-gate", Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard, Now: testkit.Noon,
		LookupEnv: func(string) (string, bool) { return "", false },
	}
	root := newRoot(app)
	if code := app.Execute(t.Context(), args, root); code != cli.ExitOK {
		t.Fatalf("packhof-gate %s: exit %d", strings.Join(args, " "), code)
	}
	return root, out.String()
}

// pages are those that people are given to read, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/decisions/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		for _, path := range found {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[strings.TrimPrefix(path, "../../")] = string(b)
		}
	}
	return all
}

var (
	blockForm = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```")
	spanForm  = regexp.MustCompile("`([^`\n]+)`")
	callForm  = regexp.MustCompile(`(?:^|[\s(;|&])packhof-gate ([^|>;&#)\n]*)`)
	flagForm  = regexp.MustCompile(`--([a-z][a-z-]*)`)
)

// calls lists how a page calls packhof-gate, without the program's name.
func calls(text string) []string {
	var code []string
	for _, b := range blockForm.FindAllStringSubmatch(text, -1) {
		if b[1] == "sh" {
			code = append(code, strings.ReplaceAll(b[2], "\\\n", " "))
		}
	}
	for _, span := range spanForm.FindAllStringSubmatch(blockForm.ReplaceAllString(text, ""), -1) {
		if strings.HasPrefix(span[1], "packhof-gate ") {
			code = append(code, span[1])
		}
	}
	var all []string
	for _, c := range code {
		for _, m := range callForm.FindAllStringSubmatch(c, -1) {
			all = append(all, m[1])
		}
	}
	return all
}

// Every call of packhof-gate in any page is one that the program understands.
func TestDocsCallWhatExists(t *testing.T) {
	root, _ := tree(t, "version")
	found := 0
	for name, text := range pages(t) {
		for _, call := range calls(text) {
			found++
			if err := checkCall(root, strings.Fields(call)); err != nil {
				t.Errorf("%s: packhof-gate %s: %v", name, call, err)
			}
		}
	}
	if found < 20 {
		t.Errorf("the pages call packhof-gate %d times only", found)
	}
}

func checkCall(root *cobra.Command, words []string) error {
	command, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	command.InitDefaultHelpFlag()
	if command.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%s has no command %q", command.CommandPath(), rest[0])
	}
	for _, word := range rest {
		if m := flagForm.FindStringSubmatch(word); m != nil && strings.HasPrefix(word, "--") && command.Flag(m[1]) == nil {
			return fmt.Errorf("%s has no flag --%s", command.CommandPath(), m[1])
		}
	}
	return nil
}

// TestReferenceIsComplete holds docs/cli-gate.md against everything there is,
// and the other way round.
func TestReferenceIsComplete(t *testing.T) {
	reference := pages(t)["docs/cli-gate.md"]
	root, environment := tree(t, "help", "environment")
	var flags []string
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		if c.IsAvailableCommand() && !strings.HasPrefix(c.CommandPath(), "packhof-gate completion ") {
			if !strings.Contains(reference, "`"+c.CommandPath()) {
				t.Errorf("docs/cli-gate.md lacks the command %s", c.CommandPath())
			}
			for _, m := range flagForm.FindAllStringSubmatch(c.LocalFlags().FlagUsages(), -1) {
				if !strings.Contains(reference, "`--"+m[1]) {
					t.Errorf("docs/cli-gate.md lacks the flag --%s of %s", m[1], c.CommandPath())
				}
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
	for _, m := range flagForm.FindAllStringSubmatch(reference, -1) {
		if !slices.Contains(flags, m[1]) && m[1] != "help" && m[1] != "no-descriptions" {
			t.Errorf("docs/cli-gate.md has the flag --%s, which no command has", m[1])
		}
	}
	for _, name := range regexp.MustCompile(`\bPACKHOF_[A-Z_]*[A-Z]\b`).FindAllString(reference, -1) {
		if !strings.Contains(environment, name+" ") {
			t.Errorf("docs/cli-gate.md has %s, which help environment does not know", name)
		}
	}
}

// Every example of a gate.yaml, and the one that init writes with its comments
// taken away, goes through the strict loader.
func TestConfigExamplesAreValid(t *testing.T) {
	examples := map[string]string{"the template": template, "the template without comments": uncommented(template)}
	for name, text := range pages(t) {
		for i, b := range blockForm.FindAllStringSubmatch(text, -1) {
			if b[1] == "yaml" && strings.Contains(b[2], "kind: Gate\n") {
				examples[fmt.Sprintf("%s, block %d", name, i)] = b[2]
			}
		}
	}
	if len(examples) < 4 {
		t.Errorf("there are %d examples only", len(examples))
	}
	for name, text := range examples {
		dir := t.TempDir()
		for file, content := range map[string]string{"gate.yaml": text, "enrol.json": "{}"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s := &site{dir: dir}
		if err := s.load(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		if name == "the template without comments" && len(s.config.Destinations) != 2 {
			t.Errorf("%s has %d destinations:\n%s", name, len(s.config.Destinations), text)
		}
	}
}

// uncommented takes the mark off lines of the template that are YAML.
func uncommented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# "); ok && regexp.MustCompile(`^( *- )?\s*[a-zA-Z]+:( [^ ]|\n|$)`).MatchString(rest) {
			line = rest
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "")
}
