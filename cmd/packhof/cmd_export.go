package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/mirror"
)

type exportOptions struct {
	to              string
	dryRun          bool
	noScan          bool
	noReadback      bool
	allowIncomplete bool
	volumeSize      string
	since           []string // receipts
	want            string   // a want list
	encrypt         encryptOptions

	// Of a serial that was sealed before; 0 for what packhof.lock says.
	serial  int64
	set     string // beginning of the id of one that went out
	resend  bool
	volumes []int
}

func newExport(p *project) *cobra.Command {
	var o exportOptions
	c := &cobra.Command{
		Use:   "export",
		Short: "Do exactly what packhof.lock says: fetch, describe, sign, write",
		Long: `Fetch what packhof.lock pins, make an SBOM of every artifact, seal and sign the
manifest, and write CHANNEL-SERIAL.tar to a folder or medium, with the
manifest beside it as CHANNEL-SERIAL.packhof.json. What the store has is
not fetched again. Exporting a lock twice gives the same bytes.

With --encrypt or --encrypt-to each file is encrypted while it is written, and
named by random digits, such as 3f9a0c77d15be248.age. Only a gate that it is
encrypted to can read it. Nothing else is written beside it.

EXIT STATUS
  0  the bundle was written, and read back from the medium
  3  several artifacts could not be had; nothing was sealed
  others as in  packhof help exit-codes`,
		Example: `  packhof export --to /media/usb --dry-run
  packhof export --to /media/usb
  packhof export --encrypt --volume-size fat32 --to /media/usb
  PACKHOF_PASSPHRASE_FILE=/run/secrets/packhof packhof export --to /srv/outbox -o json -q`,
		Args: cli.Needs(),
		RunE: func(c *cobra.Command, _ []string) error { return runExport(p, c, o) },
	}
	flags := c.Flags()
	flags.StringVar(&o.to, "to", ".", "`folder` to write to, such as /media/usb")
	flags.StringVar(&o.volumeSize, "volume-size", "", "largest `size` of each file: 4GiB-1, fat32, dvd, or a list")
	o.partFlags(flags)
	o.encrypt.flags(flags)
	flags.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, and fetch, seal and write nothing")
	flags.BoolVar(&o.noScan, "no-scan", false, "make no SBOMs; the bundle says so")
	flags.BoolVar(&o.noReadback, "no-readback", false, "do not read the bundle back from the medium")
	flags.BoolVar(&o.allowIncomplete, "allow-incomplete", false, "leave out what cannot be reached; the bundle says so")
	return c
}

// partFlags are those that make an export bring a part of the content.
func (o *exportOptions) partFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.since, "since", nil, "bring only what a gate has not, by its `receipt`")
	flags.StringVar(&o.want, "want", "", "bring only what a gate's want list asks for, in `FILE`")
}

func newResend(p *project) *cobra.Command {
	o := exportOptions{resend: true}
	c := &cobra.Command{
		Use:   "resend",
		Short: "Write a sealed serial again, or some of its volumes",
		Long: `Write a serial that was sealed before once more, with the same bytes: all of
it, single volumes that were lost, or what a gate lacks. What packhof.lock and
packhof.yaml say by now does not matter. What a want list asks for is sent in
whole chunks of 64 MiB, and blobs of up to 64 MiB whole: that much can be proven
alone.

It goes out as all of it last did: in the same sizes, encrypted to the same
recipients, unless --encrypt-to names others; --encrypt=false sends it in the
clear. Sets that brought a part do not count as the last time. With --set it
goes out as that set did, whose id the export printed.`,
		Example: `  packhof resend --serial 42 --volume 3 --to /media/usb
  packhof resend --set 3f9a0c77d15b --volume 2 --to /media/usb
  packhof resend --want want.json --to /media/usb`,
		Args: cli.Needs(),
		RunE: func(c *cobra.Command, _ []string) error { return runExport(p, c, o) },
	}
	flags := c.Flags()
	flags.StringVar(&o.to, "to", ".", "`folder` to write to, such as /media/usb")
	flags.Int64Var(&o.serial, "serial", 0, "`number` of the serial; default: the last one that was sealed")
	flags.StringVar(&o.set, "set", "", "write the set again whose `id` begins like this")
	flags.IntSliceVar(&o.volumes, "volume", nil, "`number` of a volume to write; default: all of them")
	flags.StringVar(&o.volumeSize, "volume-size", "", "largest `size` of each file; default: as the last time")
	o.partFlags(flags)
	o.encrypt.flags(flags)
	flags.BoolVar(&o.dryRun, "dry-run", false, "say what would be written, and write nothing")
	flags.BoolVar(&o.noReadback, "no-readback", false, "do not read the bundle back from the medium")
	return c
}

