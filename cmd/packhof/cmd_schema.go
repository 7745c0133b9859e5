package main

import (
	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/mirror"
)

func newSchema(p *project) *cobra.Command {
	const long = "Print the JSON Schema of packhof.yaml (export), packhof.lock (lock), the\nbundle's packhof.json (manifest) or enrol.json (enrolment)."
	return cli.SchemaCommand(p.app, long, []cli.Document{
		{Word: "export", Value: &mirror.Spec{}},
		{Word: "lock", Value: &mirror.Lock{}},
		{Word: "manifest", Value: &bundle.Manifest{}},
		{Word: "enrolment", Value: &bundle.Enrolment{}},
	})
}
