package main

import (
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
	lang := ""
	c := &cobra.Command{
		Use:   "inspect BUNDLE",
		Short: "Show what is in a bundle, who signed it, and what the policy will say",
		Long: `Show what is in a bundle, in seconds whatever its size: only its head and its
metadata are read, and nothing is kept. Where there is a gate, it tells whether
the bundle is genuine and fresh, and what its policy says of the metadata: a
preview, on which nobody can decide. Where there is none, only what the bundle
says of itself is shown.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runInspect(s, c, args[0], lang) },
	}
	addLang(c, &lang)
	return c
}

// previewDocument is what "inspect" prints.
type previewDocument struct {
	Gate bool `json:"gate"` // a gate has judged; otherwise Claims is all there is
	gate.Preview
	Words []policy.Worded `json:"words"` // findings of the preview in words
}

func runInspect(s *site, c *cobra.Command, name, lang string) error {
	if err := checkLang(c, lang); err != nil {
		return err
	}
	path, err := bundleIn(name)
	if err != nil {
		return err
	}
	if err := s.load(); cli.CodeOf(err) == "gate/none" || cli.CodeOf(err) == "file/permission" {
		return s.printClaims(path)
	}
	doc := previewDocument{Gate: true}
	return s.with(c.Context(), func(api *client) error {
		if _, err := api.call(c.Context(), "POST", "previews?lang="+lang, pathBody{path}, &doc); err != nil {
			return err
		}
		return s.app.Print("GatePreview", doc, doc.table)
	})
}

// printClaims is inspect where there is no gate.
func (s *site) printClaims(path string) error {
	sealed, damage := bundle.OpenFile(path)
	if sealed == nil {
		return damage
	}
	defer func() { _ = sealed.Close() }() // opened for reading only
	claims, err := sealed.Claims()
	if err != nil {
		return err
	}
	doc := previewDocument{Preview: gate.Preview{File: path, Claims: claims, Signers: []gate.ReviewSigner{}, Missing: []int64{}}, Words: []policy.Worded{}}
	if err := s.app.Print("GatePreview", doc, doc.table); err != nil {
		return err
	}
	return damage
}

func (d *previewDocument) table(w io.Writer) {
	c := d.Claims
	if c == nil {
		fmt.Fprintf(w, "%s: %s\n", d.File, d.genuineText())
		return
	}
	previous := "none: the first"
	if c.Previous != nil {
		previous = c.Previous.String()
	}
	rows := [][]string{
		{"bundle", fmt.Sprintf("%s, serial %s", c.Channel, positionText(c.Epoch, c.Serial))},
		{"genuine", d.genuineText()},
		{"manifest", c.Digest.String()},
		{"previous", previous},
		{"created", c.Created.String() + ", may be accepted until " + c.Expires.String()},
		{"for", strings.Join(c.Audience, ", ")},
		{"holds", fmt.Sprintf("%s, %d blobs, %s", cli.Count(len(c.Artifacts), "artifact"), c.Totals.Files, cli.Bytes(c.Totals.Bytes))},
	}
	if c.Note != "" {
		rows = append(rows, []string{"note", c.Note})
	}
	if len(d.Missing) > 0 {
		rows = append(rows, []string{"missing before it", serialsText(d.Missing)})
	}
	if d.Known != 0 {
		rows = append(rows, []string{"case", fmt.Sprint(d.Known)})
	}
	cli.Table(w, rows)
	rows = [][]string{{}, {"KIND", "NAME", "VERSION", "DIGEST", "SIZE", "FROM"}}
	for _, a := range c.Artifacts {
		from := a.From
		if a.Transport == bundle.TransportPlain {
			from += " (without TLS)"
		}
		rows = append(rows, []string{string(a.Kind), a.Name, a.Version, a.Digest.Short(), cli.Bytes(a.Size), cli.Shorten(from, 60)})
	}
	cli.Table(w, rows)
	d.verdict(w)
}

// genuineText says whether the bundle would be taken in, and why not.
func (d *previewDocument) genuineText() string {
	text := "no"
	switch {
	case !d.Gate:
		return "unknown: there is no gate here, this is what the bundle says of itself"
	case d.Genuine:
		text = fmt.Sprintf("yes: signed by %s; %d needed", ownersText(d.Signers), d.Threshold)
	}
	if d.Problem != nil {
		text += "; not taken in here: " + d.Problem.What + "  (" + d.Problem.Code + ")"
	}
	return text
}

func (d *previewDocument) verdict(w io.Writer) {
	if d.Decision == nil {
		return
	}
	fmt.Fprintf(w, "\npreview of the verdict, from the metadata alone: %s\n", d.Decision.Verdict)
	printErrors(w, d.Decision.Errors)
	printFindings(w, d.Words, d.nameOf)
	if d.Decision.Verdict == policy.Allow {
		fmt.Fprintln(w, "content has not been looked into: receive does")
	}
}

func (d *previewDocument) nameOf(digest string) string {
	i := slices.IndexFunc(d.Claims.Artifacts, func(a bundle.ClaimedArtifact) bool { return a.Digest.String() == digest })
	if i < 0 {
		return "the bundle"
	}
	return d.Claims.Artifacts[i].Name + " " + d.Claims.Artifacts[i].Version
}
