package main

import (
	"io"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

func newDoctor(s *site) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look whether the gate is in order",
		Long: `Look whether the gate is in order: modes of the data directory, space, trust
root, clock, audit log, policy and the folder with rules of your own, people,
destinations, and cases that are stuck. Nothing is changed. Content is not read:
a release proves what it loads.

EXIT STATUS
  0  in order, perhaps with warnings
  1  something is not`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runDoctor(s, c) },
	}
}

func runDoctor(s *site, c *cobra.Command) error {
	var doc struct {
		Checks []gate.Check `json:"checks"`
	}
	return s.with(c.Context(), func(api *client) error {
		if _, err := api.call(c.Context(), http.MethodGet, "doctor", nil, &doc); err != nil {
			return err
		}
		if i := slices.IndexFunc(doc.Checks, func(c gate.Check) bool { return c.Name == "policy" }); i >= 0 {
			doc.Checks = slices.Insert(doc.Checks, i+1, s.doctorRules(c.Context(), doc.Checks[i].Detail))
		}
		err := s.app.Print("Doctor", doc, func(w io.Writer) {
			rows := [][]string{}
			for _, check := range doc.Checks {
				rows = append(rows, []string{s.word("doctor", check.Name), s.word("check", check.Result), s.told(check.Said, check.Code, check.Detail)})
				if remedy := s.remedy(check.Code, check.Remedy); remedy != "" {
					rows = append(rows, []string{"", "", s.say("hint: {remedy}", "remedy", remedy)})
				}
			}
			cli.Table(w, rows)
		})
		if err == nil && slices.ContainsFunc(doc.Checks, func(c gate.Check) bool { return c.Result == gate.CheckBad }) {
			return cli.Outcome(cli.ExitFailed)
		}
		return err
	})
}
