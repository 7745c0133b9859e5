package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/signing"
)

const (
	rootLife = 3 * 365 * 24 * time.Hour
	maxEnrol = 64 << 10
)

func newTrust(p *project) *cobra.Command {
	c := &cobra.Command{Use: "trust", Short: "Say whose signatures count, and for which gates"}
	owner, fingerprint := "", ""
	start := &cobra.Command{
		Use:   "init",
		Short: "Make the first trust root and the empty revocation list",
		Long: `Make root-1.json and revocations-1.json in the trust folder: one key, the one
that packhof.yaml names, with threshold one. The plant takes the root in by
hand and compares its fingerprint.`,
		Example: "  packhof trust init --owner release@example",
		Args:    cli.Needs(),
		RunE: func(c *cobra.Command, _ []string) error {
			return p.aloneWith(func() error { return runTrustInit(p, c, owner) })
		},
	}
	start.Flags().StringVar(&owner, "owner", "", "`who` holds the key, such as release@example; needed")
	add := &cobra.Command{
		Use:   "add-gate ENROL.JSON",
		Short: "Enrol a gate: sign the next version of the root, with its keys",
		Long: `Enrol a gate from the enrol.json that  packhof-gate init  wrote. Compare its
fingerprint with the one shown at the gate: by telephone, or on paper. A gate
that is enrolled and says now whom to encrypt to is enrolled again.`,
		Example: `  packhof trust add-gate enrol.json
  packhof trust add-gate enrol.json --fingerprint "$(cat fingerprint-by-telephone)"`,
		Args: cli.Needs("the gate's enrol.json"),
		RunE: func(c *cobra.Command, args []string) error {
			return p.aloneWith(func() error { return runAddGate(p, c, args[0], fingerprint) })
		},
	}
	add.Flags().StringVar(&fingerprint, "fingerprint", "", "`fingerprint` as the gate shows it, where nobody is at the terminal")
	show := &cobra.Command{
		Use:   "show",
		Short: "Show roles, keys, gates and the fingerprint of the root",
		Example: `  packhof trust show
  packhof trust show -o json`,
		Args: cli.Needs(),
		RunE: func(*cobra.Command, []string) error { return runTrustShow(p) },
	}
	c.AddCommand(start, add, show)
	return c
}

func runTrustInit(p *project, c *cobra.Command, owner string) error {
	dir := p.path(p.spec.Trust)
	root, revocations := mirror.TrustFile(dir, "root", 1), mirror.TrustFile(dir, "revocations", 1)
	for _, path := range []string{root, revocations} {
		if _, err := os.Lstat(path); err == nil {
			return problem.New("trust/exists", "%s exists already", path).Hint("packhof trust show")
		}
	}
	if owner == "" {
		return &cli.UsageError{What: "init needs --owner, who holds the key:  packhof trust init --owner release@example", Command: c.CommandPath()}
	}
	signer, err := p.signer(c.Context())
	if err != nil {
		return err
	}
	now := p.app.Now().UTC().Truncate(time.Second)
	rootBytes, err := signing.NewRoot(c.Context(), signing.RootParams{
		Signer: signer, Owner: owner, Channels: []signing.Channel{{Name: p.spec.Channel, Epoch: 1}}, Now: now, Expires: now.Add(rootLife),
	})
	if err != nil {
		return err
	}
	listBytes, err := signing.NewRevocations(c.Context(), signer, now)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// The root last: it is what says that there is a trust root.
	if err := cas.WriteBytes(revocations, 0o644, listBytes); err != nil {
		return err
	}
	if err := cas.WriteBytes(root, 0o644, rootBytes); err != nil {
		return err
	}
	return showTrust(p)
}