// lockFor finds what is to be exported: what packhof.lock says, or a serial
// that was sealed before.
func (p *project) lockFor(e *mirror.Exporter, o exportOptions) (*mirror.Lock, error) {
	if o.want != "" && (len(o.since) > 0 || o.serial != 0 || o.set != "") {
		return nil, problem.New("usage", "a want list says by itself which serial it is about and what to bring").Hint("leave --since, --serial and --set out")
	}
	if o.want != "" {
		want, err := mirror.ReadWant(o.want)
		if err != nil {
			return nil, err
		}
		e.Want = want
		return o.asShipped(e, want.Epoch, want.Serial)
	}
	if o.set != "" {
		return o.sameSet(e)
	}
	if !o.resend {
		return mirror.ReadLockOf(p.lockPath(), &p.spec)
	}
	last, sealed := e.Ledger.Last() // given up or not: a number is one of its epoch
	if o.serial == 0 || !sealed {
		var err error
		if last, err = mirror.LastSealed(e.Ledger); err != nil {
			return nil, err
		}
	}
	return o.asShipped(e, last.Epoch, cmp.Or(o.serial, last.Serial))
}

// sameSet is the lock of a set that went out, which goes out as it was.
func (o *exportOptions) sameSet(e *mirror.Exporter) (*mirror.Lock, error) {
	if len(o.since) > 0 || o.serial != 0 || o.volumeSize != "" || o.encrypt.isAsked() {
		return nil, problem.New("usage", "a set goes out again as it was, with its serial, sizes and recipients").
			Hint("leave --serial, --since, --volume-size, --encrypt and --encrypt-to out")
	}
	lock, shipped, err := mirror.FindSet(e.Store, e.Ledger, o.set)
	e.Again, e.VolumeSizes, e.Recipients = &shipped, shipped.Sizes, shipped.Recipients
	return lock, err
}

// asShipped is the lock of a serial that was sealed, which goes out as the last
// time where nothing else is asked for.
func (o *exportOptions) asShipped(e *mirror.Exporter, epoch, serial int64) (*mirror.Lock, error) {
	lock, last, err := mirror.SealedLock(e.Store, e.Ledger, epoch, serial)
	if o.volumeSize == "" {
		e.VolumeSizes = last.Sizes
	}
	if !o.encrypt.isAsked() {
		e.Recipients = last.Recipients
	}
	return lock, err
}

func runExport(p *project, c *cobra.Command, o exportOptions) (err error) {
	sizes, err := volumeSizes(o.volumeSize)
	if err != nil {
		return err
	}
	if err := p.load(); err != nil {
		return err
	}
	if info, err := os.Stat(o.to); err != nil || !info.IsDir() {
		return problem.New("usage", "%s is not a folder to write to", o.to).Hint("mount the medium there, or make the folder: mkdir %s", o.to)
	}
	store, release, err := p.openStore()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	releaseTarget, err := p.guardTarget(o.to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, releaseTarget()) }()
	e, lock, err := p.exporter(store, sizes, o)
	if err != nil {
		return err
	}
	if e.Signer, err = p.signer(c.Context()); err != nil {
		return err
	}
	progress := p.app.Progress()
	defer progress.Close()
	if e.Sources, err = p.sources(progress); err != nil {
		return err
	}
	e.Progress = shown{progress}
	if o.dryRun {
		return p.printDryRun(c.Context(), e, lock, o.to)
	}
	summary, err := e.Export(c.Context(), lock, o.to)
	progress.Close()
	if err != nil {
		return err
	}
	if err := p.keepReceipts(e.Gates, o.since); err != nil {
		return err
	}
	return p.printSummary(summary)
}

