package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
	"github.com/packhof/packhof/policy/judge"
	"github.com/packhof/packhof/signing"
)

type policyOptions struct {
	trust      string
	policy     string
	lang       string
	work       string
	identities []string
}

func newPolicy(p *project) *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "Have a bundle judged before it travels"}
	var o policyOptions
	check := &cobra.Command{
		Use:   "check BUNDLE",
		Short: "Judge a bundle as the plant's gate will",
		Long: `Look into every file of a bundle and have it judged by the rules that ship with
packhof-gate, and by the plant's own where they are given: they are loaded, and
proven by their tests, just as the gate does.

What only the plant knows cannot be judged here: what it holds already, which
serials it lacks, which destinations it has, what its clock says, and what it
has configured since. The gate may find more.

BUNDLE is a file, or a folder that holds all volumes of one bundle; encrypted
ones are opened with --identity.

Each file is copied to the store of packhof.yaml, or the folder of --work, while
it is looked into, one at a time and under no name: there has to be room for the
largest.

EXIT STATUS
   0  the policy allows it, or asks people to look at it
  12  the policy denies it
  others as in  packhof help exit-codes`,
		Example: `  packhof policy check /media/usb/plant-7-000042.tar
  packhof policy check --policy plant-7/policy --lang de /media/usb/plant-7-000042.tar`,
		Args: cli.Needs("the bundle"),
		RunE: func(c *cobra.Command, args []string) error { return runPolicyCheck(p, c, args[0], o) },
	}
	check.Flags().StringVar(&o.policy, "policy", "", "`folder` with the plant's own rules and parameters")
	check.Flags().StringVar(&o.trust, "trust", "", "`folder` with the trust root; default: the one of packhof.yaml")
	identityFlag(check.Flags(), &o.identities)
	check.Flags().StringVar(&o.lang, "lang", "en", "`language` of findings: en or de")
	check.Flags().StringVar(&o.work, "work", "", "`folder` to copy files to; default: the store of packhof.yaml")
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
	OwnRules int              `json:"ownRules"` // of the plant's
	Findings []policyFinding  `json:"findings"`
	Errors   []policy.Failure `json:"errors"`
	Unknown  []string         `json:"unknown"` // what only the plant knows, so that it was not judged
}

// unknownHere is what only the plant knows.
func unknownHere() []string {
	return []string{"what the plant holds", "which serials it lacks", "its destinations", "its clock"}
}

// policyFinding is a finding in words, and what it is about.
type policyFinding struct {
	policy.Worded
	Subject string `json:"subject"`
}

