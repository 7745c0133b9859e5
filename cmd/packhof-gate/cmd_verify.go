package main

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
)

func newVerify(s *site) *cobra.Command {
	return &cobra.Command{
		Use:   "verify BUNDLE",
		Short: "Prove a bundle on its medium, and take nothing in",
		Long: `Prove that a bundle is genuine, meant for this gate, fresh, and whole to the
last byte, by what this gate trusts. Nothing is copied and no case is made. Of a
bundle in several volumes, every one that is here is proven; one that is named
alone need not have the others beside it.

EXIT STATUS
   0  all of it holds
   3  that holds for what is here, and volumes are missing
  10  not genuine
  11  damaged
  12  not for this gate, or too old
  others as in  packhof-gate help exit-codes`,
		Args: cli.Needs("the bundle"),
		RunE: func(c *cobra.Command, args []string) error { return runVerify(s, c, args[0]) },
	}
}

// verificationDocument is what "verify" prints: the first volume, and the
// others of the same bundle at the same place.
type verificationDocument struct {
	gate.Verification
	Others []gate.Verification `json:"others,omitempty"`
}

func runVerify(s *site, c *cobra.Command, name string) error {
	found, err := s.volumesAt([]string{name}, "")
	if err != nil {
		return err
	}
	return s.with(c.Context(), func(api *client) error {
		doc, failed, err := s.verifyAll(c, api, found.volumes)
		if err != nil {
			return err
		}
		if len(failed) > 0 || doc.incomplete() != nil {
			failed = append(failed, found.damaged...)
		}
		if len(failed) > 0 {
			return problem.Besides(problem.Some(failed), beside(missing(doc.absent(), doc.Volume.Count), found.passed)...)
		}
		s.warn(found.damaged)
		if err := s.app.Print("GateVerification", doc, func(w io.Writer) { doc.table(w, s) }); err != nil || isFile(name) {
			return err
		}
		return problem.Besides(doc.incomplete(), bundle.PassedOver(found.passed)...)
	})
}

// verifyAll has the gate prove volumes, and proves what lies across them. Of
// those that claim one place, the one that makes what was signed counts. failed
// is what is wrong with volumes.
func (s *site) verifyAll(c *cobra.Command, api *client, volumes []volumeAt) (doc verificationDocument, failed []error, err error) {
	var paths []string
	proven := map[string]gate.Verification{}
	for _, v := range volumes {
		one, err := s.verify(c, api, v.path)
		switch {
		case err != nil && !isPassing(err):
			return doc, nil, err
		case err != nil:
			failed = append(failed, err)
		default:
			paths, proven[v.path] = append(paths, v.path), *one
		}
	}
	if len(paths) > 1 {
		paths, err = s.verifyAcross(c.Context(), paths, proven)
		switch {
		case err != nil && !isPassing(err):
			return doc, nil, err
		case err != nil:
			failed = append(failed, err)
		}
	}
	for i, path := range paths {
		if i == 0 {
			doc.Verification = proven[path]
			continue
		}
		doc.Others = append(doc.Others, proven[path])
	}
	return doc, failed, nil
}

// isFile tells whether somebody means one volume, and not what there is.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// incomplete says which volumes are not here.
func (d *verificationDocument) incomplete() error {
	gone := d.absent()
	if d.Lacking == 0 || len(gone) == 0 {
		return nil
	}
	return problem.New("volume/not-complete", "the bundle is not whole: %s", absent(gone, d.Volume.Count)).
		With(missing(gone, d.Volume.Count)...).
		Hint("verify the folder that has all of them, or a volume alone by its name")
}

// verify has the gate prove one volume.
func (s *site) verify(c *cobra.Command, api *client, path string) (*gate.Verification, error) {
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
		return nil, err
	}
	var proven gate.Verification
	return &proven, json.Unmarshal(last.Verification, &proven)
}

// absent lists the volumes that are not here, of the first set of which
// something is.
func (d *verificationDocument) absent() []int {
	numbers := slices.Clone(d.Missing)
	for _, v := range d.Others {
		if v.Volume.Set == d.Volume.Set {
			numbers = slices.DeleteFunc(numbers, func(n int) bool { return n == v.Volume.Number })
		}
	}
	return numbers
}

func (d *verificationDocument) table(w io.Writer, s *site) {
	absent, one := d.absent(), len(d.Others) == 0
	place := []any{"channel", d.Channel, "serial", fmt.Sprint(d.Serial)}
	if d.Lacking > 0 {
		fmt.Fprintln(w, s.say("genuine and fresh, and sound as far as it is here: {channel}, serial {serial}", place...))
	} else {
		fmt.Fprintln(w, s.say("genuine, fresh and whole: {channel}, serial {serial}", place...))
	}
	for _, v := range append([]gate.Verification{d.Verification}, d.Others...) {
		if !one {
			fmt.Fprintln(w, s.say("volume {n} of {of}, {file}", "n", v.Volume.Number, "of", v.Volume.Count, "file", cli.Clean(v.Volume.Name)))
		}
		rows := [][]string{}
		for _, check := range v.Checks {
			rows = append(rows, []string{"  " + s.word("proof", check.Name), s.told(check.Said, "", check.Detail)})
		}
		cli.Table(w, rows)
	}
	switch {
	case d.Lacking == 0:
	case len(absent) > 0:
		if one {
			fmt.Fprintln(w, s.say("this is volume {n} of {of}", "n", d.Volume.Number, "of", d.Volume.Count))
		}
		fmt.Fprintln(w, s.say("not here: volume {numbers} of {of}, with what is lacking", "numbers", numbers(absent), "of", d.Volume.Count))
	case one:
		fmt.Fprintln(w, s.say("the set brings a part: {size} of the bundle come with other sets, or are here already", "size", s.words.Size(d.Lacking)))
	default:
		fmt.Fprintln(w, s.say("all volumes of the set are here, and what lies across them is sound"))
	}
}
