package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

func newShow(s *site) *cobra.Command {
	lang := ""
	c := &cobra.Command{
		Use:   "show CASE",
		Short: "Show a case: what is in it, the verdict and why, what happened",
		Args:  cobra.ExactArgs(1),
		RunE:  func(c *cobra.Command, args []string) error { return runShow(s, c, args[0], lang) },
	}
	addLang(c, &lang)
	return c
}

// showDocument is what "show" prints.
type showDocument struct {
	Case   gate.Case   `json:"case"`
	Review *reviewPage `json:"review,omitempty"` // once the policy has judged
}

func runShow(s *site, c *cobra.Command, argument, lang string) error {
	id, err := caseArgument(c, argument)
	if err != nil {
		return err
	}
	if err := checkLang(c, lang); err != nil {
		return err
	}
	return s.with(c.Context(), func(api *client) error {
		var doc showDocument
		if _, err := api.call(c.Context(), "GET", "cases/"+id, nil, &doc.Case); err != nil {
			return err
		}
		var err error
		if doc.Review, err = reviewIfAny(c.Context(), api, id, lang); err != nil {
			return err
		}
		return s.app.Print("GateCase", doc, doc.table)
	})
}

// reviewIfAny gives the review, or nil where the policy has not judged yet.
func reviewIfAny(ctx context.Context, api *client, id, lang string) (*reviewPage, error) {
	page, err := readReview(ctx, api, id, lang)
	var refused *refusal
	if errors.As(err, &refused) && refused.Code() == "case/no-review" {
		return nil, nil
	}
	return page, err
}

func (d *showDocument) table(w io.Writer) {
	c := &d.Case
	fmt.Fprintf(w, "case %d: %s, serial %s: %s\n", c.ID, c.Channel, positionText(c.Epoch, c.Serial), c.State)
	fmt.Fprintf(w, "manifest %s, in %s, %s, %s\n", c.Manifest, cli.Clean(c.File), cli.Count(c.Artifacts, "artifact"), cli.Bytes(c.Size))
	if c.Problem != nil {
		fmt.Fprintf(w, "\n%s  (%s)\n", cli.Clean(c.Problem.What), c.Problem.Code)
		for _, line := range c.Problem.Evidence {
			fmt.Fprintf(w, "  %s\n", cli.Clean(line))
		}
		if c.Problem.Remedy != "" {
			fmt.Fprintf(w, "  hint: %s\n", cli.Clean(c.Problem.Remedy))
		}
	}
	if d.Review != nil {
		fmt.Fprintln(w)
		d.Review.print(w)
	}
	rows := [][]string{{}, {"WHEN", "WHO", "WHAT", "", ""}}
	for _, e := range c.History {
		rows = append(rows, []string{bundle.At(e.At).String(), e.Actor, e.Type, e.Outcome, cli.Shorten(e.Detail, 90)})
	}
	cli.Table(w, rows)
	d.loads(w)
	if next := nextText(&c.Summary, true); next != "" {
		fmt.Fprintf(w, "\nnext:  %s\n", next)
	}
}

func (d *showDocument) loads(w io.Writer) {
	if len(d.Case.Loads) == 0 {
		return
	}
	rows := [][]string{{}, {"DESTINATION", "STATE", "NAME", "MOVED", "KEPT", "WHERE"}}
	for _, l := range d.Case.Loads {
		rows = append(rows, []string{l.Destination, l.State, l.Name, fmt.Sprintf("%d, %s", l.Blobs, cli.Bytes(l.Bytes)), fmt.Sprint(l.Kept), l.Location})
	}
	cli.Table(w, rows)
}
