package main

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/policy"
)

// schemas are the documents that have a schema, by the word of the command.
func schemas() map[string]any {
	return map[string]any{
		"gate":      &config{},
		"manifest":  &bundle.Manifest{},
		"enrolment": &bundle.Enrolment{},
		"review":    &gate.Review{},
		"input":     &policy.Input{},
	}
}

func newSchema(s *site) *cobra.Command {
	kinds := []string{"gate", "manifest", "enrolment", "review", "input"}
	return &cobra.Command{
		Use:   "schema {" + strings.Join(kinds, "|") + "}",
		Short: "Print the JSON Schema of a document",
		Long: `Print the JSON Schema of gate.yaml (gate), the bundle's packhof.json
(manifest), enrol.json (enrolment), what people decide on (review), or what
the rules of a policy see (input).`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: kinds,
		RunE: func(_ *cobra.Command, args []string) error {
			value, ok := schemas()[args[0]]
			if !ok {
				return &cli.UsageError{What: fmt.Sprintf("there is no schema %q; there are: %s", args[0], strings.Join(kinds, ", ")), Command: "packhof-gate schema"}
			}
			b, err := json.Marshal(cli.Schema(value), json.Deterministic(true), jsontext.WithIndent("  "))
			if err != nil {
				return err
			}
			_, err = s.app.Stdout.Write(append(b, '\n'))
			return err
		},
	}
}