// exporter prepares an export, all but who signs and whom it shows progress to,
// and reads the lock that it is of.
func (p *project) exporter(store *cas.Store, sizes []int64, o exportOptions) (e *mirror.Exporter, lock *mirror.Lock, err error) {
	e = &mirror.Exporter{
		Warn: p.warn, Store: store, Dir: filepath.Dir(p.file), Now: p.app.Now(),
		AllowIncomplete: o.allowIncomplete, NoReadback: o.noReadback, Volumes: o.volumes, VolumeSizes: sizes,
	}
	if e.Trust, err = p.trust(); err != nil {
		return nil, nil, err
	}
	if e.Ledger, err = mirror.OpenLedger(p.ledgerPath(), p.spec.Channel); err != nil {
		return nil, nil, err
	}
	if e.Gates, err = mirror.ReadGates(p.path(p.spec.Trust), e.Trust, e.Now); err != nil {
		return nil, nil, err
	}
	if lock, err = p.lockFor(e, o); err != nil {
		return nil, nil, err
	}
	if o.encrypt.isAsked() {
		if e.Recipients, err = mirror.Recipients(o.encrypt.names(lock.Audience), lock.Audience, e.Trust.Trust.Root()); err != nil {
			return nil, nil, err
		}
	}
	if e.Since, err = mirror.ReadReceipts(o.since, e.Trust, e.Now); err != nil {
		return nil, nil, err
	}
	if o.noScan {
		e.NoScan = "not asked for: exported with --no-scan"
	} else if e.Scanner, err = p.scanner(store); err != nil {
		return nil, nil, err
	}
	return e, lock, nil
}

