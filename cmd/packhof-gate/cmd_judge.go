package main

import (
	"github.com/spf13/cobra"

	"github.com/packhof/packhof/policy/judge"
)

// newJudge is the other side of boundedJudge: this program, run by itself
// within bounds.
func newJudge(s *site) *cobra.Command {
	return &cobra.Command{
		Use: "judge", Short: "Evaluate the policy (run by other commands)", Args: cobra.NoArgs, Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error { return judge.Serve(c.Context(), s.app.Stdin, s.app.Stdout) },
	}
}