func runPolicyCheck(p *project, c *cobra.Command, path string, o policyOptions) (err error) {
	if o.lang != "en" && o.lang != "de" {
		return &cli.UsageError{What: fmt.Sprintf("there is no language %q; there are: en, de", o.lang), Command: c.CommandPath()}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	work, err := p.workFolder(c, o.work)
	if err != nil {
		return err
	}
	child := judge.Child{Program: self, Args: []string{"judge"}}
	loaded, err := loadPolicy(c.Context(), child, o.policy)
	if err != nil {
		return err
	}
	rules, err := policy.Compile(c.Context(), loaded.Source)
	if err != nil {
		return err
	}
	folder, err := p.trustFor(o.trust)
	if err != nil {
		return err
	}
	opener, err := openerOf(o.identities)
	if err != nil {
		return err
	}
	sealed, err := oneBundle(opener, []string{path})
	if err != nil {
		return err
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
	if err := wholeToJudge(b, path); err != nil {
		return err
	}
	input, err := p.statedFacts(c.Context(), b, trust.Root(), filepath.Base(path), work)
	if err != nil {
		return err
	}
	decision, err := child.Evaluate(c.Context(), loaded.Source, input)
	if err != nil {
		return err
	}
	doc := policyDocument{
		File: path, Manifest: b.Digest(), Verdict: decision.Verdict, Policy: decision.PolicyDigest, OwnRules: loaded.Own, Unknown: unknownHere(),
		Findings: withSubjects(rules.InWords(decision.Findings, o.lang), b.Manifest()), Errors: append([]policy.Failure{}, decision.Errors...),
	}
	if err := p.app.Print("PolicyCheck", doc, doc.table); err != nil {
		return err
	}
	return outcomeOf(decision.Verdict)
}

// wholeToJudge makes sure that all content is here: of a part no verdict is
// the gate's.
func wholeToJudge(b *bundle.Bundle, path string) error {
	if lacks := lacking(b); lacks > 0 {
		if err := verification(b, path).incomplete(); err != nil {
			return err
		}
		return problem.New("volume/not-complete", "the set brings a part of the bundle, and only all of it can be judged").
			With(fmt.Sprintf("missing:  %d bytes", lacks)).Hint("packhof resend --serial %d --to FOLDER  writes all of it", b.Manifest().Serial)
	}
	return nil
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

// loadPolicy loads rules as the gate does.
func loadPolicy(ctx context.Context, child judge.Child, dir string) (judge.Loaded, error) {
	if dir == "" {
		return child.Load(ctx, nil, "")
	}
	loaded, err := child.Load(ctx, os.DirFS(dir), "")
	if err != nil {
		return loaded, fmt.Errorf("%s: %w", dir, err)
	}
	return loaded, nil
}

// statedFacts looks into the content and states what the gate would.
func (p *project) statedFacts(ctx context.Context, b *bundle.Bundle, root *signing.Root, name, work string) (*policy.Input, error) {
	progress := p.app.Progress()
	item := progress.Start("inspect "+name, 0)
	reports, err := facts.Inspect(ctx, b, func(d bundle.Digest) (facts.ReadAtCloser, int64, error) { return temporary(ctx, b, d, work) }, facts.Limits())
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

// workFolder is where content is copied to while it is looked into. There is room
// for all of it where the store is; the system's folder for temporary files has
// little, and the medium is only read.
func (p *project) workFolder(c *cobra.Command, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	if _, err := os.Stat(p.file); errors.Is(err, fs.ErrNotExist) {
		return "", &cli.UsageError{What: fmt.Sprintf("there is no %s whose store has room for files while they are looked into: name a folder with --work", p.file), Command: c.CommandPath()}
	}
	if err := p.load(); err != nil {
		return "", err
	}
	dir := p.path(p.spec.Store)
	return dir, os.MkdirAll(dir, 0o755)
}

// temporary copies a blob, proven, to a file in dir that has no name, and is gone
// when it is closed, before the next is opened, or when this process ends in any
// way: what inspects needs to go back and forth in it.
func temporary(ctx context.Context, b *bundle.Bundle, d bundle.Digest, dir string) (facts.ReadAtCloser, int64, error) {
	f, err := os.CreateTemp(dir, ".packhof-inspect-")
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
	size, err := io.Copy(f, untilDone{ctx, blob})
	if err := errors.Join(err, blob.Close()); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, size, nil
}

// untilDone reads until its context ends: a blob may take an hour.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}

func withSubjects(findings []policy.Worded, m *bundle.Manifest) []policyFinding {
	all := []policyFinding{}
	for _, f := range findings {
		subject := "the bundle"
		if i := slices.IndexFunc(m.Artifacts, func(a bundle.Artifact) bool { return a.Root.Digest.String() == f.Artifact }); i >= 0 {
			subject = m.Artifacts[i].Name + " " + m.Artifacts[i].Version
		}
		all = append(all, policyFinding{f, subject})
	}
	return all
}

func (d *policyDocument) table(w io.Writer) {
	fmt.Fprintf(w, "verdict %s: %s\n", d.Verdict, cli.Count(len(d.Findings), "finding"))
	for _, e := range d.Errors {
		fmt.Fprintf(w, "\nERROR  %s  %s\n", e.Rule, cli.Clean(e.Message))
	}
	for _, f := range d.Findings {
		fmt.Fprintf(w, "\n%s  not met: %s  (%s)\n", strings.ToUpper(string(f.Level)), cli.Clean(f.Title), f.Rule)
		fmt.Fprintf(w, "  %s: %s\n  hint: %s\n", cli.Clean(f.Subject), cli.Clean(f.Sentence), cli.Clean(f.Remedy))
	}
	fmt.Fprintf(w, "\nrules of the plant: %d\nnot known here, so the gate may find more: %s\n", d.OwnRules, strings.Join(d.Unknown, ", "))
}
