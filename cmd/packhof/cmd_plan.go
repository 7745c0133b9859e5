package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/mirror"
)

type planOptions struct {
	dryRun       bool
	control      bool
	detailedExit bool
}

// changed is how plan --detailed-exitcode says that there are changes.
const changed = cli.Outcome(2)

func newPlan(p *project) *cobra.Command {
	var o planOptions
	c := &cobra.Command{
		Use:   "plan",
		Short: "Pin what packhof.yaml names and write packhof.lock",
		Long: `Ask every source what its names stand for today, pin the digests in
packhof.lock, and settle serial, dates and audience of the next bundle.
Nothing is sealed: planning again gives the same serial until it is exported.
It says so when the next bundle would bring nothing that the last one has not.

EXIT STATUS
  0  the lock was written
  with --detailed-exitcode: 0 nothing has changed since the lock before,
  2 something has changed, 1 any failure`,
		Example: `  packhof plan
  packhof plan --dry-run --detailed-exitcode -o json`,
		Args: cli.Needs(),
		RunE: func(c *cobra.Command, _ []string) error {
			err := runPlan(p, c, o)
			if _, said := err.(cli.Outcome); err == nil || said || !o.detailedExit {
				return err
			}
			return cli.FailedAs(err, cli.ExitFailed) // 2 means changes, and only that
		},
	}
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "ask the sources, and write no lock")
	c.Flags().BoolVar(&o.control, "control", false, "plan the documents of packhof.yaml, for a control bundle")
	c.Flags().BoolVar(&o.detailedExit, "detailed-exitcode", false, "exit 2 when artifacts have changed since the lock before")
	return c
}

func runPlan(p *project, c *cobra.Command, o planOptions) (err error) {
	if err := p.load(); err != nil {
		return err
	}
	store, release, err := p.openStore()
	if err != nil {
		return err
	}
	defer func() {
		if failed := release(); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	folder, err := p.trust()
	if err != nil {
		return err
	}
	ledger, err := mirror.OpenLedger(p.ledgerPath(), p.spec.Channel)
	if err != nil {
		return err
	}
	gates, err := mirror.ReadGates(p.path(p.spec.Trust), folder, p.app.Now())
	if err != nil {
		return err
	}
	before, err := p.lockBefore()
	if err != nil {
		return err
	}
	progress := p.app.Progress()
	defer progress.Close()
	sources, err := p.sources(progress)
	if err != nil {
		return err
	}
	planner := mirror.Planner{Sources: sources, Store: store, Trust: folder, Ledger: ledger, Before: before, Now: p.app.Now(), Gates: gates, Dir: filepath.Dir(p.file), Control: o.control}
	lock, err := planner.Plan(c.Context(), &p.spec)
	if err != nil {
		return p.config.Locate(err)
	}
	progress.Close()
	if !o.dryRun {
		if err := lock.Write(p.lockPath()); err != nil {
			return err
		}
	}
	changes := mirror.Compare(before, lock)
	same, err := mirror.SealedAlike(store, ledger, lock, p.app.Now())
	if err != nil {
		return err
	}
	if err := p.printPlan(lock, changes, same, o.dryRun); err != nil {
		return err
	}
	if o.detailedExit && mirror.AnyChange(changes) {
		return changed
	}
	return nil
}

// lockBefore reads the lock that is there. One that cannot be read is an
// error: the times of SBOMs are carried over from it.
func (p *project) lockBefore() (*mirror.Lock, error) {
	lock, err := mirror.ReadLock(p.lockPath())
	var coded *problem.Problem
	if errors.As(err, &coded) && coded.Code() == "lock/missing" {
		return nil, nil
	}
	return lock, err
}

// planDocument is what "plan" prints.
type planDocument struct {
	Lock    string              `json:"lock"`
	DryRun  bool                `json:"dryRun"`
	Channel string              `json:"channel"`
	Epoch   int64               `json:"epoch"`
	Serial  int64               `json:"serial"`
	Created string              `json:"created"`
	Expires string              `json:"expires"`
	Gates   []string            `json:"audience"`
	Files   int64               `json:"files"`
	Bytes   int64               `json:"bytes"`
	Changes []mirror.PlanChange `json:"artifacts"`
	SameAs  int64               `json:"sameAs"` // the last sealed serial, if this one brings nothing else; 0 if it does

	Documents []mirror.PinnedDocument `json:"documents,omitempty"` // of a control bundle
	Answers   int                     `json:"answers"`
	Withdraws int                     `json:"withdraws"`
}

func (p *project) printPlan(l *mirror.Lock, changes []mirror.PlanChange, sameAs int64, dryRun bool) error {
	doc := planDocument{
		Lock: p.lockPath(), DryRun: dryRun, Channel: l.Channel, Epoch: l.Epoch, Serial: l.Serial,
		Created: l.Created.String(), Expires: l.Expires.String(), Gates: l.Audience, Changes: changes, SameAs: sameAs,
		Documents: l.Documents, Answers: len(l.Answers), Withdraws: len(l.Withdraws),
	}
	for _, d := range l.Documents {
		doc.Files++
		doc.Bytes += d.Size
	}
	for _, a := range l.Artifacts {
		doc.Files += a.Files
		doc.Bytes += a.Bytes
	}
	return p.app.Print("Plan", doc, func(w io.Writer) {
		rows := [][]string{{"", "KIND", "NAME", "VERSION", "DIGEST", "SIZE", "FROM"}}
		for _, c := range changes {
			rows = append(rows, []string{c.Sign(), string(c.Kind), c.Name, c.Version, c.Digest.Short(), cli.Bytes(c.Bytes), cli.Shorten(c.From, 60)})
		}
		if len(doc.Documents) == 0 {
			cli.Table(w, rows)
		} else {
			doc.documents(w)
		}
		if doc.Answers > 0 || doc.Withdraws > 0 {
			fmt.Fprintf(w, "\nwith %s and %s\n", cli.Count(doc.Answers, "answer"), cli.Count(doc.Withdraws, "withdrawn digest"))
		}
		fmt.Fprintf(w, "\nserial %d of %s, for %s, may be accepted until %s\n", doc.Serial, doc.Channel, cli.Count(len(doc.Gates), "gate"), doc.Expires)
		if !mirror.AnyChange(changes) {
			fmt.Fprintln(w, "nothing has changed since the lock before")
		}
		if dryRun {
			fmt.Fprintln(w, "dry run: no lock was written")
		}
		doc.next(w)
	})
}

// next says how to go on. Whoever exports what brings nothing new uses up a
// serial for it.
func (d *planDocument) next(w io.Writer) {
	switch {
	case d.SameAs != 0:
		if !d.DryRun {
			fmt.Fprintf(w, "wrote %s\n", d.Lock)
		}
		fmt.Fprintf(w, "nothing new to send; to write serial %d again:  packhof resend --to /media/usb\n", d.SameAs)
	case !d.DryRun:
		fmt.Fprintf(w, "wrote %s; next:  packhof export --to /media/usb\n", d.Lock)
	}
}

// documents lists what a control bundle will carry.
func (d *planDocument) documents(w io.Writer) {
	rows := [][]string{{"DOCUMENT", "VERSION", "DIGEST", "SIZE", "FROM"}}
	for _, doc := range d.Documents {
		from := doc.From
		if from == "" {
			from = "the trust folder"
		}
		rows = append(rows, []string{doc.Type, doc.Version, doc.Blob.Short(), cli.Bytes(doc.Size), cli.Shorten(from, 60)})
	}
	cli.Table(w, rows)
}