func runAddGate(p *project, c *cobra.Command, path, fingerprint string) error {
	enrolment, raw, err := readEnrolment(path)
	if err != nil {
		return err
	}
	folder, err := p.trust()
	if err != nil {
		return err
	}
	root := folder.Trust.Root()
	if err := news(root, enrolment); err != nil {
		return err
	}
	if err := p.compare(path, enrolment, signing.FingerprintOf(raw), fingerprint); err != nil {
		return err
	}
	signer, err := p.signer(c.Context())
	if err != nil {
		return err
	}
	next, err := nextRoot(c, root, enrolment, signer, p.app.Now())
	if err != nil {
		return err
	}
	if _, err := root.Update(next); err != nil {
		return err
	}
	// Before the root, which is what enrols the gate: what it reads must be known.
	if err := mirror.KeepEnrolment(p.path(p.spec.Trust), enrolment.Gate, raw); err != nil {
		return err
	}
	if err := cas.WriteBytes(mirror.TrustFile(p.path(p.spec.Trust), "root", int64(root.Version())+1), 0o644, next); err != nil {
		return err
	}
	return showTrust(p)
}

// news makes sure that an enrolment says something that the root does not know:
// of a gate that is known, only whom to encrypt to can be new.
func news(root *signing.Root, e *bundle.Enrolment) error {
	gate, known := root.Gate(e.Gate)
	if !known {
		return nil
	}
	if gate.Recipient == e.Recipient || e.Recipient == "" {
		return problem.New("trust/gate-known", "the gate %s is enrolled already", e.Gate).Hint("packhof trust show")
	}
	rule, _ := root.Role(signing.ReceiptRole(e.Gate))
	for _, key := range []bundle.GateKey{e.Receipt, e.Log} {
		public, err := key.Public()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(rule.Keys, func(k signing.Key) bool { return k.Public.ID() == public.ID() }) {
			return problem.New("trust/gate-known", "the gate %s is enrolled already, with other keys", e.Gate).
				With("key:  " + public.ID().String()).Hint("do not enrol it; have the gate's people send the enrol.json of that gate")
		}
	}
	return nil
}

