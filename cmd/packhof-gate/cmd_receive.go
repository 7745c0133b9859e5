package main

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
)

func newReceive(s *site) *cobra.Command {
	return &cobra.Command{
		Use:   "receive BUNDLE",
		Short: "Take a bundle in: prove, copy, inspect, judge",
		Long: `Take a bundle in, as far as it gets without people. BUNDLE is the file, or a
folder that holds one, such as /media/usb. The medium is only read. Running it
again goes on where it was interrupted, and does nothing twice.

EXIT STATUS
   0  taken in: it waits for approval, or needs none
  10  not genuine
  11  damaged
  12  not for this gate, too old, or denied by the policy
  others as in  packhof-gate help exit-codes`,
		Args: cli.Needs("the bundle"),
		RunE: func(c *cobra.Command, args []string) error { return runReceive(s, c, args[0]) },
	}
}

// bundleIn finds the one bundle that a path means, as another process can open
// it.
func bundleIn(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return path, errors.Join(besideTheBundle(path), err)
	}
	found, err := filepath.Glob(filepath.Join(escapeGlob(path), "*.tar"))
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", problem.New("receive/no-bundle", "%s holds no bundle", path).With("looked for:  *.tar").Hint("name the file")
	case len(found) > 1:
		lines := make([]string, 0, len(found))
		for _, f := range found {
			lines = append(lines, filepath.Base(f))
		}
		return "", problem.New("receive/several", "%s holds %d bundles", path, len(found)).With(lines...).Hint("name one of the files")
	}
	return found[0], nil
}

// besideTheBundle refuses the small file that export puts beside a bundle, a
// copy of its manifest, and says which file is the bundle.
func besideTheBundle(path string) error {
	name, ok := strings.CutSuffix(path, ".json")
	if !ok {
		return nil
	}
	whole := strings.TrimSuffix(name, ".packhof") + ".tar"
	wrong := problem.New("receive/no-bundle", "%s is not the bundle", path)
	if _, err := os.Stat(whole); err != nil {
		return wrong.With("looked for:  " + whole).Hint("name the file that ends in .tar")
	}
	return wrong.With("bundle:  "+whole).Hint("name the bundle:  %s", whole)
}

// escapeGlob lets a folder's name stand for itself in a pattern.
func escapeGlob(path string) string {
	var escaped []byte
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[', '\\':
			escaped = append(escaped, '\\')
		}
		escaped = append(escaped, path[i])
	}
	return string(escaped)
}

type pathBody struct {
	Path string `json:"path"`
}

func runReceive(s *site, c *cobra.Command, name string) error {
	path, err := bundleIn(name)
	if err != nil {
		return err
	}
	return s.with(c.Context(), func(api *client) error {
		received, err := s.work(c, api, "cases", pathBody{path})
		if received == nil {
			return err
		}
		return errors.Join(err, s.app.Print("GateReceive", received, func(w io.Writer) { s.caseSummary(w, received) }))
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
	case gate.Received, gate.Verified, gate.Inspected, gate.Damaged:
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
					fmt.Sprint(k.ID), s.word("state", k.State), verdict, k.Channel, s.position(k.Epoch, k.Serial), fmt.Sprint(k.Artifacts), s.words.Size(k.Size),
					s.approvals(&k), k.Arrived.UTC().Format("2006-01-02 15:04"),
				})
			}
			cli.Table(w, rows)
		})
	})
}
