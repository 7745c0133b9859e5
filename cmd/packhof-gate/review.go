package main

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/policy"
)

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
func (p *reviewPage) print(w io.Writer, s *site) {
	p.printVerdict(w, s)
	s.printErrors(w, p.Errors)
	s.printFindings(w, p.Words, func(digest string) string { return p.nameOf(s, digest) })
	rows := [][]string{{}, s.heads("KIND", "NAME", "VERSION", "DIGEST", "SIZE", "CHANGE", "SBOM", "GOES TO")}
	for _, a := range p.Artifacts {
		rows = append(rows, []string{s.word("kind", a.Kind), a.Name, a.Version, a.Digest.Short(), s.words.Size(a.Size), p.change(s, &a), s.sbom(a.SBOM), s.plan(a.Plan)})
		if a.Withdrawn != "" {
			rows = append(rows, []string{"", s.say("withdrawn by its sender: {reason}", "reason", cli.Clean(a.Withdrawn))})
		}
	}
	for _, r := range p.Removed {
		rows = append(rows, []string{s.word("kind", r.Kind), r.Name, r.Version, r.Digest.Short(), "", s.say("no longer in it")})
	}
	if len(rows) > 2 {
		cli.Table(w, rows)
	}
	s.printDocuments(w, p.Documents)
	s.printAnswers(w, p.Answers)
	s.printWithdrawals(w, p.Withdraws)
	fmt.Fprintln(w)
	cli.Table(w, p.facts(s))
}

// printVerdict says what came of judging, who has to approve where anybody can,
// and whether a later delivery was faster.
func (p *reviewPage) printVerdict(w io.Writer, s *site) {
	verdict := s.word("verdict", p.Verdict)
	if p.Verdict.Blocks() {
		fmt.Fprintln(w, s.say("verdict {verdict}", "verdict", verdict))
	} else {
		fmt.Fprintln(w, s.say("verdict {verdict}; {people}", "verdict", verdict, "people", s.people(p.Needed)))
	}
	if p.Later != nil {
		fmt.Fprintln(w, s.say("! overtaken by serial {serial}, which is loaded already as case {id}", "serial", s.position(p.Later.Epoch, p.Later.Serial), "id", fmt.Sprint(p.Later.Case)))
		fmt.Fprintln(w, s.say("  approving moves no name that a later serial has set"))
	}
}

func (p *reviewPage) facts(s *site) [][]string {
	rows := [][]string{
		{s.say("signed by"), s.say("{signers}; {needed} needed", "signers", s.owners(p.Signers), "needed", p.Threshold)},
		{s.say("proven"), s.say("{blobs}, {size}, every byte", "blobs", s.blobs(p.BlobsChecked), "size", s.words.Size(p.BytesChecked))},
		{s.say("created"), s.say("{at}, may be accepted until {end}", "at", p.Created.String(), "end", p.Expires.String())},
		{s.say("received by"), p.Submitter},
	}
	if p.Note != "" {
		rows = append(rows, []string{s.say("note of the sender"), p.Note})
	}
	if len(p.Missing) > 0 {
		rows = append(rows, []string{s.say("serials that never came"), s.serials(p.Missing)})
	}
	if len(p.Unfinished) > 0 {
		rows = append(rows, []string{s.say("serials that are not whole yet"), s.serials(p.Unfinished)})
	}
	if len(p.Abandoned) > 0 {
		rows = append(rows, []string{s.say("serials given up by the sender"), s.serials(p.Abandoned)})
	}
	if len(p.Ignored) > 0 {
		rows = append(rows, []string{s.say("extensions that are ignored"), strings.Join(p.Ignored, ", ")})
	}
	for _, o := range p.OmittedByTheSender {
		rows = append(rows, []string{s.say("left out by the sender"), o.Name + ": " + o.Reason})
	}
	for _, d := range p.Decisions {
		rows = append(rows, []string{s.say("decision"), s.decision(d)})
	}
	return append(rows, []string{s.say("review"), p.Digest})
}

