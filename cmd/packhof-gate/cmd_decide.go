package main

import (
	"cmp"
	"context"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

type decideOptions struct {
	as     string
	reason string
	review string
	yes    bool
}

func newApprove(s *site) *cobra.Command {
	var o decideOptions
	c := &cobra.Command{
		Use:   "approve CASE",
		Short: "Let a case through, as the holder of an account",
		Long: `Show what is to be decided on, ask, and let the case through. The approval
binds exactly what was shown: if anything of it changes, it no longer counts.

Where nobody is at the terminal, --yes takes the place of the question, and
--review says what was read: the digest that  packhof-gate show  prints.`,
		Args: cli.Needs("the number of a case"),
		RunE: func(c *cobra.Command, args []string) error { return runDecide(s, c, args[0], gate.Approve, o) },
	}
	addDecideFlags(c, &o)
	return c
}

func newReject(s *site) *cobra.Command {
	var o decideOptions
	c := &cobra.Command{
		Use:   "reject CASE",
		Short: "Refuse a case for good, as the holder of an account",
		Long: `Show what is to be decided on, ask, and refuse the case. A reason is needed.
Nothing of the bundle will be loaded; the sender may send a later one.

Where nobody is at the terminal, --yes takes the place of the question, and
--review says what was read: the digest that  packhof-gate show  prints, or ""
for a case that has not been judged, or cannot be read, and has none.`,
		Args: cli.Needs("the number of a case"),
		RunE: func(c *cobra.Command, args []string) error { return runDecide(s, c, args[0], gate.Reject, o) },
	}
	addDecideFlags(c, &o)
	return c
}

func addDecideFlags(c *cobra.Command, o *decideOptions) {
	flags := c.Flags()
	flags.StringVar(&o.as, "as", "", "`name` of the account that decides")
	flags.StringVar(&o.reason, "reason", "", "`why`; needed to reject, and to approve what has findings for review")
	flags.StringVar(&o.review, "review", "", "`digest` of the review that was read")
	flags.BoolVar(&o.yes, "yes", false, "do not ask; needs --review")
	addPasswordFile(c)
	if err := c.MarkFlagRequired("as"); err != nil {
		panic(err) // only if the flag above had another name
	}
}

func runDecide(s *site, c *cobra.Command, argument string, choice gate.Choice, o decideOptions) error {
	id, err := caseArgument(c, argument)
	if err != nil {
		return err
	}
	// A case that was not judged has the empty review, which can be rejected.
	if o.yes && o.review == "" && (choice != gate.Reject || !c.Flags().Changed("review")) {
		return &cli.UsageError{What: "--yes needs --review: the digest of what was read", Command: c.CommandPath()}
	}
	if err := s.mayAsk(c.Context(), id, choice, o); err != nil { // before anybody writes a password
		return err
	}
	if err := checkReason(o.reason); err != nil {
		return err
	}
	password, err := s.password(c, o.as)
	if err != nil {
		return err
	}
	return s.with(c.Context(), func(api *client) error {
		api.account = &account{o.as, password}
		review := o.review
		if !o.yes {
			if review, err = s.ask(c, api, id, choice, &o); err != nil {
				return err
			}
		}
		return s.decide(c, api, id, choice, review, o.reason)
	})
}

// mayAsk refuses what no answer could mend: a decision about a case that is at
// its end, and one without the reason it needs where nobody is asked for it. A
// case whose row cannot be right can be rejected.
func (s *site) mayAsk(ctx context.Context, id string, choice gate.Choice, o decideOptions) error {
	silent := strings.TrimSpace(o.reason) == "" && (o.yes || !s.atTerminal())
	if o.yes && !silent {
		return nil
	}
	return s.with(ctx, func(api *client) error {
		var found gate.Case
		if _, err := api.call(ctx, "GET", "cases/"+id, nil, &found); err != nil {
			return err
		}
		switch {
		case !o.yes && found.State.Final() && found.State != gate.Unreadable:
			return problem.New("case/not-waiting", "case %s needs no decision: it is %s", id, found.State).Hint("packhof-gate show %s", id)
		case silent && (choice == gate.Reject || found.Verdict == policy.Review):
			return noReason(choice)
		}
		return nil
	})
}

func noReason(choice gate.Choice) error {
	what := "approving what has findings for review needs a reason"
	if choice == gate.Reject {
		what = "a rejection needs a reason"
	}
	return problem.New("case/reason", "%s", what).Hint("add  --reason \"…\": why, in a sentence")
}

func checkReason(reason string) error {
	if !utf8.ValidString(reason) {
		return problem.New("case/reason", "the reason is not UTF-8 text").Hint("set the terminal to UTF-8, or write plain letters")
	}
	return gate.CheckReason(strings.TrimSpace(reason))
}

// ask shows the review and has a person confirm. It gives the digest of what
// was shown: "" for a case that was not judged, which can only be rejected.
// Where a reason is needed and none was given, it asks for that first.
func (s *site) ask(c *cobra.Command, api *client, id string, choice gate.Choice, o *decideOptions) (string, error) {
	page, err := s.toDecideOn(c.Context(), api, id, choice)
	if err != nil {
		return "", err
	}
	if o.review != "" && o.review != page.Digest {
		return "", problem.New("case/review-changed", "case %s is not any more what was read", id).
			With("read:  "+o.review, "now:   "+page.Digest).Hint("packhof-gate show %s", id)
	}
	if err := s.askReason(choice, page.Verdict, o); err != nil {
		return "", err
	}
	question := s.say("Let case {id} through?", "id", id)
	if choice == gate.Reject {
		question = s.say("Reject case {id} for good?", "id", id)
	}
	yes, asked, err := s.confirmed(question)
	switch {
	case err != nil:
		return "", err
	case !asked:
		return "", problem.New("case/not-confirmed", "nobody is at the terminal to decide on case %s", id).
			Hint("read it with  packhof-gate show %s, then add  --yes --review %s", id, cmp.Or(page.Digest, `""`))
	case !yes:
		return "", problem.New("case/not-confirmed", "the answer was not yes, so nothing was decided")
	}
	return page.Digest, nil
}

// askReason asks the person at the terminal why, where that has to be said.
func (s *site) askReason(choice gate.Choice, verdict policy.Verdict, o *decideOptions) error {
	if strings.TrimSpace(o.reason) != "" || choice == gate.Approve && verdict != policy.Review {
		return nil
	}
	answer, asked, err := s.answer(s.say("Why, in a sentence:"))
	if err != nil {
		return err
	}
	if !asked || strings.TrimSpace(answer) == "" {
		return noReason(choice)
	}
	o.reason = answer
	return checkReason(answer)
}

// toDecideOn shows a review. Of a case that was not judged it shows the state,
// to somebody who is about to reject it.
func (s *site) toDecideOn(ctx context.Context, api *client, id string, choice gate.Choice) (*reviewPage, error) {
	page, err := readReview(ctx, api, id, s.lang)
	switch {
	case err == nil:
		page.print(s.app.Stderr, s)
		return page, nil
	case choice != gate.Reject || !hasNoReview(err):
		return nil, err
	}
	var unjudged gate.Case
	if _, err := api.call(ctx, "GET", "cases/"+id, nil, &unjudged); err != nil {
		return nil, err
	}
	s.printState(s.app.Stderr, &unjudged)
	if unjudged.Problem != nil {
		s.printProblem(s.app.Stderr, unjudged.Problem)
	}
	return &reviewPage{}, nil
}

func (s *site) decide(c *cobra.Command, api *client, id string, choice gate.Choice, review, reason string) error {
	body := struct {
		Choice gate.Choice `json:"choice"`
		Review string      `json:"review"`
		Reason string      `json:"reason"`
	}{choice, review, reason}
	var decided gate.Case
	if _, err := api.call(c.Context(), "POST", "cases/"+id+"/decisions", body, &decided); err != nil {
		if problem.CodeOf(err) == "case/reason" && strings.TrimSpace(reason) == "" {
			return noReason(choice) // the gate judged anew, and knows of no flags
		}
		return err
	}
	return s.app.Print("GateDecision", decided, func(w io.Writer) { s.caseSummary(w, &decided) })
}
