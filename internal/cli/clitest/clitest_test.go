package clitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/packhof/packhof/internal/cli"
)

func newRoot(a *cli.App) *cobra.Command {
	root := &cobra.Command{Use: "program", Short: "A program"}
	list := &cobra.Command{Use: "list", Short: "List", RunE: func(*cobra.Command, []string) error { _, err := a.Stdout.Write([]byte("nothing\n")); return err }}
	list.Flags().Bool("all", false, "list all")
	box := &cobra.Command{Use: "box", Short: "Boxes"}
	box.AddCommand(&cobra.Command{Use: "open", Short: "Open", Run: func(*cobra.Command, []string) {}})
	root.AddCommand(list, box)
	return root
}

func TestCheckCall(t *testing.T) {
	root, said := Program(t, "program", newRoot, "list")
	if said != "nothing\n" {
		t.Errorf("it said %q", said)
	}
	for call, want := range map[string]string{
		"list": "", "list --all": "", "list --all=false": "", "box open x": "", "list --help": "", "list -h": "", "help errors CODE": "", "help errors disk/full": "",
		"lst":               `program has no command "lst"`,
		"box close":         `program box has no command "close"`,
		"list --al":         "program list has no flag --al",
		"list -x":           "there is no flag -x",
		"help nothing":      `there is no help about "nothing"`,
		"help errors dsk/x": `there is no error code "dsk/x"`,
	} {
		err := CheckCall(root, strings.Fields(call))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("program %s: %v, want %q", call, err, want)
		}
	}
}

func TestLacking(t *testing.T) {
	root := newRoot(&cli.App{})
	if diff := cmp.Diff([]string{"the command program box open", "the command program list", "the flag --all of program list"}, Lacking(root, "`program box`, `program`")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lacking := Lacking(root, "`program`, `program box`, `program box open`, `program list` with `--all`"); lacking != nil {
		t.Errorf("%q", lacking)
	}
}

func TestReadPage(t *testing.T) {
	dir := t.TempDir()
	text := "# A page\n\nCall `program list` and `other x`, or (`program box open`).\n\n## How\n\n```sh\nprogram list \\\n  --all | sort\nprogram box open >out # program list\n```\n\n```yaml\na: b\n```\n"
	if err := os.WriteFile(filepath.Join(dir, "page.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p := ReadPage(t, dir, "page.md")
	want := Page{
		Name: "page.md", Text: text, Headings: []string{"A page", "How"}, Spans: []string{"program list", "other x", "program box open"},
		Blocks: []Block{{"How", "sh", "program list \\\n  --all | sort\nprogram box open >out # program list\n"}, {"How", "yaml", "a: b\n"}},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var calls []string
	for _, call := range p.Calls("program") {
		calls = append(calls, strings.Join(strings.Fields(call), " "))
	}
	if diff := cmp.Diff([]string{"list --all", "box open", "list", "list", "box open"}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
