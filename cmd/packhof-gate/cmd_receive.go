package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
)

func newReceive(s *site) *cobra.Command {
	wait := false
	c := &cobra.Command{
		Use:   "receive BUNDLE...",
		Short: "Take a bundle in: prove, copy, inspect, judge",
		Long: `Take a bundle in, as far as it gets without people. BUNDLE is the file, or a
folder that holds one, such as /media/usb. The medium is only read. Running it
again goes on where it was interrupted, and does nothing twice.

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
		r := receiver{site: s, command: c, api: api, names: names, wait: wait, done: map[string]bool{}}
		err := r.pass()
		for wait && err == nil && !r.whole {
			if err = r.await(); err == nil {
				err = r.pass()
			}
		}
		if err == nil && !r.whole {
			err = r.incomplete()
		}
		if r.last == nil {
			return err
		}
		return errors.Join(err, s.app.Print("GateReceive", r.last, func(w io.Writer) { s.caseSummary(w, r.last) }))
	})
}

func missing(volumes int) string {
	if volumes == 1 {
		return "is missing"
	}
	return "are missing"
}

// receiver takes the volumes of one bundle in, from as many media as it takes.
type receiver struct {
	site    *site
	command *cobra.Command
	api     *client
	names   []string
	wait    bool            // a torn volume may be one that is still being copied
	bundle  string          // its manifest, once a volume of it was taken in
	done    map[string]bool // volumes that need no second look, by place and state of the file; false for those that failed
	damaged []error         // what was wrong with volumes, when nobody waits for others
	last    *gate.Case
	lacks   gate.Lacking // what was lacking after the last volume
	whole   bool         // nothing is
}

// incomplete says what has to come before the case goes on.
func (r *receiver) incomplete() error {
	if len(r.lacks.Volumes) == 0 {
		return problem.New("receive/lacking", "the set does not bring %d bytes that are lacking", r.lacking()).
			Hint("packhof-gate want %d FILE", r.last.ID)
	}
	return problem.New("receive/incomplete", "the bundle is not whole yet: volume %s of %d %s", bundle.NumbersText(r.lacks.Volumes), r.lacks.Of, missing(len(r.lacks.Volumes))).
		With("missing volumes:  "+numbers(r.lacks.Volumes), fmt.Sprintf("volumes in all:   %d", r.lacks.Of), fmt.Sprintf("lacking:          %d bytes", r.lacks.Bytes)).
		Hint("packhof-gate receive  with the medium that has it; what came so far stays")
}

// numbers writes the numbers of volumes in a way that needs no language.
func numbers(list []int) string { return strings.ReplaceAll(bundle.NumbersText(list), " to ", "–") }

// lacking is how many bytes are, as far as the gate has said.
func (r *receiver) lacking() int64 {
	if r.lacks.Bytes > 0 {
		return r.lacks.Bytes
	}
	return r.last.Size - r.last.Progress
}

// pass takes in what is at the named places and was not yet. A damaged volume
// does not keep those behind it from being taken in.
func (r *receiver) pass() error {
	found, err := volumesAt(r.names, r.bundle)
	if err != nil {
		if r.wait && isPassing(err) {
			return nil
		}
		return err
	}
	for _, v := range found.volumes {
		if _, seen := r.done[v.mark]; seen {
			continue
		}
		if err := r.take(v); err != nil || r.whole {
			return err
		}
	}
	if r.wait {
		return nil
	}
	return firstOf(append(r.damaged, found.damaged...))
}

// take has the gate receive one volume.
func (r *receiver) take(v volumeAt) error {
	received, err := r.site.work(r.command, r.api, "cases", pathBody{v.path})
	r.done[v.mark] = err == nil
	if received != nil {
		r.last, r.bundle = received, v.manifest
	}
	switch {
	case err != nil && !isPassing(err):
		return err
	case err != nil && r.wait: // a sound copy of it may come, or the rest of it
		fmt.Fprintln(r.site.app.Stderr, r.site.say("warning: {what}", "what", err.Error()))
	case err != nil:
		r.damaged = append(r.damaged, err)
	case received.Lacks == nil:
		r.whole = true
	default:
		r.lacks = *received.Lacks
	}
	return nil
}

// isPassing tells what is wrong with one volume, or with the place where media
// are put, and may be otherwise with the next one.
func isPassing(err error) bool {
	if isNothing(err) || errors.Is(err, syscall.EIO) {
		return true
	}
	switch cli.CodeOf(err) {
	case "volume/damaged", "volume/not-a-bundle", "volume/pieces-wrong", "receive/unreadable", "file/missing":
		return true
	}
	return false
}

// mediumEvery is how often a place is looked at while a medium is waited for.
const mediumEvery = time.Second

// await waits until there is something new at the named places.
func (r *receiver) await() error {
	fmt.Fprintln(r.site.app.Stderr, r.awaited())
	ticker := time.NewTicker(mediumEvery)
	defer ticker.Stop()
	for {
		select {
		case <-r.command.Context().Done():
			return context.Cause(r.command.Context())
		case <-ticker.C:
		}
		found, err := volumesAt(r.names, r.bundle)
		if err != nil && !isPassing(err) {
			return err
		}
		r.forgetFailed(found.volumes)
		for _, v := range found.volumes {
			if _, seen := r.done[v.mark]; !seen {
				return nil
			}
		}
	}
}

// forgetFailed has volumes that could not be taken in looked at again once they
// were gone: their medium may come back in order.
func (r *receiver) forgetFailed(there []volumeAt) {
	for mark, taken := range r.done {
		if !taken && !slices.ContainsFunc(there, func(v volumeAt) bool { return v.mark == mark }) {
			delete(r.done, mark)
		}
	}
}

// awaited says what is being waited for.
func (r *receiver) awaited() string {
	place := strings.Join(r.names, ", ")
	switch {
	case r.last == nil:
		return r.site.say("waiting for a medium at {place}; Ctrl-C stops", "place", place)
	case len(r.lacks.Volumes) == 0:
		return r.site.say("waiting for {bytes} bytes that are lacking: put the next medium at {place}; Ctrl-C stops, and what came so far stays",
			"bytes", r.lacking(), "place", place)
	}
	return r.site.say("waiting for volume {numbers} of {of}: put the next medium at {place}; Ctrl-C stops, and what came so far stays",
		"numbers", numbers(r.lacks.Volumes), "of", r.lacks.Of, "place", place)
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
	case gate.Blocked, gate.CheckFailed:
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
		})
	})
}
