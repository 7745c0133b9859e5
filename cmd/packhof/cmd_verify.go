package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/signing"
)

type verifyOptions struct {
	trust      string
	showCosign bool
}

func newVerify(p *project) *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify BUNDLE",
		Short: "Prove signatures and every byte of a bundle",
		Long: `Prove that a bundle is genuine (enough of the right keys have signed its
manifest) and whole (every byte is the one that the manifest promises).

EXIT STATUS
   0  genuine and whole
  10  not genuine
  11  damaged
  others as in  packhof help exit-codes`,
		Example: `  packhof verify /media/usb/plant-7-000042.tar
  packhof verify --trust trust /media/usb/plant-7-000042.tar
  packhof verify --show-cosign /media/usb/plant-7-000042.tar > check.sh`,
		Args: cli.Needs("the bundle"),
		RunE: func(c *cobra.Command, args []string) error { return runVerify(p, c, args[0], o) },
	}
	c.Flags().StringVar(&o.trust, "trust", "", "`folder` with the trust root; default: the one of packhof.yaml")
	c.Flags().BoolVar(&o.showCosign, "show-cosign", false, "print how cosign, tar and sha256sum check it, and stop")
	return c
}

// verifyDocument is what "verify" prints.
type verifyDocument struct {
	File     string        `json:"file"`
	OK       bool          `json:"ok"`
	Manifest bundle.Digest `json:"manifest"`
	Channel  string        `json:"channel"`
	Serial   int64         `json:"serial"`
	Checks   []check       `json:"checks"`
}

type check struct {
	Name   string `json:"name"`
	Result string `json:"result"` // ok
	Detail string `json:"detail"`
}

func (p *project) trustFor(dir string) (*mirror.TrustFolder, error) {
	if dir != "" {
		return mirror.ReadTrust(dir, p.app.Now())
	}
	if _, err := os.Stat(p.file); errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New("trust/missing", "nothing here says whom to trust: there is no %s", p.file).
			Hint("name the folder with the trust root: --trust FOLDER")
	}
	if err := p.load(); err != nil {
		return nil, err
	}
	return p.trust()
}

func runVerify(p *project, c *cobra.Command, path string, o verifyOptions) (err error) {
	folder, err := p.trustFor(o.trust)
	if err != nil {
		return err
	}
	sealed, damage := bundle.OpenFile(path)
	if sealed == nil {
		return damage
	}
	defer func() { err = errors.Join(err, sealed.Close()) }()
	if o.showCosign {
		return p.printCosign(sealed, folder, path)
	}
	b, err := p.genuine(sealed, folder)
	if err != nil {
		return err
	}
	m := b.Manifest()
	progress := p.app.Progress()
	item := progress.Start("verify "+filepath.Base(path), m.Totals.Bytes)
	err = b.Check(c.Context(), item.Advance)
	item.Done(err)
	progress.Close()
	if err != nil {
		return err
	}
	doc := verifyDocument{File: path, OK: true, Manifest: b.Digest(), Channel: m.Channel, Serial: m.Serial, Checks: []check{
		{"trust root", "ok", fmt.Sprintf("version %d, revocations version %d", b.Voucher().RootVersion(), b.Voucher().RevocationsVersion())},
		{"signatures", "ok", signers(b)},
		{"container", "ok", "strict profile, complete, in the one order"},
		{"blobs", "ok", fmt.Sprintf("%d of %d, %s", m.Totals.Files, m.Totals.Files, cli.Bytes(m.Totals.Bytes))},
		{"artifacts", "ok", fmt.Sprintf("%d, each whole from its root", len(m.Artifacts))},
	}}
	return p.app.Print("Verification", doc, func(w io.Writer) {
		fmt.Fprintf(w, "genuine and whole: %s, serial %d\n", m.Channel, m.Serial)
		rows := [][]string{}
		for _, c := range doc.Checks {
			rows = append(rows, []string{"  " + c.Name, c.Result, c.Detail})
		}
		cli.Table(w, rows)
	})
}

// genuine applies the trust documents of the head and checks the signatures.
// Damage behind the head is reported by Verify, after the signatures: who
// signed decides what is worth reading.
func (p *project) genuine(sealed *bundle.Sealed, folder *mirror.TrustFolder) (*bundle.Bundle, error) {
	known, err := sealed.Trust(folder.Trust, p.app.Now())
	if err != nil {
		return nil, err
	}
	return sealed.Verify(known, p.app.Now())
}

// compareBlobs are the lines that hold the blobs against the signed manifest:
// SHA256SUMS is signed by nobody, so it alone would prove nothing.
func compareBlobs() []string {
	return []string{
		"cd blobs/sha256",
		`for first in *.s0000; do if [ -e "$first" ]; then b="${first%.s0000}"; cat "$b".s* > "$b"; rm "$b".s*; fi; done`,
		`grep -o '"digest":"sha256:[0-9a-f]*","role"' ../../packhof.json | cut -d: -f3 | cut -d'"' -f1 | sort > ../../promised`,
		"ls | sort | diff ../../promised -",
		`for b in *; do echo "$b  $b"; done | sha256sum -c --quiet`,
		"echo 'signed, and every blob is the one that was signed for'",
	}
}

// printCosign shows how a stranger checks signature and content without us.
func (p *project) printCosign(sealed *bundle.Sealed, folder *mirror.TrustFolder, path string) error {
	lines := []string{"set -e", "tar -xf " + signing.ShellQuote(path)}
	for _, s := range sealed.Head().Signatures {
		parsed, err := signing.ParseBundle(s.Bytes)
		if err != nil {
			return err
		}
		key, ok := folder.Trust.Root().Key(parsed.Claims())
		if !ok {
			lines = append(lines, fmt.Sprintf("# %s: its key is not in the trust root", s.Key))
			continue
		}
		entry := "signatures/" + s.Key + ".sigstore.json"
		lines = append(lines, fmt.Sprintf("printf '%%s' %s > %s.pub", signing.ShellQuote(string(key.Public.PEM())), s.Key))
		lines = append(lines, signing.CosignCommands(signing.CosignFiles{
			Payload: "packhof.json", Bundle: entry, PublicKey: s.Key + ".pub", TrustedRoot: "trusted_root.json",
		})...)
	}
	lines = append(lines, compareBlobs()...)
	return p.app.Print("CosignCommands", map[string][]string{"commands": lines}, func(w io.Writer) {
		for _, line := range lines {
			fmt.Fprintln(w, line)
		}
	})
}