// nameOf is what people call an artifact of the review.
func (p *reviewPage) nameOf(s *site, digest string) string {
	i := slices.IndexFunc(p.Artifacts, func(a gate.ReviewArtifact) bool { return a.Digest.String() == digest })
	if i < 0 {
		return s.say("the bundle")
	}
	return p.Artifacts[i].Name + " " + p.Artifacts[i].Version
}

// printFindings prints findings as they come, heaviest first.
func (s *site) printFindings(w io.Writer, findings []policy.Worded, nameOf func(digest string) string) {
	for _, f := range findings {
		level := strings.ToUpper(s.word("level", f.Level))
		fmt.Fprintln(w, "\n"+s.say("{level}  not met: {title}  ({rule})", "level", level, "title", cli.Clean(f.Title), "rule", f.Rule))
		fmt.Fprintf(w, "  %s: %s\n", cli.Clean(nameOf(f.Artifact)), cli.Clean(f.Sentence))
		if f.Remedy != "" {
			fmt.Fprintln(w, "  "+s.say("hint: {remedy}", "remedy", cli.Clean(f.Remedy)))
		}
	}
}

func (s *site) printErrors(w io.Writer, errs []policy.Failure) {
	for _, e := range errs {
		fmt.Fprintf(w, "\n%s  %s  %s\n", s.say("ERROR"), e.Rule, cli.Clean(e.Message))
	}
}

func (s *site) people(needed int) string {
	if needed == 0 {
		return s.say("nobody has to approve")
	}
	return s.many(needed, "{n} person has to approve", "{n} people have to approve")
}

// change says what an artifact is against what the plant holds, which may be of
// a later delivery.
func (p *reviewPage) change(s *site, a *gate.ReviewArtifact) string {
	word := s.word("change", a.Change)
	if a.FromVersion != "" && p.Later != nil {
		return s.say("older than {version}", "version", a.FromVersion)
	}
	if a.FromVersion != "" {
		return s.say("{change} from {version}", "change", word, "version", a.FromVersion)
	}
	return word
}

func (s *site) sbom(entries []gate.ReviewSBOM) string {
	present, components := 0, 0
	for _, e := range entries {
		if e.Status == bundle.SBOMPresent {
			present++
			components += e.Components
		}
	}
	switch {
	case present == len(entries) && present > 0:
		return s.many(components, "{n} component", "{n} components")
	case present == 0 && len(entries) == 1:
		return s.word("sbom", entries[0].Status)
	}
	return s.say("{n} of {all}", "n", present, "all", len(entries))
}

func (s *site) plan(plan []gate.ReviewPlan) string {
	var texts []string
	for _, p := range plan {
		text := s.say("{destination} as {name}", "destination", p.Destination, "name", p.Name)
		switch {
		case p.Owner != "":
			text += " " + s.say("(belongs to channel {channel}: cannot be released)", "channel", p.Owner)
		case p.Kept:
			text += " " + s.say("(a later serial has the name and keeps it)")
		case p.Replaces != nil:
			text += " " + s.say("over {digest}", "digest", p.Replaces.Short())
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return s.say("nowhere")
	}
	return strings.Join(texts, ", ")
}

func (s *site) owners(signers []gate.ReviewSigner) string {
	var texts []string
	for _, signer := range signers {
		texts = append(texts, fmt.Sprintf("%s (%.16s)", signer.Owner, signer.Key))
	}
	if len(texts) == 0 {
		return s.say("nobody")
	}
	return strings.Join(texts, ", ")
}

func (s *site) decision(d gate.Decision) string {
	text := fmt.Sprintf("%s: %s, %s", d.Actor, s.word("decided", d.Choice), bundle.At(d.At))
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	if !d.Counts {
		text += " " + s.say("(no longer counts)")
	}
	return text
}
