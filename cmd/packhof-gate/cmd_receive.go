package main

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
		Args: cobra.ExactArgs(1),
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
		return path, err
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
	return s.with(c.Context(), func(api *client) error { return s.work(c, api, "cases", pathBody{path}, "GateReceive") })
}

// work has the gate do something with a case that takes its time, shows how
// far it is, and prints the case. A refusal comes with its case, if there is
// one: both are shown.
func (s *site) work(c *cobra.Command, api *client, path string, body any, kind string) error {
	show := s.phases()
	last, err := api.stream(c.Context(), path, body, show.show)
	if err == nil && last.Problem != nil {
		err = last.Problem
	}
	show.end(err)
	if last.Case == nil {
		if err == nil {
			err = errors.New("the gate gave no case")
		}
		return err
	}
	var doc gate.Case
	if decodeErr := json.Unmarshal(last.Case, &doc); decodeErr != nil {
		return errors.Join(err, decodeErr)
	}
	if printErr := s.app.Print(kind, doc, func(w io.Writer) { caseSummary(w, &doc) }); printErr != nil {
		return errors.Join(err, printErr)
	}
	return err
}

// caseSummary says where a case stands and what comes next.
func caseSummary(w io.Writer, c *gate.Case) {
	if c.Known {
		fmt.Fprintf(w, "all of this bundle was here already, since %s; of this medium only the head was read\n", c.Arrived.UTC().Format(time.DateTime))
	}
	fmt.Fprintf(w, "case %d: %s, serial %s: %s\n", c.ID, c.Channel, positionText(c.Epoch, c.Serial), c.State)
	if c.Verdict != "" {
		fmt.Fprintf(w, "verdict %s: %s\n", c.Verdict, countsText(&c.Summary))
	}
	if next := nextText(&c.Summary, false); next != "" {
		fmt.Fprintf(w, "next:  %s\n", next)
	}
}

func countsText(s *gate.Summary) string {
	return fmt.Sprintf("%d deny, %d review, %d warn", s.Deny, s.Review, s.Warn)
}

// nextText is what a person may do with a case in this state, who has seen all
// of it or not.
func nextText(s *gate.Summary, seen bool) string {
	look := fmt.Sprintf("packhof-gate show %d", s.ID)
	switch s.State {
	case gate.Awaiting:
		approve := fmt.Sprintf("packhof-gate approve %d --as NAME   (%d of %d have)", s.ID, s.Approvals, s.Needed)
		if seen {
			return approve
		}
		return look + ", then  " + approve
	case gate.Approved, gate.Loading, gate.PartlyLoaded:
		return fmt.Sprintf("packhof-gate release %d", s.ID)
	case gate.Received, gate.Verified, gate.Inspected, gate.Damaged:
		return "packhof-gate receive BUNDLE  goes on with it"
	case gate.Blocked, gate.CheckFailed:
		if !seen {
			return look + "  says why"
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

// approvalsText says how far approving is, where it is under way: lists count
// approvals of no other cases.
func approvalsText(s *gate.Summary) string {
	if s.State != gate.Awaiting && s.State != gate.PartlyLoaded {
		return "-"
	}
	return fmt.Sprintf("%d of %d", s.Approvals, s.Needed)
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
			rows := [][]string{{"CASE", "STATE", "VERDICT", "CHANNEL", "SERIAL", "ARTIFACTS", "SIZE", "APPROVED", "ARRIVED"}}
			for _, k := range doc.Cases {
				rows = append(rows, []string{
					fmt.Sprint(k.ID), string(k.State), string(k.Verdict), k.Channel, positionText(k.Epoch, k.Serial), fmt.Sprint(k.Artifacts), cli.Bytes(k.Size),
					approvalsText(&k), k.Arrived.UTC().Format("2006-01-02 15:04"),
				})
			}
			cli.Table(w, rows)
		})
	})
}
