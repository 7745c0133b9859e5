package cli

import (
	"encoding/json/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// garden and bed are documents that have a schema.
type garden struct {
	Channel string `json:"channel"`
	Beds    []bed  `json:"beds,omitempty"`
}

type bed struct {
	Name   string            `json:"name"`
	Plants []string          `json:"plants,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// common runs one of the commands that all programs have.
func (t *terminal) common(test *testing.T, args ...string) (exit int) {
	test.Helper()
	root := &cobra.Command{Use: "packhof", Short: "A test"}
	root.AddCommand(
		VersionCommand(t.App, "1.2.3", Formats{Reads: []string{"bundle/v1", "bundle/v2"}, Writes: "bundle/v2"}), ManCommand(t.App, "1.2.3"),
		SchemaCommand(t.App, "What there is.", []Document{{"garden", &garden{}}, {"bed", &bed{}}}),
	)
	return t.Execute(test.Context(), args, root)
}

func TestVersionCommand(t *testing.T) {
	plain := newTerminal()
	if exit := plain.common(t, "version"); exit != 0 || !strings.HasPrefix(plain.out.String(), "packhof 1.2.3  (go") || !strings.HasSuffix(plain.out.String(), "\nreads and writes bundle/v1, bundle/v2\n") {
		t.Errorf("exit %d: %s", exit, plain.out.String())
	}
	asJSON := newTerminal()
	var got versionDocument
	exit := asJSON.common(t, "version", "-o", "json")
	if err := json.Unmarshal(asJSON.out.Bytes(), &got); err != nil || exit != 0 || got.Version != "1.2.3" || got.Writes != "bundle/v2" || len(got.Reads) != 2 {
		t.Errorf("exit %d, %v: %s", exit, err, asJSON.out.String())
	}
	reader := newTerminal()
	if exit := reader.Execute(t.Context(), nil, VersionCommand(reader.App, "1", Formats{Reads: []string{"bundle/v1"}})); exit != 0 || !strings.HasSuffix(reader.out.String(), "\nreads bundle/v1\n") {
		t.Errorf("exit %d: %s", exit, reader.out.String())
	}
}

func TestManCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "man")
	if exit := newTerminal().common(t, "man", "--to", dir); exit != 0 {
		t.Fatalf("exit %d", exit)
	}
	page, err := os.ReadFile(filepath.Join(dir, "packhof-schema.1"))
	if err != nil || !strings.Contains(string(page), "packhof 1.2.3") || !strings.Contains(string(page), "What there is.") {
		t.Errorf("%v: %s", err, page)
	}
}

func TestSchemaCommand(t *testing.T) {
	term := newTerminal()
	var schema struct {
		Properties map[string]any `json:"properties"`
		Closed     *bool          `json:"additionalProperties"`
		Required   []string       `json:"required"`
	}
	exit := term.common(t, "schema", "bed")
	if err := json.Unmarshal(term.out.Bytes(), &schema); err != nil || exit != 0 || schema.Closed == nil || *schema.Closed || !slices.Equal(schema.Required, []string{"name"}) || len(schema.Properties) != 3 {
		t.Errorf("exit %d, %v: %s", exit, err, term.out.String())
	}
	other := newTerminal()
	if exit := other.common(t, "schema", "house"); exit != 2 || !strings.Contains(other.err.String(), `there is no schema "house"; there are: garden, bed`) || !strings.Contains(other.err.String(), "packhof schema --help") {
		t.Errorf("exit %d: %s", exit, other.err.String())
	}
}
