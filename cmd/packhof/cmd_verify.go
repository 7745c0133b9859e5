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
	jobs       int
	identities []string // files
}

func newVerify(p *project) *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:   "verify BUNDLE...",
		Short: "Prove signatures and every byte of a bundle",
		Long: `Prove that a bundle is genuine (enough of the right keys have signed its
manifest) and whole (every byte is the one that the manifest promises).

A bundle may come as several volumes, with any names. Name them all, or the
folder that they are in; a part of them is checked as far as it goes. Manifests
and signatures that lie beside them may be named too (/media/usb/*). One volume
that is named alone need not have the others beside it. Encrypted
volumes are opened with --identity; they are for the gate, so that few people
outside should have such a key.

EXIT STATUS
   0  genuine, and every byte is the right one; files in the folder that cannot
      be read are warned of when no volume is missing
   3  that holds for what is here, and volumes are missing
  10  not genuine
  11  damaged
  others as in  packhof help exit-codes`,
		Example: `  packhof verify /media/usb/plant-7-000042.tar
  packhof verify --trust trust /media/usb/plant-7-000042.tar
  packhof verify --show-cosign /media/usb/plant-7-000042.tar > check.sh`,
		Args: cli.NeedsSome("the bundle"),
		RunE: func(c *cobra.Command, args []string) error { return runVerify(p, c, args, o) },
	}
	c.Flags().StringVar(&o.trust, "trust", "", "`folder` with the trust root; default: the one of packhof.yaml")
	c.Flags().IntVar(&o.jobs, "jobs", 0, "how many `cores` hash: 0 for all, 1 for a disk that seeks slowly")
	identityFlag(c.Flags(), &o.identities)
	c.Flags().BoolVar(&o.showCosign, "show-cosign", false, "print how cosign, tar and sha256sum check it, and stop")
	return c
}

// verifyDocument is what "verify" prints.
type verifyDocument struct {
	File     string               `json:"file"`
	OK       bool                 `json:"ok"`
	Manifest bundle.Digest        `json:"manifest"`
	Channel  string               `json:"channel"`
	Serial   int64                `json:"serial"`
	Volumes  []bundle.VolumeState `json:"volumes"`
	Missing  []int                `json:"missing"` // numbers of the volumes of these sets that are not here
	Sets     []setState           `json:"sets"`
	Lacking  int64                `json:"lacking"` // bytes of the bundle that are in no volume here
	Checks   []check              `json:"checks"`
}

// setState is a volume set of which volumes are here.
type setState struct {
	Set     bundle.Digest `json:"set"`
	Count   int           `json:"count"`
	Missing []int         `json:"missing"` // numbers of its volumes that are not here
}

// setsOf counts volumes set by set: a number means nothing without its set.
func setsOf(volumes []bundle.VolumeState) []setState {
	sets := []setState{}
	for i := 0; i < len(volumes); {
		s := setState{Set: volumes[i].Set, Count: volumes[i].Count, Missing: []int{}}
		here := map[int]bool{}
		for ; i < len(volumes) && volumes[i].Set == s.Set; i++ {
			here[volumes[i].Number] = true
		}
		for n := 1; n <= s.Count; n++ {
			if !here[n] {
				s.Missing = append(s.Missing, n)
			}
		}
		sets = append(sets, s)
	}
	return sets
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

func runVerify(p *project, c *cobra.Command, paths []string, o verifyOptions) (err error) {
	folder, err := p.trustFor(o.trust)
	if err != nil {
		return err
	}
	opener, err := openerOf(o.identities)
	if err != nil {
		return err
	}
	sealed, damage, passed, err := bundleAt(opener, paths)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sealed.Close()) }()
	if o.showCosign {
		if damage != nil {
			return damage
		}
		return p.printCosign(sealed, folder, o.identities)
	}
	b, err := p.genuine(sealed, folder)
	if err != nil {
		return alsoMissing(err, setsOf(sealed.VolumesUnsafe()), passed)
	}
	rivals := sealed.Rivals()
	b, aside, err := p.proven(c.Context(), b, rivals, filepath.Base(paths[0]), o.jobs)
	doc := verification(b, paths[0])
	switch {
	case err != nil:
		return alsoMissing(errors.Join(err, damage), doc.Sets, passed)
	case damage != nil && doc.incomplete() != nil: // it may be one of those that are missing
		return alsoMissing(damage, doc.Sets, passed)
	case damage != nil:
		p.warn("beside the bundle, and no part of what makes it whole: "+damage.Error(), nil)
	}
	p.warnOfRivals(rivals, aside, doc.Lacking == 0)
	if err := p.app.Print("Verification", doc, doc.table); err != nil || isOneFile(paths) {
		return err
	}
	return problem.Besides(doc.incomplete(), bundle.PassedOver(passed)...)
}

// isOneFile tells whether somebody means one volume, and not what there is.
func isOneFile(paths []string) bool {
	if len(paths) != 1 {
		return false
	}
	info, err := os.Stat(paths[0])
	return err == nil && !info.IsDir()
}

// incomplete says which volumes are missing of a bundle that is not all here.
func (d verifyDocument) incomplete() error {
	if d.Lacking == 0 || len(d.Missing) == 0 {
		return nil
	}
	p := problem.New("volume/not-complete", "the bundle is not whole: volumes of it are missing").With(missingOf(d.Sets)...)
	return p.Hint("name the missing volumes as well, or the folder that all of them are in")
}

