package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

func newTrust(s *site) *cobra.Command {
	c := &cobra.Command{Use: "trust", Short: "Say whose signatures count"}
	revocations, fingerprint := "", ""
	start := &cobra.Command{
		Use:   "init ROOT.JSON",
		Short: "Take in the first trust root, after comparing its fingerprint",
		Long: `Take in the first trust root. Compare its fingerprint with the one that
packhof trust show  prints outside: by telephone, or on paper. Everything that
is ever accepted here rests on this comparison. It works once; later versions
come with bundles, or with  packhof-gate trust update.`,
		Args: cli.Needs("the trust root"),
		RunE: func(c *cobra.Command, args []string) error {
			return runTrustInit(s, c, args[0], revocations, fingerprint)
		},
	}
	start.Flags().StringVar(&revocations, "revocations", "", "list of revocations to begin with, a `file`")
	start.Flags().StringVar(&fingerprint, "fingerprint", "", "`fingerprint` of the root as it is shown outside, where nobody is at the terminal")
	update := &cobra.Command{
		Use:   "update FILE",
		Short: "Take in a later trust root or list of revocations",
		Long: `Take in a later version of the trust root, signed by those whom the present one
names, or of the revocations. Both also come with every bundle.`,
		Args: cli.Needs("the trust root or the list of revocations"),
		RunE: func(c *cobra.Command, args []string) error { return runTrustUpdate(s, c, args[0]) },
	}
	show := &cobra.Command{
		Use: "show", Short: "Show roles, keys, channels and the fingerprint of the root", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return s.with(c.Context(), func(api *client) error { return s.trust(c, api, http.MethodGet, nil) })
		},
	}
	c.AddCommand(start, update, show)
	return c
}

// trustBody carries documents as bytes, since signatures are over bytes.
type trustBody struct {
	Root        []byte `json:"root,omitempty"`
	Revocations []byte `json:"revocations,omitempty"`
	Document    []byte `json:"document,omitempty"`
}

const maxTrustDocument = 1 << 20

// readSmall reads a plain file of a size that a trust document can have.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxTrustDocument {
		return nil, problem.New("format/too-large", "%s is not a file of at most %d bytes", path, maxTrustDocument)
	}
	return os.ReadFile(path)
}

func runTrustInit(s *site, c *cobra.Command, rootPath, listPath, fingerprint string) error {
	root, err := readSmall(rootPath)
	if err != nil {
		return err
	}
	body := trustBody{Root: root}
	if listPath != "" {
		if body.Revocations, err = readSmall(listPath); err != nil {
			return err
		}
	}
	if err := isRoot(rootPath, root); err != nil {
		return err
	}
	if err := s.compare(rootPath, signing.FingerprintOf(root), fingerprint); err != nil {
		return err
	}
	return s.with(c.Context(), func(api *client) error { return s.trust(c, api, http.MethodPost, body) })
}

// isRoot makes sure that a file is a trust root. The other file of the first
// day is easily taken for it.
func isRoot(path string, b []byte) error {
	_, err := signing.ParseRoot(b)
	if err == nil {
		return nil
	}
	if _, other := bundle.ParseEnrolment(b); other == nil {
		return problem.New("signing/bad-root", "%s is the enrolment of a gate, and no trust root", path).
			Hint("packhof-gate trust init root-1.json")
	}
	return fmt.Errorf("%s: %w", path, err)
}

// compare makes sure that a person has compared the fingerprint.
func (s *site) compare(path string, have signing.Fingerprint, given string) error {
	if given != "" {
		want, err := signing.ParseFingerprint(given)
		if err != nil {
			return err
		}
		if want != have {
			return problem.New("trust/root-fingerprint", "%s is not the trust root with that fingerprint", path).
				With("given:  "+want.String(), "file:   "+have.String()).Hint("do not take it in; have the people outside send the root again")
		}
		return nil
	}
	fmt.Fprintf(s.app.Stderr, "%s\n%s  %s\n%s\n", cli.Clean(filepath.Base(path)), s.say("fingerprint"), have, s.say("in words:"))
	printWords(s.app.Stderr, have.Words())
	yes, asked, err := s.confirmed(s.say("Is the same shown outside?"))
	switch {
	case err != nil || yes:
		return err
	case !asked:
		return problem.New("trust/root-fingerprint", "nobody is at the terminal to compare the fingerprint of %s", path).
			Hint("compare it with  packhof trust show  outside, then add  --fingerprint \"…\"")
	}
	return problem.New("trust/root-fingerprint", "the fingerprint was not confirmed; nothing was changed")
}

func runTrustUpdate(s *site, c *cobra.Command, path string) error {
	document, err := readSmall(path)
	if err != nil {
		return err
	}
	return s.with(c.Context(), func(api *client) error { return s.trust(c, api, http.MethodPost, trustBody{Document: document}) })
}

// trust asks for the state of trust, or changes it, and prints what holds now.
func (s *site) trust(c *cobra.Command, api *client, method string, body any) error {
	var status gate.TrustStatus
	if _, err := api.call(c.Context(), method, "trust", body, &status); err != nil {
		return err
	}
	return s.app.Print("GateTrust", status, func(w io.Writer) { s.trustTable(w, &status) })
}

func (s *site) trustTable(w io.Writer, t *gate.TrustStatus) {
	if !t.Initialised {
		fmt.Fprintln(w, s.say("the gate trusts nobody yet; next:  packhof-gate trust init root-1.json"))
		return
	}
	fmt.Fprintln(w, s.say("root version {root}, expires {expires}; revocations version {revocations}",
		"root", t.RootVersion, "expires", t.Expires.Format(time.DateOnly), "revocations", t.RevocationsVersion))
	fmt.Fprintf(w, "%s  %s\n", s.say("fingerprint"), t.Fingerprint)
	printWords(w, t.Words)
	rows := [][]string{{}, s.heads("ROLE", "NEEDS", "KEYS")}
	for _, r := range t.Roles {
		rows = append(rows, []string{r.Role, s.say("{n} of {all}", "n", r.Threshold, "all", len(r.Keys)), strings.Join(s.keys(r.Keys), ", ")})
	}
	cli.Table(w, rows)
	rows = [][]string{{}, s.heads("CHANNEL", "SERIAL", "MISSING", "GIVEN UP")}
	for _, c := range t.Channels {
		rows = append(rows, []string{c.Name, s.position(c.Epoch, c.Serial), s.serials(c.Missing), s.serials(c.Abandoned)})
	}
	cli.Table(w, rows)
}

func (s *site) keys(keys []gate.TrustKey) []string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		id := fmt.Sprintf("%.16s", k.ID)
		texts[i] = s.say("{owner} ({key}, until {end})", "owner", k.Owner, "key", id, "end", k.NotAfter.Format(time.DateOnly))
		if k.Revoked != "" {
			texts[i] = s.say("{owner} ({key}, revoked: {reason})", "owner", k.Owner, "key", id, "reason", k.Revoked)
		}
	}
	return texts
}

// position is the place of a bundle in its channel.
func (s *site) position(epoch, serial int64) string {
	switch {
	case serial == 0:
		return s.say("none yet")
	case epoch > 1:
		return s.say("{serial}, epoch {epoch}", "serial", fmt.Sprint(serial), "epoch", epoch)
	}
	return fmt.Sprint(serial)
}

func (s *site) serials(serials []int64) string {
	const most = 20
	if len(serials) == 0 {
		return s.say("none")
	}
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(serials[:min(most, len(serials))]), " ", ", "), "[]")
	if len(serials) > most {
		text = s.say("{serials} and {n} more", "serials", text, "n", len(serials)-most)
	}
	return text
}
