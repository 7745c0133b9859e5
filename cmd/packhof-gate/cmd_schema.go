package main

import (
	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/policy"
)

func newSchema(s *site) *cobra.Command {
	const long = `Print the JSON Schema of gate.yaml (gate), the bundle's packhof.json
(manifest), enrol.json (enrolment), what people decide on (review), or what
the rules of a policy see (input).`
	return cli.SchemaCommand(s.app, long, []cli.Document{
		{Word: "gate", Value: &settings{}},
		{Word: "manifest", Value: &bundle.Manifest{}},
		{Word: "enrolment", Value: &bundle.Enrolment{}},
		{Word: "review", Value: &gate.Review{}},
		{Word: "input", Value: &policy.Input{}},
	})
}
