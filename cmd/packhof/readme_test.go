package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/cli/clitest"
	"github.com/packhof/packhof/internal/config"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
)

// tree is the folder of the sources.
const tree = "../.."

// ofTheGate tells whether the reference of packhof-gate, which that program's
// own tests hold against it, knows a flag or a variable.
func ofTheGate(t *testing.T, name string) bool {
	t.Helper()
	return strings.Contains(clitest.ReadPage(t, tree, "docs/cli-gate.md").Text, "`"+name)
}

// script joins the shell blocks of a page under a heading.
func script(t *testing.T, p clitest.Page, heading string) string {
	t.Helper()
	var lines strings.Builder
	for _, b := range p.Blocks {
		if b.Heading == heading && b.Language == "sh" {
			lines.WriteString(b.Text)
		}
	}
	if lines.Len() == 0 {
		t.Fatalf("%s has no shell block under %q", p.Name, heading)
	}
	return lines.String()
}

// TestReadme does what the README says, word by word, as somebody who stands
// in a fresh checkout: the first gate, the first export, the first import. Only
// the port of the gate is another one, since others may have that of the page.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the programs")
	}
	programs, home := t.TempDir(), t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", programs, "./cmd/packhof", "./cmd/packhof-scan", "./cmd/packhof-gate")
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	readme, port := clitest.ReadPage(t, tree, "README.md"), freePort(t)
	var day strings.Builder
	for _, heading := range []string{"Your first gate", "Your first export", "Your first import"} {
		day.WriteString(script(t, readme, heading))
	}
	tools := filepath.Dir(testkit.Tool(t, "curl"))
	said := runScript(t, "export PACKHOF_LISTEN=127.0.0.1:"+port+"\n"+strings.ReplaceAll(day.String(), "127.0.0.1:8443", "127.0.0.1:"+port), home, programs, tools)
	for _, want := range []string{"genuine and whole: plant-7, serial 1", "case 1: plant-7, serial 1: loaded", "temperature,240\npressure,1.8\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("the blocks did not print %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "warning:") {
		t.Errorf("the first bundle is not without warnings:\n%s", said)
	}
	t.Run("without packhof", func(t *testing.T) {
		tools := filepath.Dir(testkit.Tool(t, "cosign"))
		said := runScript(t, script(t, readme, "Check it without Packhof"), home, programs, tools)
		if want := "Verified OK"; !strings.Contains(said, want) {
			t.Errorf("the blocks did not print %q:\n%s", want, said)
		}
	})
}

// freePort is one that nobody listens on now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	return port
}

func runScript(t *testing.T, script, home string, path ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-eu")
	command.Dir = tree
	command.Stdin = strings.NewReader(script)
	command.Env = []string{"HOME=" + home, "PATH=" + strings.Join(append(path, os.Getenv("PATH")), ":")}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\nof the script\n%s", err, out, script)
	}
	return string(out)
}

// TestYAMLExamplesAreValid gives every example to the strict loader.
func TestYAMLExamplesAreValid(t *testing.T) {
	examples := 0
	for _, p := range clitest.Pages(t, tree) {
		for _, b := range p.Blocks {
			if b.Language != "yaml" || strings.Contains(b.Text, "kind: Gate\n") {
				continue
			}
			examples++
			path := filepath.Join(t.TempDir(), "packhof.yaml")
			if err := os.WriteFile(path, []byte(b.Text), 0o644); err != nil {
				t.Fatal(err)
			}
			var spec mirror.Spec
			_, err := config.Read(path, config.Form{Into: &spec, Check: func() error { spec.SetDefaults(); return spec.Validate() }})
			if err != nil {
				t.Errorf("%s, %s: %v\n%s", p.Name, b.Heading, err, b.Text)
			}
		}
	}
	if examples == 0 {
		t.Error("there are no examples")
	}
}

