package main

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/mirror"
)

// schemas are the documents that have a schema, by the word of the command.
func schemas() map[string]any {
	return map[string]any{
		"export":    &mirror.Spec{},
		"lock":      &mirror.Lock{},
		"manifest":  &bundle.Manifest{},
		"enrolment": &bundle.Enrolment{},
	}
}

func newSchema(p *project) *cobra.Command {
	kinds := []string{"export", "lock", "manifest", "enrolment"}
	return &cobra.Command{
		Use:       "schema {" + strings.Join(kinds, "|") + "}",
		Short:     "Print the JSON Schema of a document",
		Long:      "Print the JSON Schema of packhof.yaml (export), packhof.lock (lock), the\nbundle's packhof.json (manifest) or enrol.json (enrolment).",
		Args:      cobra.ExactArgs(1),
		ValidArgs: kinds,
		RunE: func(_ *cobra.Command, args []string) error {
			value, ok := schemas()[args[0]]
			if !ok {
				return &cli.UsageError{What: fmt.Sprintf("there is no schema %q; there are: %s", args[0], strings.Join(kinds, ", ")), Command: "packhof schema"}
			}
			b, err := json.Marshal(cli.Schema(value), json.Deterministic(true), jsontext.WithIndent("  "))
			if err != nil {
				return err
			}
			_, err = p.app.Stdout.Write(append(b, '\n'))
			return err
		},
	}
}
