package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/mirror"
)

func newSerial(p *project) *cobra.Command {
	c := &cobra.Command{Use: "serial", Short: "Show the serials of the channel, or give one up"}
	reason, undelivered, epoch := "", false, int64(0)
	abandon := &cobra.Command{
		Use:   "abandon SERIAL",
		Short: "Give a serial up: nothing goes out under it any more",
		Long: `Write into packhof.ledger that a serial is given up, and why: the one that is
planned next, or one that was sealed and never reached a gate. The next plan
takes another number, and its bundle does not follow the one given up, so
gates list it as abandoned and not as missing.

A serial that a gate has taken in cannot be given up. Of a sealed one nobody
but you knows whether a medium with it is on its way: destroy what there is,
and say so with --undelivered.`,
		Example: `  packhof serial abandon 43 --reason number-taken-elsewhere
  packhof serial abandon 42 --undelivered --reason stick-wiped`,
		Args: cli.Needs("the number of the serial"),
		RunE: func(c *cobra.Command, args []string) error {
			serial, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return &cli.UsageError{What: fmt.Sprintf("%q is no number of a serial", args[0]), Command: c.CommandPath()}
			}
			if reason == "" {
				return &cli.UsageError{What: "abandon needs --reason, a line that says why", Command: c.CommandPath()}
			}
			return p.aloneWith(func() error { return runAbandon(p, epoch, serial, reason, undelivered) })
		},
	}
	abandon.Flags().StringVar(&reason, "reason", "", "a `line` that says why; needed")
	abandon.Flags().BoolVar(&undelivered, "undelivered", false, "no gate has this sealed serial, or will get it")
	abandon.Flags().Int64Var(&epoch, "epoch", 0, "`number` of the epoch; default: that of the trust root")
	c.AddCommand(&cobra.Command{
		Use:   "list",
		Short: "Show every serial of the ledger, and the planned one",
		Example: `  packhof serial list
  packhof serial list -o json`,
		Args: cli.Needs(),
		RunE: func(*cobra.Command, []string) error { return p.withGates(p.printSerials) },
	}, abandon)
	return c
}

func runAbandon(p *project, epoch, serial int64, reason string, undelivered bool) error {
	gates, err := p.gates()
	if err != nil {
		return err
	}
	ledger, err := mirror.OpenLedger(p.ledgerPath(), p.spec.Channel)
	if err != nil {
		return err
	}
	if err := ledger.Abandon(cmp.Or(epoch, gates.Epoch(p.spec.Channel)), serial, reason, undelivered, gates, p.app.Now()); err != nil {
		return err
	}
	return p.printSerials(gates)
}

// serialsDocument is what the serial commands print.
type serialsDocument struct {
	Channel string          `json:"channel"`
	Serials []mirror.Serial `json:"serials"`
}

func (p *project) printSerials(gates *mirror.Gates) error {
	ledger, err := mirror.OpenLedger(p.ledgerPath(), p.spec.Channel)
	if err != nil {
		return err
	}
	lock, err := p.lockBefore()
	if err != nil {
		return err
	}
	doc := serialsDocument{p.spec.Channel, append([]mirror.Serial{}, ledger.Serials(lock, gates)...)}
	return p.app.Print("Serials", doc, func(w io.Writer) {
		rows := [][]string{{"SERIAL", "EPOCH", "STATE", "CREATED", "MANIFEST", "CONTENT AT", "REASON"}}
		for _, s := range doc.Serials {
			rows = append(rows, serialRow(s))
		}
		cli.Table(w, rows)
	})
}

func serialRow(s mirror.Serial) []string {
	created, manifest, held, reason := "-", "-", "-", ""
	if s.Created != nil {
		created = s.Created.String()
	}
	if s.Manifest != nil {
		manifest, held = s.Manifest.Short(), cli.Count(len(s.HeldBy), "gate")
	}
	if s.At != nil {
		reason = s.Reason + " (" + s.At.String() + ")"
	}
	return []string{fmt.Sprint(s.Serial), fmt.Sprint(s.Epoch), s.State, created, manifest, held, reason}
}