func TestDocsCallWhatExists(t *testing.T) {
	root, _ := clitest.Program(t, "packhof", newRoot, "version")
	for _, p := range clitest.Pages(t, tree) {
		for _, call := range p.Calls("packhof") {
			if err := clitest.CheckCall(root, strings.Fields(call)); err != nil {
				t.Errorf("%s: packhof %s: %v", p.Name, call, err)
			}
		}
		for _, span := range p.Spans {
			if name, ok := strings.CutPrefix(strings.Fields(span + " x")[0], "--"); ok && !anyFlag(root, name) && !ofTheGate(t, "--"+name) {
				t.Errorf("%s: no command has the flag --%s", p.Name, name)
			}
		}
	}
}

func anyFlag(c *cobra.Command, name string) bool {
	c.InitDefaultHelpFlag()
	return c.Flag(name) != nil || slices.ContainsFunc(c.Commands(), func(sub *cobra.Command) bool { return anyFlag(sub, name) })
}

var (
	codeForm   = regexp.MustCompile(`^([a-z]+)/[a-z0-9-]+$`)
	rowForm    = regexp.MustCompile("(?m)^\\| `([a-z]+/[a-z0-9-]+)` \\| ([0-9]+) \\|")
	reportForm = regexp.MustCompile(`(?m)^code: (\S+)\s+exit ([0-9]+)`)
	exitForm   = regexp.MustCompile(`(?i)\bexit(?: code| status|s with)? ([0-9]+)\b`)
)

func TestDocsNameErrorsThatExist(t *testing.T) {
	groups := map[string]bool{}
	for _, e := range cli.Catalog() {
		group, _, _ := strings.Cut(e.Code, "/")
		groups[group] = true
	}
	for _, p := range clitest.Pages(t, tree) {
		for _, span := range p.Spans {
			m := codeForm.FindStringSubmatch(span)
			if m == nil || !groups[m[1]] {
				continue
			}
			if _, err := os.Stat(filepath.Join(tree, span)); err == nil {
				continue // a package of that name
			}
			if _, known := cli.Lookup(span); !known {
				t.Errorf("%s: there is no error code %s", p.Name, span)
			}
		}
		for _, m := range append(rowForm.FindAllStringSubmatch(p.Text, -1), reportForm.FindAllStringSubmatch(p.Text, -1)...) {
			if e, known := cli.Lookup(m[1]); !known || strconv.Itoa(e.Exit) != m[2] {
				t.Errorf("%s: %s with exit code %s; the program has %+v", p.Name, m[1], m[2], e)
			}
		}
		for _, m := range exitForm.FindAllStringSubmatch(p.Text, -1) {
			if !slices.ContainsFunc(cli.ExitCodes(), func(e cli.ExitMeaning) bool { return strconv.Itoa(e.Code) == m[1] }) {
				t.Errorf("%s: there is no exit code %s", p.Name, m[1])
			}
		}
	}
}

// TestReferenceIsComplete holds docs/cli.md against everything there is.
func TestReferenceIsComplete(t *testing.T) {
	reference := clitest.ReadPage(t, tree, "docs/cli.md")
	root, _ := clitest.Program(t, "packhof", newRoot, "version")
	for _, what := range clitest.Lacking(root, reference.Text) {
		t.Errorf("docs/cli.md lacks %s", what)
	}
	for _, e := range cli.ExitCodes() {
		if !strings.Contains(reference.Text, fmt.Sprintf("| %d | %s |", e.Code, e.Meaning)) {
			t.Errorf("docs/cli.md lacks the exit code %d, %s", e.Code, e.Meaning)
		}
	}
}

