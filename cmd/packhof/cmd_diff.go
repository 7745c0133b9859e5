package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cli"
)

func newDiff(p *project) *cobra.Command {
	trust, identities, all := "", []string(nil), false
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what changes from one bundle to another",
		Long: `Show which artifacts were added, updated and removed between two bundles, and
how many bytes a gate that holds OLD still needs. Both must be genuine; each is
a file, or a folder that holds the volumes of one bundle; encrypted ones are
opened with --identity.`,
		Example: `  packhof diff sent/plant-7-000041.tar sent/plant-7-000042.tar
  packhof diff --all -o json sent/plant-7-000041.tar sent/plant-7-000042.tar`,
		Args: cli.Needs("the old bundle", "the new one"),
		RunE: func(_ *cobra.Command, args []string) error {
			return runDiff(p, args[0], args[1], trust, identities, all)
		},
	}
	c.Flags().StringVar(&trust, "trust", "", "`folder` with the trust root; default: the one of packhof.yaml")
	identityFlag(c.Flags(), &identities)
	c.Flags().BoolVar(&all, "all", false, "list unchanged artifacts too")
	return c
}

// diffDocument is what "diff" prints.
type diffDocument struct {
	Old       string          `json:"old"`
	New       string          `json:"new"`
	Changes   []bundle.Change `json:"changes"`
	Unchanged int             `json:"unchanged"`
	NewBytes  int64           `json:"newBytes"`
}

func runDiff(p *project, oldPath, newPath, trust string, identities []string, all bool) error {
	opener, err := openerOf(identities)
	if err != nil {
		return err
	}
	before, err := p.genuineManifest(opener, oldPath, trust)
	if err != nil {
		return err
	}
	after, err := p.genuineManifest(opener, newPath, trust)
	if err != nil {
		return err
	}
	doc := diffDocument{Old: oldPath, New: newPath, Changes: []bundle.Change{}, NewBytes: bundle.NewBytes(before, after)}
	for _, c := range bundle.Diff(before, after) {
		if c.What == bundle.Unchanged {
			doc.Unchanged++
			if !all {
				continue
			}
		}
		doc.Changes = append(doc.Changes, c)
	}
	return p.app.Print("Diff", doc, func(w io.Writer) {
		rows := [][]string{{"CHANGE", "KIND", "NAME", "OLD", "NEW", "SIZE"}}
		for _, c := range doc.Changes {
			rows = append(rows, []string{string(c.What), string(c.Kind), c.Name, versionDigest(c.OldVersion, c.OldDigest), versionDigest(c.NewVersion, c.NewDigest), cli.Bytes(max(c.OldSize, c.NewSize))})
		}
		cli.Table(w, rows)
		fmt.Fprintf(w, "\n%d unchanged; %s new from serial %d to serial %d\n", doc.Unchanged, cli.Bytes(doc.NewBytes), before.Serial, after.Serial)
	})
}

func versionDigest(version string, d *bundle.Digest) string {
	if d == nil {
		return "-"
	}
	return version + " " + d.Short()
}

func (p *project) genuineManifest(opener bundle.Opener, path, trust string) (m *bundle.Manifest, err error) {
	folder, err := p.trustFor(trust)
	if err != nil {
		return nil, err
	}
	sealed, err := oneBundle(opener, []string{path})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sealed.Close()) }()
	b, err := p.genuine(sealed, folder)
	if err != nil {
		return nil, err
	}
	return b.Manifest(), nil
}
