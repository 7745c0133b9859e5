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
		Args: cli.Needs("the number of a case"),
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
		return s.release(c, api, id)
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
		rows := [][]string{s.heads("DESTINATION", "EFFECT", "NAME", "DIGEST", "LOADS", "REPLACES")}
		for _, d := range doc.Destinations {
			for _, a := range d.Actions {
				rows = append(rows, s.action(d.Destination, a)...)
			}
			if p := d.Problem; p != nil {
				rows = append(rows, []string{d.Destination, s.say("problem"), s.told(gate.Sentence{}, p.Code, p.What)})
			}
		}
		cli.Table(w, rows)
		fmt.Fprintln(w, s.say("dry run: nothing was loaded"))
	})
}

// action is what a release would do to one name, and what stands in its way.
func (s *site) action(destination string, a gate.Action) [][]string {
	replaces, loads := "-", s.words.Size(a.Bytes)
	if a.Name.Replaces != nil {
		replaces = a.Name.Replaces.Short()
	}
	if a.Blobs > 0 {
		loads = s.blobs(int64(a.Blobs)) + ", " + loads
	}
	rows := [][]string{{destination, s.effect(a.Effect), a.Name.String(), a.Name.Digest.Short(), loads, replaces}}
	if a.Reason != "" {
		rows = append(rows, []string{"", "", a.Reason})
	}
	return rows
}
