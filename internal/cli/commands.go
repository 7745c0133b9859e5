package cli

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Formats are the formats of bundles that a program knows.
type Formats struct {
	Reads  []string
	Writes string // "": it writes none
}

// versionDocument is what "version" prints.
type versionDocument struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit,omitempty"`
	Date     string   `json:"date,omitempty"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	Reads    []string `json:"readsBundles"`
	Writes   string   `json:"writesBundles,omitempty"`
}

// VersionCommand is "version".
func VersionCommand(a *App, version string, formats Formats) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show version and formats", Args: Needs(),
		Example: "  " + a.Name + " version\n  " + a.Name + " version -o json",
		RunE: func(*cobra.Command, []string) error {
			v := versionDocument{
				Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
				Reads: formats.Reads, Writes: formats.Writes,
			}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					switch s.Key {
					case "vcs.revision":
						v.Commit = s.Value
					case "vcs.time":
						v.Date = s.Value
					}
				}
			}
			deeds := deedsOf(a.German, v.Writes != "")
			return a.Print("Version", v, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s  (%s, %s)\n%s %s\n", a.Name, v.Version, v.Go, v.Platform, deeds, strings.Join(v.Reads, ", "))
			})
		},
	}
}

// deedsOf says what a program does with bundles.
func deedsOf(german, writes bool) string {
	switch {
	case german && writes:
		return "liest und schreibt"
	case german:
		return "liest"
	case writes:
		return "reads and writes"
	}
	return "reads"
}

// ManCommand is "man", which is for packagers: the manual as files.
func ManCommand(a *App, version string) *cobra.Command {
	to := ""
	c := &cobra.Command{
		Use: "man", Short: "Write the manual pages", Args: Needs(), Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := os.MkdirAll(to, 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Title: strings.ToUpper(a.Name), Section: "1", Source: a.Name + " " + version}, to)
		},
	}
	c.Flags().StringVar(&to, "to", "man", "`folder` to write to")
	return c
}

// Document is one that has a schema, by the word of the command.
type Document struct {
	Word  string
	Value any
}

// SchemaCommand is "schema"; long says what the words stand for.
func SchemaCommand(a *App, long string, documents []Document) *cobra.Command {
	var words []string
	values := map[string]any{}
	for _, d := range documents {
		words = append(words, d.Word)
		values[d.Word] = d.Value
	}
	return &cobra.Command{
		Use:       "schema {" + strings.Join(words, "|") + "}",
		Short:     "Print the JSON Schema of a document",
		Long:      long,
		Example:   fmt.Sprintf("  %s schema %s > %[1]s.schema.json", a.Name, words[0]),
		Args:      Needs("the name of a document"),
		ValidArgs: words,
		RunE: func(c *cobra.Command, args []string) error {
			value, ok := values[args[0]]
			if !ok {
				return usage(c, fmt.Sprintf("there is no schema %q; there are: %s", args[0], strings.Join(words, ", ")))
			}
			b, err := json.Marshal(Schema(value), json.Deterministic(true), jsontext.WithIndent("  "))
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write(append(b, '\n'))
			return err
		},
	}
}
