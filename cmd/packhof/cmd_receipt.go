package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/mirror"
)

func newReceipt(p *project) *cobra.Command {
	c := &cobra.Command{Use: "receipt", Short: "Keep what gates say is there, and what they can read"}
	c.AddCommand(&cobra.Command{
		Use:   "add RECEIPT...",
		Short: "Verify receipts of gates, and keep the newest of each",
		Long: `Verify receipts that  packhof-gate receipt  wrote, by the gates' keys in the
trust root, and keep the newest of each gate in the trust folder. From them
packhof knows which formats a gate reads, and which content the cache no
longer has to keep for it.  packhof export --since  keeps its receipts too.`,
		Example: "  packhof receipt add receipt.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return p.aloneWith(func() error { return runReceiptAdd(p, args) })
		},
	}, &cobra.Command{
		Use:   "list",
		Short: "Show what is known of each gate",
		Example: `  packhof receipt list
  packhof receipt list -o json`,
		Args: cli.Needs(),
		RunE: func(*cobra.Command, []string) error { return p.withGates(p.printGates) },
	})
	return c
}

func runReceiptAdd(p *project, paths []string) error {
	gates, err := p.gates()
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := keepReceipt(gates, path); err != nil {
			return err
		}
	}
	return p.printGates(gates)
}

func keepReceipt(gates *mirror.Gates, path string) error {
	raw, err := mirror.ReadReceiptFile(path)
	if err != nil {
		return err
	}
	if _, err := gates.Keep(raw); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// withGates reads packhof.yaml and what is kept of its gates, for a command
// that only shows.
func (p *project) withGates(show func(*mirror.Gates) error) error {
	if err := p.load(); err != nil {
		return err
	}
	gates, err := p.gates()
	if err != nil {
		return err
	}
	return show(gates)
}

// gates reads the trust root, and what is kept of its gates.
func (p *project) gates() (*mirror.Gates, error) {
	folder, err := p.trust()
	if err != nil {
		return nil, err
	}
	return mirror.ReadGates(p.path(p.spec.Trust), folder, p.app.Now())
}

// gatesDocument is what the receipt commands print.
type gatesDocument struct {
	Channel string        `json:"channel"`
	Gates   []mirror.Kept `json:"gates"`
}

func (p *project) printGates(gates *mirror.Gates) error {
	doc := gatesDocument{p.spec.Channel, gates.List(p.spec.Channel)}
	return p.app.Print("Gates", doc, func(w io.Writer) {
		rows := [][]string{{"GATE", "RECEIPT", "SERIAL", "PROGRAM", "READS"}}
		for _, g := range doc.Gates {
			made, serial := "none", "-"
			if g.Receipt != nil {
				made, serial = g.Receipt.String(), fmt.Sprint(g.Serial)
			}
			rows = append(rows, []string{g.Gate, made, serial, g.Program, strings.Join(g.Reads, ", ")})
		}
		cli.Table(w, rows)
	})
}