// keepReceipts keeps the receipts that an export went by. That a newer one is
// kept already is worth a word.
func (p *project) keepReceipts(gates *mirror.Gates, paths []string) error {
	for _, path := range paths {
		err := keepReceipt(gates, path)
		if cli.CodeOf(err) == "receipt/older" {
			p.warn(err.Error()+", and less may have been sent than it lacks", nil)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *project) printDryRun(ctx context.Context, e *mirror.Exporter, l *mirror.Lock, dir string) error {
	d, err := e.DryRun(ctx, l, dir)
	if err != nil {
		return err
	}
	return p.app.Print("ExportDryRun", d, func(w io.Writer) {
		printPlanned(w, d, dir)
		printRecipients(w, "would be encrypted to", d.Recipients)
		fmt.Fprintf(w, "would fetch about %s; free there: %s\n", cli.Bytes(d.Fetch), cli.Bytes(d.Free))
		fmt.Fprintln(w, "dry run: nothing was fetched, sealed or written")
	})
}

// printRecipients says whom volumes are encrypted to.
func printRecipients(w io.Writer, verb string, recipients []string) {
	for _, r := range recipients {
		fmt.Fprintf(w, "%s %s\n", verb, r)
	}
}

// printPlanned says which files an export would write, as far as that is known
// before the manifest is made.
func printPlanned(w io.Writer, d *mirror.DryRun, dir string) {
	what := fmt.Sprintf("serial %d of %s", d.Serial, d.Channel)
	artifacts := carried(d.Artifacts, d.Documents)
	switch {
	case len(d.Volumes) > 0:
		fmt.Fprintf(w, "would write %s, as it was sealed: %s, %s\n", what, artifacts, cli.Bytes(d.Bytes))
		for _, v := range d.Volumes {
			fmt.Fprintf(w, "would write %s  (%s)\n", v.Path, cli.Bytes(v.Size))
		}
	case len(d.Sizes) > 0:
		var sizes []string
		for _, n := range d.Sizes {
			sizes = append(sizes, cli.Bytes(n))
		}
		fmt.Fprintf(w, "would write %s to %s: %s, about %s, in volumes of at most %s\n", what, dir, artifacts, cli.Bytes(d.Bytes), strings.Join(sizes, ", then "))
	default:
		fmt.Fprintf(w, "would write %s to %s: %s, about %s\n", what, d.Path, artifacts, cli.Bytes(d.Bytes))
	}
	switch {
	case d.Complete:
	case len(d.Volumes) > 0:
		fmt.Fprintln(w, "the set would bring a part of the content: what the gate has by its own word is left out")
	default:
		fmt.Fprintln(w, "what the gate has by its own word would be left out; how much that is shows when the manifest is made")
	}
}

// carried says what a bundle carries, of whatever kind it is.
func carried(artifacts, documents int) string {
	if documents > 0 {
		return cli.Count(documents, "document")
	}
	return cli.Count(artifacts, "artifact")
}

func (p *project) printSummary(s *mirror.Summary) error {
	for _, entry := range s.NoSBOM {
		p.warn(fmt.Sprintf("no SBOM of %s (%s): %s", entry.Subject.Short(), entry.Status, entry.Reason), nil)
	}
	for _, omitted := range s.Incomplete {
		p.warn(fmt.Sprintf("left out %s: %s", omitted.Name, omitted.Reason), nil)
	}
	return p.app.Print("Export", s, func(w io.Writer) {
		if len(s.Volumes) == 1 {
			fmt.Fprintf(w, "wrote %s  (%s, %s, %s)\n", s.Path, cli.Bytes(s.Bytes), carried(s.Artifacts, s.Documents), cli.Count(int(s.Blobs), "blob"))
		} else {
			for _, v := range s.Volumes {
				fmt.Fprintf(w, "wrote %s  (%s)\n", v.Path, cli.Bytes(v.Size))
			}
			fmt.Fprintf(w, "%d volumes, %s, %s, %s\n", len(s.Volumes), cli.Bytes(s.Bytes), carried(s.Artifacts, s.Documents), cli.Count(int(s.Blobs), "blob"))
		}
		if !s.Complete {
			fmt.Fprintln(w, "the set brings a part of the content: what the gate has by its own word is left out")
		}
		printRecipients(w, "encrypted to", s.Recipients)
		state := "sealed now"
		if s.Resealed {
			state = "sealed before; the same bytes (to send what has changed since: packhof plan)"
		}
		if s.Resealed && len(s.Recipients) > 0 {
			state = "sealed before; the same bundle, encrypted anew (to send what has changed since: packhof plan)"
		}
		fmt.Fprintf(w, "serial %d of %s, %s\nmanifest %s\nset %s\nnext:  %s %s\n", s.Serial, s.Channel, state, s.Manifest, s.Set.Short(), nextCommand(s), whereWritten(s))
	})
}

// nextCommand is what to do with what was written: an encrypted volume says
// nothing to those who cannot open it.
func nextCommand(s *mirror.Summary) string {
	if len(s.Recipients) > 0 {
		return "at the gate,  packhof-gate receive"
	}
	return "packhof verify"
}

// whereWritten names what was written as short as a command can take it: the
// folder, where no other bundle is in it.
func whereWritten(s *mirror.Summary) string {
	if len(s.Volumes) == 1 {
		return s.Path
	}
	dir, paths := filepath.Dir(s.Path), []string{}
	for _, v := range s.Volumes {
		paths = append(paths, v.Path)
	}
	there, err := filepath.Glob(filepath.Join(dir, "*"+filepath.Ext(s.Path)))
	if err == nil && len(there) == len(paths) {
		return dir
	}
	return strings.Join(paths, " ")
}
