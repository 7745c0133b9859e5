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

// isOfDirectory tells that the data directory itself is what keeps the gate from
// being opened: gate.DoctorClosed can look at that, unless somebody else has the
// directory, or there is none.
func isOfDirectory(err error) bool {
	switch code := cli.CodeOf(err); code {
	case "gate/busy", "gate/none":
		return false
	case "file/not-plain":
		return true
	default:
		group, _, _ := strings.Cut(code, "/")
		return group == "gate" || group == "audit"
	}
}

// doctorChecks asks the gate. Where it cannot be opened, what can be looked at
// without is looked at.
func (s *site) doctorChecks(ctx context.Context) ([]gate.Check, error) {
	api, err := s.connect(ctx)
	if err != nil {
		if !isOfDirectory(err) {
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
