package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
	"github.com/packhof/packhof/policy/judge"
	"github.com/packhof/packhof/sbom/inspect"
	"github.com/packhof/packhof/signing"
)

type policyOptions struct {
	trust  string
	policy string
	lang   string
}

func newPolicy(p *project) *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "Have a bundle judged before it travels"}
	var o policyOptions
	check := &cobra.Command{
		Use:   "check BUNDLE",
		Short: "Judge a bundle as the plant's gate will",
		Long: `Look into every file of a bundle and have it judged by the rules that ship with
packhof-gate, and by the plant's own where they are given. What the plant holds
already is not known here: the gate may find more.

EXIT STATUS
   0  the policy allows it, or asks people to look at it
  12  the policy denies it
  others as in  packhof help exit-codes`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runPolicyCheck(p, c, args[0], o) },
	}
	check.Flags().StringVar(&o.policy, "policy", "", "`folder` with the plant's own rules and parameters")
	check.Flags().StringVar(&o.trust, "trust", "", "`folder` with the trust root; default: the one of packhof.yaml")
	check.Flags().StringVar(&o.lang, "lang", "en", "`language` of findings: en or de")
	c.AddCommand(check)
	return c
}

// newJudge evaluates a policy for a packhof that runs this one within bounds.
func newJudge(p *project) *cobra.Command {
	return &cobra.Command{
		Use: "judge", Short: "Evaluate the policy (run by other commands)", Args: cobra.NoArgs, Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error { return judge.Serve(c.Context(), p.app.Stdin, p.app.Stdout) },
	}
}

// policyDocument is what "policy check" prints.
type policyDocument struct {
	File     string           `json:"file"`
	Manifest bundle.Digest    `json:"manifest"`
	Verdict  policy.Verdict   `json:"verdict"`
	Policy   string           `json:"policyDigest"`
	Findings []policyFinding  `json:"findings"`
	Errors   []policy.Failure `json:"errors"`
}

// policyFinding is a finding in words.
type policyFinding struct {
	policy.Finding
	Subject  string `json:"subject"`
	Title    string `json:"title"`
	Sentence string `json:"sentence"`
	Remedy   string `json:"remedy"`
}

func runPolicyCheck(p *project, c *cobra.Command, path string, o policyOptions) (err error) {
	if o.lang != "en" && o.lang != "de" {
		return &cli.UsageError{What: fmt.Sprintf("there is no language %q; there are: en, de", o.lang), Command: c.CommandPath()}
	}
	source, rules, err := readPolicy(c.Context(), o.policy)
	if err != nil {
		return err
	}
	folder, err := p.trustFor(o.trust)
	if err != nil {
		return err
	}
	sealed, damage := bundle.OpenFile(path)
	if sealed == nil {
		return damage
	}
	defer func() {
		if closed := sealed.Close(); closed != nil {
			err = errors.Join(err, closed)
		}
	}()
	trust, err := sealed.Trust(folder.Trust, p.app.Now())
	if err != nil {
		return err
	}
	b, err := sealed.Verify(trust, p.app.Now())
	if err != nil {
		return err
	}
	input, err := p.statedFacts(c.Context(), b, trust.Root(), filepath.Base(path))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	decision, err := judge.Child{Program: self, Args: []string{"judge"}}.Evaluate(c.Context(), source, input)
	if err != nil {
		return err
	}
	doc := policyDocument{
		File: path, Manifest: b.Digest(), Verdict: decision.Verdict, Policy: decision.PolicyDigest,
		Findings: inWords(decision.Findings, rules, b.Manifest(), o.lang), Errors: append([]policy.Failure{}, decision.Errors...),
	}
	if err := p.app.Print("PolicyCheck", doc, doc.table); err != nil {
		return err
	}
	return outcomeOf(decision.Verdict)
}

// outcomeOf is the exit code of a verdict. Where nothing was decided, that is
// a failure, and never leave to go on.
func outcomeOf(v policy.Verdict) error {
	switch v {
	case policy.Allow, policy.Review:
		return nil
	case policy.Deny:
		return cli.Outcome(cli.ExitDenied)
	}
	return cli.Outcome(cli.ExitFailed)
}

// readPolicy is the library that ships, with the rules and parameters of a
// folder, if one is named.
func readPolicy(ctx context.Context, dir string) (policy.Source, *policy.Policy, error) {
	source, err := policy.Library()
	if err == nil && dir != "" {
		source, err = source.Extend(os.DirFS(dir))
	}
	if err != nil {
		return policy.Source{}, nil, err
	}
	compiled, err := policy.Compile(ctx, source)
	return source, compiled, err
}

// statedFacts looks into the content and states what the gate would.
func (p *project) statedFacts(ctx context.Context, b *bundle.Bundle, root *signing.Root, name string) (*policy.Input, error) {
	progress := p.app.Progress()
	item := progress.Start("inspect "+name, 0)
	reports, err := facts.Inspect(ctx, b, func(d bundle.Digest) (facts.ReadAtCloser, int64, error) { return temporary(ctx, b, d) }, inspect.Limits{})
	item.Done(err)
	progress.Close()
	if err != nil {
		return nil, err
	}
	now := p.app.Now()
	return facts.State(ctx, facts.Subject{
		Bundle: b, Root: root, Time: facts.Time{Floor: now, Wall: now}, Inspection: reports,
	})
}

// temporary copies a blob, proven, to a file without a name, which is gone
// when it is closed: what inspects needs to go back and forth in it.
func temporary(ctx context.Context, b *bundle.Bundle, d bundle.Digest) (facts.ReadAtCloser, int64, error) {
	f, err := os.CreateTemp("", "packhof-inspect-")
	if err != nil {
		return nil, 0, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	blob, err := b.Open(ctx, d)
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	size, err := io.Copy(f, blob)
	if err := errors.Join(err, blob.Close()); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, size, nil
}

func inWords(findings []policy.Finding, rules *policy.Policy, m *bundle.Manifest, lang string) []policyFinding {
	all := []policyFinding{}
	for _, f := range findings {
		subject := "the bundle"
		if i := slices.IndexFunc(m.Artifacts, func(a bundle.Artifact) bool { return a.Root.Digest.String() == f.Artifact }); i >= 0 {
			subject = m.Artifacts[i].Name + " " + m.Artifacts[i].Version
		}
		rule, _ := rules.Rule(f.Rule)
		text := policy.Words(rule, f, lang)
		all = append(all, policyFinding{Finding: f, Subject: subject, Title: text.Title, Sentence: text.Sentence, Remedy: text.Remedy})
	}
	return all
}

func (d *policyDocument) table(w io.Writer) {
	fmt.Fprintf(w, "verdict %s: %s\n", d.Verdict, cli.Count(len(d.Findings), "finding"))
	for _, e := range d.Errors {
		fmt.Fprintf(w, "\nERROR  %s  %s\n", e.Rule, cli.Clean(e.Message))
	}
	for _, f := range d.Findings {
		fmt.Fprintf(w, "\n%s  %s  (%s)\n", strings.ToUpper(string(f.Level)), cli.Clean(f.Title), f.Rule)
		fmt.Fprintf(w, "  %s: %s\n  hint: %s\n", cli.Clean(f.Subject), cli.Clean(f.Sentence), cli.Clean(f.Remedy))
	}
}
