package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

func newRelease(s *site) *cobra.Command {
	dryRun := false
	c := &cobra.Command{
		Use:   "release CASE",
		Short: "Load what was approved to the destinations",
		Long: `Check everything again, load the artifacts to every destination that accepts
them, then set their names, and check what is there. Running it again goes
on where it was interrupted.

EXIT STATUS
   0  loaded
  12  denied
  13  it still waits for approval
  14  a person has rejected it
  21  a destination cannot be reached
  others as in  packhof-gate help exit-codes`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runRelease(s, c, args[0], dryRun) },
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be created and replaced, and load nothing")
	return c
}

// caseArgument reads the number of a case.
func caseArgument(c *cobra.Command, text string) (string, error) {
	if id, err := strconv.ParseInt(text, 10, 64); err != nil || id < 1 {
		return "", &cli.UsageError{What: fmt.Sprintf("%q is no number of a case", text), Command: c.CommandPath()}
	}
	return text, nil
}

func runRelease(s *site, c *cobra.Command, argument string, dryRun bool) error {
	id, err := caseArgument(c, argument)
	if err != nil {
		return err
	}
	return s.with(c.Context(), func(api *client) error {
		if dryRun {
			return s.printPlan(c, api, id)
		}
		return s.work(c, api, "cases/"+id+"/release", nil, "GateRelease")
	})
}

func (s *site) printPlan(c *cobra.Command, api *client, id string) error {
	var doc struct {
		Destinations []gate.PlannedDestination `json:"destinations"`
	}
	if _, err := api.call(c.Context(), "GET", "cases/"+id+"/plan", nil, &doc); err != nil {
		return err
	}
	return s.app.Print("GatePlan", doc, func(w io.Writer) {
		rows := [][]string{{"DESTINATION", "EFFECT", "NAME", "DIGEST", "SIZE", "REPLACES"}}
		for _, d := range doc.Destinations {
			for _, a := range d.Actions {
				replaces := "-"
				if a.Name.Replaces != nil {
					replaces = a.Name.Replaces.Short()
				}
				rows = append(rows, []string{d.Destination, string(a.Effect), a.Name.String(), a.Name.Digest.Short(), cli.Bytes(a.Bytes), replaces})
				if a.Reason != "" {
					rows = append(rows, []string{"", "", a.Reason})
				}
			}
			if d.Problem != nil {
				rows = append(rows, []string{d.Destination, "problem", d.Problem.What})
			}
		}
		cli.Table(w, rows)
		fmt.Fprintln(w, "dry run: nothing was loaded")
	})
}
