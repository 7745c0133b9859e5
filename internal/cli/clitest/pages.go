package clitest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Page is one file of the documentation.
type Page struct {
	Name     string // its path from the folder of the sources
	Text     string
	Headings []string
	Blocks   []Block
	Spans    []string // `code` outside of blocks
}

// Block is a fenced block.
type Block struct{ Heading, Language, Text string }

var spanForm = regexp.MustCompile("`([^`\n]+)`")

// ReadPage reads a page below the folder of the sources.
func ReadPage(t *testing.T, sources, name string) Page {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(sources, name))
	if err != nil {
		t.Fatal(err)
	}
	p := Page{Name: name, Text: string(b)}
	heading, open := "", false
	for line := range strings.Lines(p.Text) {
		language, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open:
			open = false
		case isFence:
			open = true
			p.Blocks = append(p.Blocks, Block{Heading: heading, Language: strings.TrimSpace(language)})
		case open:
			p.Blocks[len(p.Blocks)-1].Text += line
		default:
			if strings.HasPrefix(line, "#") {
				heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
				p.Headings = append(p.Headings, heading)
			}
			for _, m := range spanForm.FindAllStringSubmatch(line, -1) {
				p.Spans = append(p.Spans, m[1])
			}
		}
	}
	if open {
		t.Errorf("%s: a block is not closed", name)
	}
	return p
}

// Pages reads everything that people are given to read.
func Pages(t *testing.T, sources string) []Page {
	t.Helper()
	names := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/decisions/*.md"} {
		found, err := filepath.Glob(filepath.Join(sources, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		for _, path := range found {
			names = append(names, strings.TrimPrefix(path, sources+"/"))
		}
	}
	var all []Page
	for _, name := range names {
		all = append(all, ReadPage(t, sources, name))
	}
	return all
}

// Calls lists how the page calls a program, without the program's name.
func (p Page) Calls(program string) []string {
	form := regexp.MustCompile(`(?:^|[\s(;|&])` + regexp.QuoteMeta(program) + ` ([^|>;&#)\n]*)`)
	var calls []string
	add := func(code string) {
		for _, m := range form.FindAllStringSubmatch(code, -1) {
			calls = append(calls, m[1])
		}
	}
	for _, b := range p.Blocks {
		if b.Language == "sh" {
			add(strings.ReplaceAll(b.Text, "\\\n", " "))
		}
	}
	for _, span := range p.Spans {
		if strings.HasPrefix(span, program+" ") {
			add(span)
		}
	}
	return calls
}
