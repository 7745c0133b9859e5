package main

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

func newVerify(s *site) *cobra.Command {
	return &cobra.Command{
		Use:   "verify BUNDLE",
		Short: "Prove a bundle on its medium, and take nothing in",
		Long: `Prove that a bundle is genuine, meant for this gate, fresh, and whole to the
last byte, by what this gate trusts. Nothing is copied and no case is made.

EXIT STATUS
   0  all of it holds
  10  not genuine
  11  damaged
  12  not for this gate, or too old
  others as in  packhof-gate help exit-codes`,
		Args: cli.Needs("the bundle"),
		RunE: func(c *cobra.Command, args []string) error { return runVerify(s, c, args[0]) },
	}
}

func runVerify(s *site, c *cobra.Command, name string) error {
	path, err := bundleIn(name)
	if err != nil {
		return err
	}
	return s.with(c.Context(), func(api *client) error {
		show := s.phases()
		last, err := api.stream(c.Context(), "verifications", pathBody{path}, show.show)
		if err == nil && last.Problem != nil {
			err = last.Problem
		}
		show.end(err)
		if err == nil && last.Verification == nil {
			err = errors.New("the gate gave no result")
		}
		if err != nil {
			return err
		}
		var doc gate.Verification
		if err := json.Unmarshal(last.Verification, &doc); err != nil {
			return err
		}
		return s.app.Print("GateVerification", doc, func(w io.Writer) {
			fmt.Fprintln(w, s.say("genuine, fresh and whole: {channel}, serial {serial}", "channel", doc.Channel, "serial", fmt.Sprint(doc.Serial)))
			rows := [][]string{}
			for _, check := range doc.Checks {
				rows = append(rows, []string{"  " + s.word("proof", check.Name), s.told(check.Said, "", check.Detail)})
			}
			cli.Table(w, rows)
		})
	})
}
