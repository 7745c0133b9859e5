package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

func newDoctor(s *site) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look whether the gate is in order",
		Long: `Look whether the gate is in order: modes of the data directory, space, database,
trust root, clock, audit log, policy and the folder with rules of your own,
people, destinations, and cases that are stuck or broken. Nothing is changed.
Content is not read: a release proves what it loads. Of a gate that cannot be
opened it says why, and looks at what can be looked at.

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
	var err error
	if doc.Checks, err = s.doctorChecks(c.Context()); err != nil {
		return err
	}
	err = s.app.Print("Doctor", doc, func(w io.Writer) {
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
}

// doctorChecks asks the gate. Where it cannot be opened, what can be looked at
// without is looked at.
func (s *site) doctorChecks(ctx context.Context) ([]gate.Check, error) {
	api, err := s.connect(ctx)
	if err != nil {
		if code := cli.CodeOf(err); code == "gate/busy" || code == "gate/none" || code != "file/not-plain" && !strings.HasPrefix(code, "gate/") && !strings.HasPrefix(code, "audit/") {
			return nil, err
		}
		return gate.DoctorClosed(ctx, s.dir, err), nil
	}
	var doc struct {
		Checks []gate.Check `json:"checks"`
	}
	_, err = api.call(ctx, http.MethodGet, "doctor", nil, &doc)
	if err := errors.Join(err, api.close()); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(doc.Checks, func(c gate.Check) bool { return c.Name == "policy" }); i >= 0 {
		doc.Checks = slices.Insert(doc.Checks, i+1, s.doctorRules(ctx, doc.Checks[i].Detail))
	}
	return doc.Checks, nil
}