var (
	testForm     = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark)[A-Z]\w+$`)
	linkForm     = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	targetForm   = regexp.MustCompile(`(?m)(?:^|\s)make ([a-z][a-z-]*)`)
	variableForm = regexp.MustCompile(`\bPACKHOF_[A-Z_]+\b`)
)

// TestDocsPointSomewhere looks for every test, file, make target and
// environment variable that a page names.
func TestDocsPointSomewhere(t *testing.T) {
	tests := testNames(t)
	makefile, err := os.ReadFile(filepath.Join(tree, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, environment := clitest.Program(t, "packhof", newRoot, "help", "environment")
	environment += " PACKHOF_TOOLS PACKHOF_REQUIRE_TOOLS " // of the tests, see internal/testkit
	for _, p := range clitest.Pages(t, tree) {
		code := strings.Join(p.Spans, "\n")
		for _, b := range p.Blocks {
			code += "\n" + b.Text
		}
		for _, span := range p.Spans {
			if testForm.MatchString(span) && !tests[span] {
				t.Errorf("%s: there is no test %s", p.Name, span)
			}
		}
		for _, m := range linkForm.FindAllStringSubmatch(p.Text, -1) {
			checkLink(t, p, m[1], m[2])
		}
		for _, m := range targetForm.FindAllStringSubmatch(code, -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: there is no target %s in the Makefile", p.Name, m[1])
			}
		}
		for _, name := range variableForm.FindAllString(p.Text, -1) {
			if !regexp.MustCompile(`\b`+name+`\b`).MatchString(environment) && !ofTheGate(t, name) {
				t.Errorf("%s: packhof help environment does not know %s", p.Name, name)
			}
		}
	}
}

func checkLink(t *testing.T, from clitest.Page, path, anchor string) {
	t.Helper()
	if strings.Contains(path, "://") {
		return
	}
	name := from.Name
	if path != "" {
		name = filepath.Join(filepath.Dir(from.Name), path)
	}
	if _, err := os.Stat(filepath.Join(tree, name)); err != nil {
		t.Errorf("%s: the link %s leads nowhere: %v", from.Name, path, err)
		return
	}
	if anchor == "" {
		return
	}
	fits := func(heading string) bool { return anchorOf(heading) == anchor }
	if !slices.ContainsFunc(clitest.ReadPage(t, tree, name).Headings, fits) {
		t.Errorf("%s: %s has no heading for the link #%s", from.Name, name, anchor)
	}
}

// anchorOf makes of a heading what a link to it says.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' {
			return '-'
		}
		if strings.ContainsRune("-_", r) || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func testNames(t *testing.T) map[string]bool {
	t.Helper()
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir(tree, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range declaration.FindAllSubmatch(b, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestWorkedExample holds the example of the bundle format against a bundle
// that is made from the same seed.
func TestWorkedExample(t *testing.T) {
	forged := testkit.Forge(t, nil)
	got := map[string]string{"text": listing(t, forged.Volume), "json": string(forged.Head.Manifest) + "\n"}
	for _, b := range clitest.ReadPage(t, tree, "docs/bundle-format.md").Blocks {
		want, checked := got[b.Language]
		if b.Heading != "A worked example" || !checked {
			continue
		}
		delete(got, b.Language)
		if diff := cmp.Diff(want, b.Text); diff != "" {
			t.Errorf("docs/bundle-format.md (-is +says):\n%s\nwhole:\n%s", diff, want)
		}
	}
	if len(got) > 0 {
		t.Errorf("docs/bundle-format.md lacks the example, or a part of it:\n%v", got)
	}
}

// listing gives offset, size, digest and name of each entry.
func listing(t *testing.T, volume []byte) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "%6s  %4s  %-24s  %s\n", "offset", "size", "sha256", "entry")
	offset := int64(0)
	for archive := tar.NewReader(bytes.NewReader(volume)); ; {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%6d  %4d  %.12x  %s\n", offset, h.Size, sha256.Sum256(b), h.Name)
		offset += 512 + (h.Size+511)/512*512
	}
	fmt.Fprintf(&out, "%6d  %4d  %-24s  %s\n", offset, len(volume)-int(offset), "", "(two zero blocks, end of file)")
	return out.String()
}
