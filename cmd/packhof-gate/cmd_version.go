package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/packhof/packhof/bundle"
)

// versionDocument is what "version" prints.
type versionDocument struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit,omitempty"`
	Date     string   `json:"date,omitempty"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	Reads    []string `json:"readsBundles"`
}

func newVersion(s *site) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show version and formats", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versionDocument{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Reads: []string{bundle.FormatV1}}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, setting := range info.Settings {
					switch setting.Key {
					case "vcs.revision":
						v.Commit = setting.Value
					case "vcs.time":
						v.Date = setting.Value
					}
				}
			}
			return s.app.Print("Version", v, func(w io.Writer) {
				fmt.Fprintf(w, "packhof-gate %s  (%s, %s)\nreads %s\n", v.Version, v.Go, v.Platform, bundle.FormatV1)
			})
		},
	}
}

// newMan is for packagers: the manual as files.
func newMan(*site) *cobra.Command {
	to := ""
	c := &cobra.Command{
		Use: "man", Short: "Write the manual pages", Args: cobra.NoArgs, Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := os.MkdirAll(to, 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Title: "PACKHOF-GATE", Section: "1", Source: program()}, to)
		},
	}
	c.Flags().StringVar(&to, "to", "man", "`folder` to write to")
	return c
}