func readEnrolment(path string) (*bundle.Enrolment, []byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxEnrol {
		return nil, nil, problem.New("format/too-large", "%s is not a file of at most %d bytes", path, maxEnrol)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	e, err := bundle.ParseEnrolment(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return e, raw, nil
}

func nextRoot(c *cobra.Command, root *signing.Root, e *bundle.Enrolment, signer signing.Signer, at time.Time) ([]byte, error) {
	receipt, err := e.Receipt.Public()
	if err != nil {
		return nil, err
	}
	log, err := e.Log.Public()
	if err != nil {
		return nil, err
	}
	now := at.UTC().Truncate(time.Second)
	draft := root.Next(root.Expires())
	if _, known := root.Gate(e.Gate); known {
		if err := draft.SetRecipient(e.Gate, e.Recipient); err != nil {
			return nil, err
		}
		return draft.Sign(c.Context(), signer)
	}
	if err := draft.AddGate(signing.Gate{ID: e.Gate, Owner: e.Owner, Recipient: e.Recipient}, now, now.Add(rootLife), receipt, log); err != nil {
		return nil, err
	}
	return draft.Sign(c.Context(), signer)
}

// compare makes sure that a person has compared the fingerprint.
func (p *project) compare(path string, e *bundle.Enrolment, have signing.Fingerprint, given string) error {
	if given != "" {
		want, err := signing.ParseFingerprint(given)
		if err != nil {
			return err
		}
		if want != have {
			return problem.New("trust/fingerprint", "%s is not the enrolment with that fingerprint", path).
				With("given:  "+want.String(), "file:   "+have.String()).Hint("do not enrol it; have the gate's people send enrol.json again")
		}
		return nil
	}
	fmt.Fprintf(p.app.Stderr, "gate         %s   (%s)\nfingerprint  %s\nin words:\n", e.Gate, cli.Clean(e.Owner), have)
	printWords(p.app.Stderr, have.Words())
	in, ok := p.app.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return problem.New("trust/fingerprint", "nobody is at the terminal to compare the fingerprint of %s", path).
			Hint("compare it with the gate's people, then add  --fingerprint \"…\"")
	}
	fmt.Fprint(p.app.Stderr, "Does the gate show the same? [yes/no] ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.TrimSpace(answer); answer != "yes" && answer != "y" {
		return problem.New("trust/fingerprint", "the fingerprint was not confirmed; nothing was changed")
	}
	return nil
}

func runTrustShow(p *project) error {
	if err := p.load(); err != nil {
		return err
	}
	return showTrust(p)
}

// trustDocument is what "trust show" prints.
type trustDocument struct {
	Folder      string      `json:"folder"`
	Version     int         `json:"version"`
	Expires     time.Time   `json:"expires"`
	First       string      `json:"firstFingerprint"` // of root-1.json: what a plant takes in by hand
	Fingerprint string      `json:"fingerprint"`      // of the newest version
	Words       []string    `json:"words"`            // of root-1.json
	Revocations int         `json:"revocations"`
	Roles       []trustRole `json:"roles"`
	Gates       []trustGate `json:"gates"`
}

type trustRole struct {
	Role      string     `json:"role"`
	Threshold int        `json:"threshold"`
	Keys      []trustKey `json:"keys"`
}

// trustKey counts from NotBefore on, until just before NotAfter.
type trustKey struct {
	ID        string    `json:"id"`
	Owner     string    `json:"owner"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
}

func (r *trustRole) names() []string {
	var names []string
	for _, k := range r.Keys {
		names = append(names, fmt.Sprintf("%s (%.16s, until %s)", k.Owner, k.ID, k.NotAfter.Format(time.DateOnly)))
	}
	return names
}

type trustGate struct {
	ID        string `json:"id"`
	Owner     string `json:"owner"`
	Recipient string `json:"recipient"` // whom volumes for it are encrypted to; empty for none
}

func showTrust(p *project) error {
	folder, err := p.trust()
	if err != nil {
		return err
	}
	root := folder.Trust.Root()
	first := signing.FingerprintOf(folder.Roots[0].Bytes)
	doc := trustDocument{
		Folder: p.path(p.spec.Trust), Version: root.Version(), Expires: root.Expires(), First: first.String(), Words: first.Words(),
		Fingerprint: root.Fingerprint().String(), Revocations: folder.Trust.Revocations().Version(), Roles: []trustRole{}, Gates: []trustGate{},
	}
	for _, rule := range append([]signing.Rule{root.Signers()}, rulesOf(root)...) {
		role := trustRole{Role: string(rule.Role), Threshold: rule.Threshold, Keys: []trustKey{}}
		for _, k := range rule.Keys {
			role.Keys = append(role.Keys, trustKey{k.Public.ID().String(), k.Owner, k.NotBefore, k.NotAfter})
		}
		doc.Roles = append(doc.Roles, role)
	}
	for _, g := range root.Gates() {
		doc.Gates = append(doc.Gates, trustGate{g.ID, g.Owner, g.Recipient})
	}
	return p.app.Print("Trust", doc, doc.table)
}

func rulesOf(root *signing.Root) []signing.Rule {
	var rules []signing.Rule
	for _, role := range root.Roles() {
		if rule, ok := root.Role(role); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

// printWords prints a fingerprint's words eight a line, to be read aloud.
func printWords(w io.Writer, words []string) {
	for line := range slices.Chunk(words, 8) {
		fmt.Fprintf(w, "  %s\n", strings.Join(line, " "))
	}
}

func (d *trustDocument) table(w io.Writer) {
	fmt.Fprintf(w, "root version %d, expires %s; revocations version %d; in %s\n", d.Version, d.Expires.Format(time.DateOnly), d.Revocations, d.Folder)
	fmt.Fprintf(w, "\nThe plant takes in %s and compares its fingerprint:\n  %s\n", filepath.Join(d.Folder, "root-1.json"), d.First)
	printWords(w, d.Words)
	if d.Version > 1 {
		fmt.Fprintf(w, "\nA gate that has received a bundle since then shows the fingerprint of version %d:\n  %s\n", d.Version, d.Fingerprint)
	}
	rows := [][]string{{}, {"ROLE", "NEEDS", "KEYS"}}
	for _, r := range d.Roles {
		rows = append(rows, []string{r.Role, fmt.Sprintf("%d of %d", r.Threshold, len(r.Keys)), strings.Join(r.names(), ", ")})
	}
	cli.Table(w, rows)
	gates := [][]string{{}, {"GATE", "OWNER", "ENCRYPT TO"}}
	for _, g := range d.Gates {
		gates = append(gates, []string{g.ID, g.Owner, cmp.Or(g.Recipient, "-")})
	}
	cli.Table(w, gates)
	if len(d.Gates) == 0 {
		fmt.Fprintln(w, "none yet; next:  packhof trust add-gate enrol.json")
	}
}