// missingOf names the volumes that are missing, set by set.
func missingOf(sets []setState) []string {
	var lines []string
	for _, s := range sets {
		if len(s.Missing) > 0 {
			lines = append(lines, fmt.Sprintf("missing:  %s of %d of the set %s", bundle.NumbersText(s.Missing), s.Count, s.Set.Short()))
		}
	}
	return problem.SomeOf(lines)
}

// alsoMissing has damage say which volumes are missing besides, and which files
// were passed over that may be those.
func alsoMissing(err error, sets []setState, passed []string) error {
	missing := missingOf(sets)
	if cli.ExitOf(err) != cli.ExitDamaged || len(missing) == 0 {
		return err
	}
	return problem.Besides(err, append(missing, bundle.PassedOver(passed)...)...)
}

// lacking is how many bytes of the bundle are in none of the volumes here.
func lacking(b *bundle.Bundle) (bytes int64) {
	for _, p := range b.Lacks() {
		bytes += p.Length
	}
	return bytes
}

func verification(b *bundle.Bundle, path string) verifyDocument {
	m := b.Manifest()
	doc := verifyDocument{
		File: path, OK: true, Manifest: b.Digest(), Channel: m.Channel, Serial: m.Serial,
		Volumes: b.Volumes(), Missing: b.MissingVolumes(), Lacking: lacking(b),
	}
	doc.Sets = setsOf(doc.Volumes)
	lacks := b.Lacks()
	container, blobs := "strict profile, complete, in the one order", fmt.Sprintf("%d of %d, %s", m.Totals.Files, m.Totals.Files, cli.Bytes(m.Totals.Bytes))
	artifacts := fmt.Sprintf("%d, each whole from its root", len(m.Artifacts))
	if n := placesHeld(doc.Sets); n > 1 || len(doc.Missing) > 0 {
		container = fmt.Sprintf("%s, strict profile, in the one order", cli.Count(n, "volume"))
	}
	if len(lacks) > 0 {
		blobs = fmt.Sprintf("%s of %s are here", cli.Bytes(m.Totals.Bytes-doc.Lacking), cli.Bytes(m.Totals.Bytes))
		artifacts = fmt.Sprintf("%d, described from their roots as far as that is here", len(m.Artifacts))
	}
	doc.Checks = []check{
		{"trust root", "ok", fmt.Sprintf("version %d, revocations version %d", b.Voucher().RootVersion(), b.Voucher().RevocationsVersion())},
		{"signatures", "ok", signers(b)},
		{"container", "ok", container},
		{"blobs", "ok", blobs},
		{"artifacts", "ok", artifacts},
	}
	return doc
}

func (d verifyDocument) table(w io.Writer) {
	switch {
	case d.Lacking == 0:
		fmt.Fprintf(w, "genuine and whole: %s, serial %d\n", d.Channel, d.Serial)
	case len(d.Missing) > 0:
		fmt.Fprintf(w, "genuine, and sound as far as it is here: %s, serial %d\n", d.Channel, d.Serial)
	default:
		fmt.Fprintf(w, "genuine, and this set is whole: %s, serial %d\n", d.Channel, d.Serial)
	}
	rows := [][]string{}
	for _, c := range d.Checks {
		rows = append(rows, []string{"  " + c.Name, c.Result, c.Detail})
	}
	cli.Table(w, rows)
	if d.Lacking == 0 {
		return // whichever volumes it is in
	}
	if len(d.Volumes) == 1 && d.Volumes[0].Count > 1 {
		fmt.Fprintf(w, "this is volume %d of %d\n", d.Volumes[0].Number, d.Volumes[0].Count)
	}
	for _, s := range d.Sets {
		if len(s.Missing) == 0 {
			continue
		}
		fmt.Fprintf(w, "not here: volume %s of %d", bundle.NumbersText(s.Missing), s.Count)
		if len(d.Sets) > 1 {
			fmt.Fprintf(w, " of the set %s", s.Set.Short())
		}
		fmt.Fprintln(w)
	}
	if len(d.Missing) == 0 {
		fmt.Fprintf(w, "the set brings a part: %s of the bundle come with other sets, or are at the gate\n", cli.Bytes(d.Lacking))
	}
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

// unpacking is the line that unpacks a volume.
func unpacking(sealed *bundle.Sealed, path string, identities []string) string {
	if !sealed.CameEncrypted(path) {
		return "tar -xf " + signing.ShellQuote(path)
	}
	line := "age --decrypt"
	for _, file := range identities {
		line += " --identity " + signing.ShellQuote(file)
	}
	return line + " " + signing.ShellQuote(path) + " | tar -xf -"
}

// printCosign shows how a stranger checks signature and content without us.
func (p *project) printCosign(sealed *bundle.Sealed, folder *mirror.TrustFolder, identities []string) error {
	lines := []string{"set -e"}
	for _, path := range sealed.Paths() {
		lines = append(lines, unpacking(sealed, path, identities))
	}
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
		if sealed.CameBeside(s.Key) {
			lines = append(lines, fmt.Sprintf("mkdir -p signatures; printf '%%s' %s > %s", signing.ShellQuote(string(s.Bytes)), entry))
		}
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
