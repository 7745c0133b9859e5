package main

import (
	"cmp"
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
	return &cobra.Command{
		Use:   "show CASE",
		Short: "Show a case: what is in it, the verdict and why, what happened",
		Args:  cli.Needs("the number of a case"),
		RunE:  func(c *cobra.Command, args []string) error { return runShow(s, c, args[0]) },
	}
}

// showDocument is what "show" prints.
type showDocument struct {
	Case   gate.Case   `json:"case"`
	Review *reviewPage `json:"review,omitempty"` // once the policy has judged
}

func runShow(s *site, c *cobra.Command, argument string) error {
	id, err := caseArgument(c, argument)
	if err != nil {
		return err
	}
	return s.with(c.Context(), func(api *client) error {
		var doc showDocument
		// The review first: a case may be judged again when it is looked at.
		var err error
		if doc.Review, err = reviewIfAny(c.Context(), api, id, s.lang); err != nil {
			return err
		}
		if _, err := api.call(c.Context(), "GET", "cases/"+id, nil, &doc.Case); err != nil {
			return err
		}
		return s.app.Print("GateCase", doc, func(w io.Writer) { doc.table(w, s) })
	})
}

// reviewIfAny gives the review, or nil where the policy has not judged yet, and
// where the row of the case cannot be right: the case says so.
func reviewIfAny(ctx context.Context, api *client, id, lang string) (*reviewPage, error) {
	page, err := readReview(ctx, api, id, lang)
	if hasNoReview(err) {
		return nil, nil
	}
	return page, err
}

// hasNoReview tells the error that a case was not judged, or that nobody can
// say what was decided on.
func hasNoReview(err error) bool {
	var refused *refusal
	return errors.As(err, &refused) && (refused.Code() == "case/no-review" || refused.Code() == "gate/row-damaged")
}

func (d *showDocument) table(w io.Writer, s *site) {
	c := &d.Case
	s.printState(w, c)
	if !c.Manifest.IsZero() { // a row that cannot be right names none
		fmt.Fprintln(w, s.say("manifest {digest}, in {file}, {artifacts}, {size}",
			"digest", c.Manifest.String(), "file", cli.Clean(c.File), "artifacts", s.artifacts(c.Artifacts), "size", s.words.Size(c.Size)))
	}
	if c.Waiting {
		fmt.Fprintln(w, s.awaited(c))
	}
	if c.Problem != nil {
		s.printProblem(w, c.Problem)
	}
	if d.Review != nil {
		fmt.Fprintln(w)
		d.Review.print(w, s)
	}
	rows := [][]string{{}, s.heads("WHEN", "WHO", "WHAT", "", "")}
	for _, e := range c.History {
		rows = append(rows, []string{bundle.At(e.At).String(), e.Actor, s.words.Word("event", e.Type), s.outcome(e.Outcome), cli.Shorten(s.told(e.Said, e.Code, e.Detail), 90)})
	}
	cli.Table(w, rows)
	d.loads(w, s)
	if next := s.nextShown(c); next != "" {
		fmt.Fprintln(w, "\n"+s.say("next:  {command}", "command", next))
	}
}

// awaited says what a case waits for that nobody is bringing more of: numbers of
// volumes where they are known.
func (s *site) awaited(c *gate.Case) string {
	lacking, size := s.words.Size(c.Size-c.Progress), s.words.Size(c.Size)
	switch {
	case c.Progress >= c.Size:
		return s.say("all of it is here, and it has not gone on: any volume of it makes it do so")
	case c.Lacks == nil:
		return s.say("it waits for other volumes: {lacking} of {size} are lacking", "lacking", lacking, "size", size)
	}
	return s.many(len(c.Lacks.Volumes), "it waits for volume {numbers} of {of}; {lacking} of {size} are lacking", "it waits for volumes {numbers} of {of}; {lacking} of {size} are lacking", "numbers", numbers(c.Lacks.Volumes), "of", c.Lacks.Of, "lacking", lacking, "size", size)
}

// nextShown is what a person may do who has seen all of a case. Where nothing
// is lacking there is nothing to want.
func (s *site) nextShown(c *gate.Case) string {
	if c.Waiting && c.Progress >= c.Size {
		return s.say("packhof-gate receive BUNDLE  goes on with it")
	}
	return s.next(&c.Summary, true)
}

// printProblem shows why a case stands where it stands.
func (s *site) printProblem(w io.Writer, p *gate.Problem) {
	meaning := s.words.Meaning(p.Code)
	fmt.Fprintf(w, "\n%s  (%s)\n", cli.Clean(cmp.Or(meaning, p.What)), p.Code)
	for _, line := range s.words.Evidence(p.Evidence) {
		fmt.Fprintf(w, "  %s\n", cli.Clean(line))
	}
	if meaning != "" {
		fmt.Fprintln(w, "  "+s.say("in its words: {text}", "text", cli.Clean(p.What)))
	}
	if remedy := s.remedy(p.Code, p.Remedy); remedy != "" {
		fmt.Fprintln(w, "  "+s.say("hint: {remedy}", "remedy", cli.Clean(remedy)))
	}
}

func (s *site) outcome(outcome string) string {
	switch outcome {
	case "ok":
		return s.say("ok")
	case "refused":
		return s.say("refused")
	}
	return s.say("failed")
}

func (d *showDocument) loads(w io.Writer, s *site) {
	if len(d.Case.Loads) == 0 {
		return
	}
	rows := [][]string{{}, s.heads("DESTINATION", "STATE", "NAME", "MOVED", "KEPT", "WHERE")}
	for _, l := range d.Case.Loads {
		rows = append(rows, []string{l.Destination, s.word("load", l.State), l.Name, s.blobs(int64(l.Blobs)) + ", " + s.words.Size(l.Bytes), s.blobs(int64(l.Kept)), l.Location})
	}
	cli.Table(w, rows)
	for _, l := range d.Case.Loads {
		if l.Withdrawn != "" {
			fmt.Fprintln(w, s.say("{name} at {destination} was withdrawn by its sender: {reason}", "name", cli.Clean(l.Name), "destination", l.Destination, "reason", cli.Clean(l.Withdrawn)))
		}
	}
}
