package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/policy"
)

func newInspect(s *site) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect BUNDLE",
		Short: "Show what is in a bundle, who signed it, and what the policy will say",
		Long: `Show what is in a bundle, in seconds whatever its size: only its head and its
metadata are read, and nothing is kept. Where there is a gate, it tells whether
the bundle is genuine and fresh, and what its policy says of the metadata: a
preview, on which nobody can decide. Where there is none, only what the bundle
says of itself is shown. A file that is damaged behind its head is shown, too,
and ends with exit 11.`,
		Args: cli.Needs("the bundle"),
		RunE: func(c *cobra.Command, args []string) error { return runInspect(s, c, args[0]) },
	}
}

// previewDocument is what "inspect" prints.
type previewDocument struct {
	Gate bool `json:"gate"` // a gate has judged; otherwise Claims is all there is
	gate.Preview
	Words []policy.Worded `json:"words"` // findings of the preview in words
}

func runInspect(s *site, c *cobra.Command, name string) error {
	path, err := s.bundleIn(name)
	if err != nil {
		return err
	}
	if err := s.load(); cli.CodeOf(err) == "gate/none" || cli.CodeOf(err) == "file/permission" {
		return s.printClaims(path)
	}
	doc := previewDocument{Gate: true}
	err = s.with(c.Context(), func(api *client) error {
		if _, err := api.call(c.Context(), "POST", "previews?lang="+s.lang, pathBody{path}, &doc); err != nil {
			return err
		}
		return s.app.Print("GatePreview", doc, func(w io.Writer) { doc.table(w, s) })
	})
	return errors.Join(err, s.damageOf(path))
}

// damageOf says what is wrong with a file behind the head that could be shown,
// such as that it ends too early; a head that is wrong was an error before.
func (s *site) damageOf(path string) error {
	sealed, damage := s.opener().OpenFile(path)
	if sealed == nil {
		return nil
	}
	return errors.Join(damage, sealed.Close())
}

// printClaims is inspect where there is no gate.
func (s *site) printClaims(path string) error {
	sealed, damage := s.opener().OpenFile(path)
	if sealed == nil {
		return damage
	}
	defer func() { _ = sealed.Close() }() // opened for reading only
	claims, err := sealed.Claims()
	if err != nil {
		return err
	}
	doc := previewDocument{Preview: gate.Preview{File: path, Claims: claims, Signers: []gate.ReviewSigner{}, Missing: []int64{}, Abandoned: []int64{}}, Words: []policy.Worded{}}
	if err := s.app.Print("GatePreview", doc, func(w io.Writer) { doc.table(w, s) }); err != nil {
		return err
	}
	return damage
}

func (d *previewDocument) table(w io.Writer, s *site) {
	c := d.Claims
	if c == nil {
		fmt.Fprintf(w, "%s: %s\n", d.File, d.genuineText(s))
		return
	}
	cli.Table(w, d.facts(s))
	rows := [][]string{{}, s.heads("KIND", "NAME", "VERSION", "DIGEST", "SIZE", "FROM")}
	for _, a := range c.Artifacts {
		from := a.From
		if a.Transport == bundle.TransportPlain {
			from += " " + s.say("(without TLS)")
		}
		rows = append(rows, []string{s.word("kind", a.Kind), a.Name, a.Version, a.Digest.Short(), s.words.Size(a.Size), cli.Shorten(from, 60)})
	}
	if len(c.Artifacts) > 0 {
		cli.Table(w, rows)
	}
	s.printClaimed(w, c)
	d.verdict(w, s)
}

func (d *previewDocument) facts(s *site) [][]string {
	c := d.Claims
	previous := s.say("none: the first")
	if c.Previous != nil {
		previous = c.Previous.String()
	}
	rows := [][]string{
		{s.say("bundle"), s.say("{channel}, serial {serial}", "channel", c.Channel, "serial", s.position(c.Epoch, c.Serial))},
		{s.say("genuine"), d.genuineText(s)},
		{s.say("manifest"), c.Digest.String()},
		{s.say("previous"), previous},
		{s.say("created"), s.say("{at}, may be accepted until {end}", "at", c.Created.String(), "end", c.Expires.String())},
		{s.say("for"), strings.Join(c.Audience, ", ")},
		{s.say("holds"), s.artifacts(len(c.Artifacts)) + ", " + s.blobs(c.Totals.Files) + ", " + s.words.Size(c.Totals.Bytes)},
	}
	if c.Note != "" {
		rows = append(rows, []string{s.say("note"), c.Note})
	}
	if len(d.Missing) > 0 {
		rows = append(rows, []string{s.say("missing before it"), s.serials(d.Missing)})
	}
	if len(d.Abandoned) > 0 {
		rows = append(rows, []string{s.say("given up before it"), s.serials(d.Abandoned)})
	}
	if len(c.Extensions) > 0 {
		rows = append(rows, []string{s.say("extensions that are ignored"), strings.Join(c.Extensions, ", ")})
	}
	if d.Known != 0 {
		rows = append(rows, []string{s.say("case"), fmt.Sprint(d.Known)})
	}
	return rows
}

// genuineText says whether the bundle would be taken in, and why not.
func (d *previewDocument) genuineText(s *site) string {
	text := s.say("no")
	switch {
	case !d.Gate:
		return s.say("not checked: there is no gate here, this is what the bundle says of itself")
	case d.Problem != nil && d.Problem.Code == "trust/not-initialised": // nobody has looked
		return s.say("not checked: no trust root yet; next:  packhof-gate trust init root-1.json")
	case d.Genuine:
		text = s.say("yes: signed by {signers}; {needed} needed", "signers", s.owners(d.Signers), "needed", d.Threshold)
	}
	if p := d.Problem; p != nil {
		text += s.say("; not taken in here: {why}", "why", s.told(gate.Sentence{}, p.Code, p.What)) + "  (" + p.Code + ")"
	}
	return text
}

func (d *previewDocument) verdict(w io.Writer, s *site) {
	if d.Decision == nil {
		return
	}
	fmt.Fprintln(w, "\n"+s.say("preview of the verdict, from the metadata alone: {verdict}", "verdict", s.word("verdict", d.Decision.Verdict)))
	s.printErrors(w, d.Decision.Errors)
	s.printFindings(w, d.Words, func(digest string) string { return d.nameOf(s, digest) })
	if d.Decision.Verdict == policy.Allow {
		fmt.Fprintln(w, s.say("content has not been looked into: receive does"))
	}
}

func (d *previewDocument) nameOf(s *site, digest string) string {
	i := slices.IndexFunc(d.Claims.Artifacts, func(a bundle.ClaimedArtifact) bool { return a.Digest.String() == digest })
	if i < 0 {
		return s.say("the bundle")
	}
	return d.Claims.Artifacts[i].Name + " " + d.Claims.Artifacts[i].Version
}
