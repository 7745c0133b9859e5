package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/packhof/packhof/internal/cli/clitest"
)

// tree is the folder of the sources.
const tree = "../.."

// Every call of packhof-gate in any page is one that the program understands.
func TestDocsCallWhatExists(t *testing.T) {
	root, _ := clitest.Program(t, "packhof-gate", newRoot, "version")
	found := 0
	for _, p := range clitest.Pages(t, tree) {
		for _, call := range p.Calls("packhof-gate") {
			found++
			if err := clitest.CheckCall(root, strings.Fields(call)); err != nil {
				t.Errorf("%s: packhof-gate %s: %v", p.Name, call, err)
			}
		}
	}
	if found < 20 {
		t.Errorf("the pages call packhof-gate %d times only", found)
	}
}

// TestReferenceIsComplete holds docs/cli-gate.md against everything there is,
// and the other way round.
func TestReferenceIsComplete(t *testing.T) {
	reference := clitest.ReadPage(t, tree, "docs/cli-gate.md").Text
	root, environment := clitest.Program(t, "packhof-gate", newRoot, "help", "environment")
	for _, what := range clitest.Lacking(root, reference) {
		t.Errorf("docs/cli-gate.md lacks %s", what)
	}
	var flags []string
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
	for _, m := range regexp.MustCompile(`--([a-z][a-z-]*)`).FindAllStringSubmatch(reference, -1) {
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
	for _, p := range clitest.Pages(t, tree) {
		for i, b := range p.Blocks {
			if b.Language == "yaml" && strings.Contains(b.Text, "kind: Gate\n") {
				examples[fmt.Sprintf("%s, block %d", p.Name, i)] = b.Text
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
