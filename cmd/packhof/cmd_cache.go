package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/mirror"
)

func newCache(p *project) *cobra.Command {
	c := &cobra.Command{Use: "cache", Short: "Show what the store keeps, and free what it need not"}
	dryRun := false
	prune := &cobra.Command{
		Use:   "prune",
		Short: "Remove content that every gate has acknowledged",
		Long: `Remove from the store the content of sealed serials that every gate of their
audience has by its newest kept receipt (packhof receipt add). Manifests,
metadata, what packhof.lock needs, and what other projects with the same
store have sealed always stay. Content that is needed again is fetched again.`,
		Example: `  packhof cache prune --dry-run
  packhof cache prune`,
		Args: cli.Needs(),
		RunE: func(c *cobra.Command, _ []string) error { return runCache(p, c.Context(), !dryRun) },
	}
	prune.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	c.AddCommand(&cobra.Command{
		Use:     "show",
		Short:   "Show how much the store keeps, and what for",
		Example: "  packhof cache show",
		Args:    cli.Needs(),
		RunE:    func(c *cobra.Command, _ []string) error { return runCache(p, c.Context(), false) },
	}, prune)
	return c
}

// cacheDocument is what the cache commands print.
type cacheDocument struct {
	Store  string `json:"store"`
	Pruned bool   `json:"pruned"` // what can go is gone
	*mirror.Cache
}

func runCache(p *project, ctx context.Context, prune bool) (err error) {
	if err := p.load(); err != nil {
		return err
	}
	store, release, err := p.openStore()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	found, err := p.survey(store)
	if err != nil {
		return err
	}
	if prune {
		if err := found.Prune(ctx, store); err != nil {
			return err
		}
	}
	doc := cacheDocument{store.Dir(), prune, found}
	return p.app.Print("Cache", doc, doc.table)
}

func (p *project) survey(store *cas.Store) (*mirror.Cache, error) {
	gates, err := p.gates()
	if err != nil {
		return nil, err
	}
	ledger, err := mirror.OpenLedger(p.ledgerPath(), p.spec.Channel)
	if err != nil {
		return nil, err
	}
	lock, err := p.lockBefore()
	if err != nil {
		return nil, err
	}
	return mirror.Survey(store, ledger, gates, lock)
}

func (d *cacheDocument) table(w io.Writer) {
	line := func(why string, a mirror.Amount) []string {
		return []string{cli.Count(a.Blobs, "blob"), cli.Bytes(a.Bytes), why}
	}
	cli.Table(w, [][]string{
		{"KEPT", "SIZE", "FOR"},
		line("sealed serials: manifests and metadata", d.Metadata),
		line("packhof.lock", d.Locked),
		line("gates that have not acknowledged it", d.Awaited),
		line("other uses: locks, scans, earlier plans", d.Others),
	})
	verb := "can be freed; next:  packhof cache prune"
	if d.Pruned {
		verb = "freed"
	}
	fmt.Fprintf(w, "\n%s, %s: %s\n", cli.Count(d.Free.Blobs, "blob"), cli.Bytes(d.Free.Bytes), verb)
}
