package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cli"
)

func newInspect(p *project) *cobra.Command {
	trust, identities := "", []string(nil)
	c := &cobra.Command{
		Use:   "inspect BUNDLE",
		Short: "Show what a bundle says of itself, from its head",
		Long: `Show what is in a bundle, in seconds whatever its size: only its head is read.
Whether it is genuine is judged where there is a trust root, and else not
checked; no content is proven. To prove every byte:  packhof verify
BUNDLE is a file, or a folder that holds the volumes of one bundle; encrypted
ones are opened with --identity.`,
		Example: `  packhof inspect /media/usb/plant-7-000042.tar
  packhof inspect --trust trust -o json /media/usb/plant-7-000042.tar`,
		Args: cli.Needs("the bundle"),
		RunE: func(_ *cobra.Command, args []string) error { return runInspect(p, args[0], trust, identities) },
	}
	c.Flags().StringVar(&trust, "trust", "", "`folder` with the trust root; default: that of packhof.yaml, if any")
	identityFlag(c.Flags(), &identities)
	return c
}

// bundleDocument is what "inspect" prints.
type bundleDocument struct {
	File     string `json:"file"`
	Genuine  string `json:"genuine"` // yes, no or unknown: not checked
	Why      string `json:"why"`
	Complete bool   `json:"complete"` // as a file
	*bundle.Claims
}

func runInspect(p *project, path, trust string, identities []string) error {
	opener, err := openerOf(identities)
	if err != nil {
		return err
	}
	sealed, headless, _, err := bundleAt(opener, []string{path})
	if err != nil {
		return err
	}
	defer func() { _ = sealed.Close() }() // opened for reading only
	damage := errors.Join(damageOf(opener, sealed), headless)
	claims, err := sealed.Claims()
	if err != nil {
		return err
	}
	doc := bundleDocument{File: path, Complete: damage == nil, Claims: claims}
	if doc.Genuine, doc.Why, err = p.judge(sealed, trust); err != nil {
		return err
	}
	if err := p.app.Print("Bundle", doc, doc.table); err != nil {
		return err
	}
	return damage
}

// What can be said of a head: whether it is genuine, if somebody looked.
const (
	isGenuine  = "yes"
	notGenuine = "no"
	notChecked = "unknown" // there is no trust root to check it with
)

// judge says whether the head is genuine, if there is a trust root to say so.
// A trust root that is named, or is there, and cannot be read is an error: it
// must not look as if there were none.
func (p *project) judge(sealed *bundle.Sealed, trust string) (verdict, why string, err error) {
	folder, err := p.trustFor(trust)
	if trust == "" && cli.CodeOf(err) == "trust/missing" {
		return notChecked, err.Error(), nil
	}
	if err != nil {
		return "", "", err
	}
	known, err := sealed.Trust(folder.Trust, p.app.Now())
	if err != nil {
		return notGenuine, err.Error(), nil
	}
	b, err := sealed.Verify(known, p.app.Now())
	if err != nil {
		return notGenuine, err.Error(), nil
	}
	return isGenuine, "signed by " + signers(b), nil
}

// genuine is the verdict as people read it.
func (d *bundleDocument) genuine() string {
	words := map[string]string{isGenuine: "yes", notGenuine: "no", notChecked: "not checked (no trust root)"}
	return words[d.Genuine] + ": " + d.Why
}

func signers(b *bundle.Bundle) string {
	var names []string
	for _, s := range b.Voucher().Signers() {
		names = append(names, s.String())
	}
	return fmt.Sprintf("%s; %d needed for %s", strings.Join(names, ", "), b.Voucher().Threshold(), b.Voucher().Role())
}

func (d *bundleDocument) table(w io.Writer) {
	previous := "none: the first"
	if d.Previous != nil {
		previous = d.Previous.String()
	}
	rows := [][]string{
		{"bundle", fmt.Sprintf("%s, serial %d, epoch %d", d.Channel, d.Serial, d.Epoch)},
		{"kind", string(d.Kind)},
		{"genuine", d.genuine()},
		{"manifest", d.Digest.String()},
		{"previous", previous},
		{"created", d.Created.String() + ", may be accepted until " + d.Expires.String()},
		{"for", strings.Join(d.Audience, ", ")},
		{"holds", fmt.Sprintf("%s, %s, %s", carried(len(d.Artifacts), len(d.Documents)), cli.Count(int(d.Totals.Files), "blob"), cli.Bytes(d.Totals.Bytes))},
	}
	if d.Note != "" {
		rows = append(rows, []string{"note", d.Note})
	}
	if len(d.Extensions) > 0 {
		rows = append(rows, []string{"ignored", strings.Join(d.Extensions, ", ")})
	}
	cli.Table(w, rows)
	d.notices(w)
	if len(d.Artifacts) == 0 {
		return
	}
	rows = [][]string{{}, {"KIND", "NAME", "VERSION", "DIGEST", "SIZE", "SBOM", "FROM"}}
	for _, a := range d.Artifacts {
		rows = append(rows, []string{string(a.Kind), a.Name, a.Version, a.Digest.Short(), cli.Bytes(a.Size), sbomState(a.SBOM), cli.Shorten(from(a), 60)})
	}
	cli.Table(w, rows)
}

// notices shows what a bundle says besides its artifacts.
func (d *bundleDocument) notices(w io.Writer) {
	table := func(head []string, rows [][]string) {
		if len(rows) > 0 {
			cli.Table(w, append([][]string{{}, head}, rows...))
		}
	}
	var documents, answers, withdraws [][]string
	for _, doc := range d.Documents {
		documents = append(documents, []string{doc.Type, doc.Version, doc.Blob.Short(), map[bool]string{true: "critical"}[doc.Critical]})
	}
	for _, a := range d.Answers {
		answers = append(answers, []string{a.Request, string(a.Outcome), a.Text})
	}
	for _, x := range d.Withdraws {
		replacement := ""
		if x.Replacement != nil {
			replacement = x.Replacement.String()
		}
		withdraws = append(withdraws, []string{x.Digest.String(), replacement, x.Reason})
	}
	table([]string{"DOCUMENT", "VERSION", "DIGEST", ""}, documents)
	table([]string{"REQUEST", "OUTCOME", "ANSWER"}, answers)
	table([]string{"WITHDRAWN", "REPLACED BY", "REASON"}, withdraws)
}

func sbomState(entries []bundle.SBOM) string {
	present := 0
	for _, e := range entries {
		if e.Status == bundle.SBOMPresent {
			present++
		}
	}
	switch {
	case present == len(entries) && present == 1:
		return "present"
	case present == 0 && len(entries) == 1:
		return string(entries[0].Status)
	}
	return fmt.Sprintf("%d of %d", present, len(entries))
}

func from(a bundle.ClaimedArtifact) string {
	if a.Transport == bundle.TransportPlain {
		return a.From + " (without TLS)"
	}
	return a.From
}
