package main

import (
	"context"
	"encoding/json/v2"
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

func addLang(c *cobra.Command, lang *string) {
	c.Flags().StringVar(lang, "lang", "en", "`language` of findings: en or de")
}

func checkLang(c *cobra.Command, lang string) error {
	if lang != "en" && lang != "de" {
		return &cli.UsageError{What: fmt.Sprintf("there is no language %q; there are: en, de", lang), Command: c.CommandPath()}
	}
	return nil
}

// reviewPage is what people decide on, with the words for it.
type reviewPage struct {
	gate.Review
	Digest    string          `json:"review"` // what a decision is bound to
	Words     []policy.Worded `json:"words"`  // Findings in words
	Decisions []gate.Decision `json:"decisions"`
}

// readReview asks for a review, its words and its decisions.
func readReview(ctx context.Context, api *client, id, lang string) (*reviewPage, error) {
	var document []byte
	head, err := api.call(ctx, "GET", "cases/"+id+"/review", nil, &document)
	if err != nil {
		return nil, err
	}
	page := &reviewPage{Digest: head.Get("Packhof-Review")}
	if err := json.Unmarshal(document, &page.Review); err != nil {
		return nil, fmt.Errorf("the review of case %s cannot be read: %w", id, err)
	}
	var words struct {
		Findings []policy.Worded `json:"findings"`
	}
	if _, err := api.call(ctx, "GET", "cases/"+id+"/findings?lang="+lang, nil, &words); err != nil {
		return nil, err
	}
	var decisions struct {
		Decisions []gate.Decision `json:"decisions"`
	}
	if _, err := api.call(ctx, "GET", "cases/"+id+"/decisions", nil, &decisions); err != nil {
		return nil, err
	}
	page.Words, page.Decisions = words.Findings, decisions.Decisions
	return page, nil
}

// print shows the review: the verdict and why, what changes, who vouches.
func (p *reviewPage) print(w io.Writer) {
	fmt.Fprintf(w, "verdict %s; %s\n", p.Verdict, peopleText(p.Needed))
	printErrors(w, p.Errors)
	printFindings(w, p.Words, p.nameOf)
	rows := [][]string{{}, {"KIND", "NAME", "VERSION", "DIGEST", "SIZE", "CHANGE", "SBOM", "GOES TO"}}
	for _, a := range p.Artifacts {
		rows = append(rows, []string{string(a.Kind), a.Name, a.Version, a.Digest.Short(), cli.Bytes(a.Size), changeText(&a), sbomText(a.SBOM), planText(a.Plan)})
	}
	for _, r := range p.Removed {
		rows = append(rows, []string{string(r.Kind), r.Name, r.Version, r.Digest.Short(), "", "no longer in it"})
	}
	cli.Table(w, rows)
	fmt.Fprintln(w)
	cli.Table(w, p.facts())
}

func (p *reviewPage) facts() [][]string {
	rows := [][]string{
		{"signed by", fmt.Sprintf("%s; %d needed", ownersText(p.Signers), p.Threshold)},
		{"proven", fmt.Sprintf("%d blobs, %s, every byte", p.BlobsChecked, cli.Bytes(p.BytesChecked))},
		{"created", p.Created.String() + ", may be accepted until " + p.Expires.String()},
		{"received by", p.Submitter},
	}
	if p.Note != "" {
		rows = append(rows, []string{"note of the sender", p.Note})
	}
	if len(p.Missing) > 0 {
		rows = append(rows, []string{"serials that never came", serialsText(p.Missing)})
	}
	for _, o := range p.OmittedByTheSender {
		rows = append(rows, []string{"left out by the sender", o.Name + ": " + o.Reason})
	}
	for _, d := range p.Decisions {
		rows = append(rows, []string{"decision", decisionText(d)})
	}
	return append(rows, []string{"review", p.Digest})
}

// nameOf is what people call an artifact of the review.
func (p *reviewPage) nameOf(digest string) string {
	i := slices.IndexFunc(p.Artifacts, func(a gate.ReviewArtifact) bool { return a.Digest.String() == digest })
	if i < 0 {
		return "the bundle"
	}
	return p.Artifacts[i].Name + " " + p.Artifacts[i].Version
}

// printFindings prints findings as they come, heaviest first.
func printFindings(w io.Writer, findings []policy.Worded, nameOf func(digest string) string) {
	for _, f := range findings {
		fmt.Fprintf(w, "\n%s  not met: %s  (%s)\n", strings.ToUpper(string(f.Level)), cli.Clean(f.Title), f.Rule)
		fmt.Fprintf(w, "  %s: %s\n", cli.Clean(nameOf(f.Artifact)), cli.Clean(f.Sentence))
		if f.Remedy != "" {
			fmt.Fprintf(w, "  hint: %s\n", cli.Clean(f.Remedy))
		}
	}
}

func printErrors(w io.Writer, errs []policy.Failure) {
	for _, e := range errs {
		fmt.Fprintf(w, "\nERROR  %s  %s\n", e.Rule, cli.Clean(e.Message))
	}
}

func peopleText(needed int) string {
	switch needed {
	case 0:
		return "nobody has to approve"
	case 1:
		return "one person has to approve"
	}
	return fmt.Sprintf("%d people have to approve", needed)
}

func changeText(a *gate.ReviewArtifact) string {
	if a.FromVersion != "" {
		return a.Change + " from " + a.FromVersion
	}
	return a.Change
}

func sbomText(entries []gate.ReviewSBOM) string {
	present, components := 0, 0
	for _, e := range entries {
		if e.Status == bundle.SBOMPresent {
			present++
			components += e.Components
		}
	}
	switch {
	case present == len(entries) && present > 0:
		return cli.Count(components, "component")
	case present == 0 && len(entries) == 1:
		return string(entries[0].Status)
	}
	return fmt.Sprintf("%d of %d", present, len(entries))
}

func planText(plan []gate.ReviewPlan) string {
	var texts []string
	for _, p := range plan {
		text := p.Destination + " as " + p.Name
		switch {
		case p.Owner != "":
			text += " (belongs to channel " + p.Owner + ": cannot be released)"
		case p.Kept:
			text += " (a later serial has the name and keeps it)"
		case p.Replaces != nil:
			text += " over " + p.Replaces.Short()
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return "nowhere"
	}
	return strings.Join(texts, ", ")
}

func ownersText(signers []gate.ReviewSigner) string {
	var texts []string
	for _, s := range signers {
		texts = append(texts, fmt.Sprintf("%s (%.16s)", s.Owner, s.Key))
	}
	if len(texts) == 0 {
		return "nobody"
	}
	return strings.Join(texts, ", ")
}

func decisionText(d gate.Decision) string {
	text := fmt.Sprintf("%s: %s, %s", d.Actor, d.Choice, bundle.At(d.At))
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	if !d.Counts {
		text += " (no longer counts)"
	}
	return text
}
