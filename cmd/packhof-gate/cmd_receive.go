package main

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
)

func newReceive(s *site) *cobra.Command {
	wait := false
	c := &cobra.Command{
		Use:   "receive BUNDLE...",
		Short: "Take a bundle in: prove, copy, inspect, judge",
		Long: `Take a bundle in, as far as it gets without people. BUNDLE is the file, or a
folder that holds one, such as /media/usb. The medium is only read. Running it
again goes on where it was interrupted, and does nothing twice.

Of several bundles the oldest serial is taken in first, each as a case of its
own. One that fails does not keep the others from it; the exit code is that of
the worst.

A bundle may come as several volumes, on one medium or on many, in any order
and with any names. The case waits until the last one has come. A damaged
volume costs only itself: the others are taken in.

EXIT STATUS
   0  taken in: it waits for approval, or needs none
   3  other volumes of the bundle have to come first
  10  not genuine
  11  damaged
  12  not for this gate, too old, or denied by the policy
  others as in  packhof-gate help exit-codes`,
		Example: `  packhof-gate receive /media/usb/plant-7-000042.tar
  packhof-gate receive --wait /media/usb`,
		Args: cli.NeedsSome("the bundle"),
		RunE: func(c *cobra.Command, args []string) error { return runReceive(s, c, args, wait) },
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait for the media, the first one and those with the other volumes, at the same place")
	return c
}

type pathBody struct {
	Path string `json:"path"`
}

func runReceive(s *site, c *cobra.Command, names []string, wait bool) error {
	return s.with(c.Context(), func(api *client) error {
		r := reception{site: s, command: c, api: api, names: names, wait: wait}
		err := r.run()
		return errors.Join(err, r.print())
	})
}

// work has the gate do something with a case that takes its time, and shows
// how far it is. A refusal comes with its case, if there is one.
func (s *site) work(c *cobra.Command, api *client, path string, body any) (*gate.Case, error) {
	show := s.phases()
	last, err := api.stream(c.Context(), path, body, show.show)
	if err == nil && last.Problem != nil {
		err = last.Problem
	}
	show.end(err)
	switch {
	case last.Case == nil && err == nil:
		return nil, errors.New("the gate gave no case")
	case last.Case == nil:
		return nil, err
	}
	var worked gate.Case
	if decodeErr := json.Unmarshal(last.Case, &worked); decodeErr != nil {
		return nil, errors.Join(err, decodeErr)
	}
	return &worked, err
}

// caseSummary says where a case stands and what comes next.
func (s *site) caseSummary(w io.Writer, c *gate.Case) {
	if c.KnownVolume {
		fmt.Fprintln(w, s.say("all of this volume was here already; of this medium only the head was read"))
	}
	if c.Known {
		fmt.Fprintln(w, s.say("all of this bundle was here already, since {at}; of this medium only the head was read", "at", c.Arrived.UTC().Format(time.DateTime)))
	}
	s.printState(w, c)
	if c.Verdict != "" {
		fmt.Fprintln(w, s.say("verdict {verdict}: {deny} deny, {review} review, {warn} warn",
			"verdict", s.word("verdict", c.Verdict), "deny", c.Deny, "review", c.Review, "warn", c.Warn))
	}
	if next := s.next(&c.Summary, false); next != "" {
		fmt.Fprintln(w, s.say("next:  {command}", "command", next))
	}
}

func (s *site) printState(w io.Writer, c *gate.Case) {
	if c.Manifest.IsZero() { // its row cannot be right
		fmt.Fprintln(w, s.say("case {id}: {state}", "id", fmt.Sprint(c.ID), "state", s.word("state", c.State)))
		return
	}
	fmt.Fprintln(w, s.say("case {id}: {channel}, serial {serial}: {state}",
		"id", fmt.Sprint(c.ID), "channel", c.Channel, "serial", s.position(c.Epoch, c.Serial), "state", s.word("state", c.State)))
}

// next is what a person may do with a case in this state, who has seen all of
// it or not.
func (s *site) next(c *gate.Summary, seen bool) string {
	id := fmt.Sprint(c.ID)
	switch c.State {
	case gate.Awaiting:
		approve := s.say("packhof-gate approve {id} --as NAME   ({have} of {needed} have)", "id", id, "have", c.Approvals, "needed", c.Needed)
		if seen {
			return approve
		}
		return s.say("packhof-gate show {id}, then  {command}", "id", id, "command", approve)
	case gate.Approved, gate.Loading, gate.PartlyLoaded:
		return "packhof-gate release " + id
	case gate.Received:
		if c.Waiting {
			return s.say("packhof-gate receive MEDIUM  goes on with it;  packhof-gate want {id} FILE  lists what is lacking", "id", id)
		}
		return s.say("packhof-gate receive BUNDLE  goes on with it")
	case gate.Verified, gate.Inspected, gate.Damaged:
		return s.say("packhof-gate receive BUNDLE  goes on with it")
	case gate.Blocked, gate.CheckFailed, gate.Unreadable:
		if !seen {
			return s.say("packhof-gate show {id}  says why", "id", id)
		}
	}
	return ""
}

func newList(s *site) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show the cases, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runList(s, c) },
	}
}

// approvals says how far approving is, where it is under way: lists count
// approvals of no other cases.
func (s *site) approvals(c *gate.Summary) string {
	if c.State != gate.Awaiting && c.State != gate.PartlyLoaded {
		return "-"
	}
	return s.say("{n} of {all}", "n", c.Approvals, "all", c.Needed)
}

// stateOf is the state of a case in a list, and whether it waits for more.
func (s *site) stateOf(c *gate.Summary) string {
	if c.Waiting {
		return s.say("{state}, not whole", "state", s.word("state", c.State))
	}
	if c.Withdrawn > 0 {
		return s.say("{state}, withdrawn: {n}", "state", s.word("state", c.State), "n", c.Withdrawn)
	}
	if c.Later != nil {
		return s.say("{state}, overtaken by serial {serial}", "state", s.word("state", c.State), "serial", s.position(c.Later.Epoch, c.Later.Serial))
	}
	return s.word("state", c.State)
}

func runList(s *site, c *cobra.Command) error {
	var doc struct {
		Cases []gate.Summary `json:"cases"`
	}
	return s.with(c.Context(), func(api *client) error {
		if _, err := api.call(c.Context(), "GET", "cases", nil, &doc); err != nil {
			return err
		}
		return s.app.Print("Cases", doc, func(w io.Writer) {
			rows := [][]string{s.heads("CASE", "STATE", "VERDICT", "CHANNEL", "SERIAL", "ARTIFACTS", "SIZE", "APPROVED", "ARRIVED")}
			for _, k := range doc.Cases {
				verdict := ""
				if k.Verdict != "" {
					verdict = s.word("verdict", k.Verdict)
				}
				rows = append(rows, []string{
					fmt.Sprint(k.ID), s.stateOf(&k), verdict, k.Channel, s.position(k.Epoch, k.Serial), fmt.Sprint(k.Artifacts), s.words.Size(k.Size),
					s.approvals(&k), k.Arrived.UTC().Format("2006-01-02 15:04"),
				})
			}
			cli.Table(w, rows)
			for _, k := range doc.Cases {
				if k.State == gate.Unreadable {
					fmt.Fprintln(w, s.say("case {id} cannot be read:  packhof-gate show {id}  says why", "id", fmt.Sprint(k.ID)))
				}
			}
		})
	})
}
