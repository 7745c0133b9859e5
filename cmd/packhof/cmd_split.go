package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// reshipOptions are those of split and join.
type reshipOptions struct {
	to         string
	size       string // of the volumes; empty for one
	trust      string
	dryRun     bool
	noReadback bool
	encrypt    encryptOptions
	identities []string // files
}

func (o *reshipOptions) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.to, "to", ".", "`folder` to write to")
	c.Flags().StringVar(&o.trust, "trust", "", "`folder` with the trust root, for signatures that differ")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what would be written, and write nothing")
	c.Flags().BoolVar(&o.noReadback, "no-readback", false, "do not read the volumes back from the medium")
	o.encrypt.flags(c.Flags())
	identityFlag(c.Flags(), &o.identities)
}

func newSplit(p *project) *cobra.Command {
	var o reshipOptions
	c := &cobra.Command{
		Use:   "split BUNDLE...",
		Short: "Write a bundle as volumes that fit on smaller media",
		Long: `Write what a bundle holds as a set of volumes, each at most as large as asked
for. Its signatures stay valid, those that lie beside it are folded in. Every
volume can be checked and received alone, in any order. Sizes are as for
packhof export --volume-size. With --encrypt or --encrypt-to they are written
encrypted; volumes that came encrypted are opened with --identity.`,
		Example: `  packhof split --volume-size fat32 --to /media/usb out/plant-7-000042.tar
  packhof split --volume-size 4GiB,16GiB --dry-run out/plant-7-000042.tar`,
		Args: cli.NeedsSome("the bundle"),
		RunE: func(c *cobra.Command, args []string) error {
			if o.size == "" {
				return problem.New("usage", "split needs the largest size of a volume").Hint("packhof split --volume-size fat32 %s", args[0])
			}
			return runReship(p, c.Context(), args, o)
		},
	}
	c.Flags().StringVar(&o.size, "volume-size", "", "largest `size` of each volume: 4GiB-1, fat32, dvd, or a list")
	o.flags(c)
	return c
}

func newJoin(p *project) *cobra.Command {
	var o reshipOptions
	c := &cobra.Command{
		Use:   "join VOLUME|FOLDER...",
		Short: "Write the volumes of a bundle as one file",
		Long: `Write what the volumes of a bundle hold as one file. They may have any names
and lie in several folders. Signatures that lie beside them are folded in. With
--encrypt or --encrypt-to the file is written encrypted; volumes that came
encrypted are opened with --identity.`,
		Example: `  packhof join --to out /media/usb
  packhof join --encrypt --to /media/usb out/plant-7-000042.tar
  packhof join stick-1/plant-7-000042.v0001.tar stick-2/plant-7-000042.v0002.tar`,
		Args: cli.NeedsSome("the volumes, or the folder that they are in"),
		RunE: func(c *cobra.Command, args []string) error { return runReship(p, c.Context(), args, o) },
	}
	o.flags(c)
	return c
}

// reshipDocument is what split and join print.
type reshipDocument struct {
	Manifest bundle.Digest    `json:"manifest"`
	Set      bundle.Digest    `json:"set"`
	Complete bool             `json:"complete"` // the set brings all content of the bundle
	Volumes  []bundle.Written `json:"volumes"`
	DryRun   bool             `json:"dryRun"`
}

func runReship(p *project, ctx context.Context, paths []string, o reshipOptions) (err error) {
	limits, err := volumeSizes(o.size)
	if err != nil {
		return err
	}
	if info, err := os.Stat(o.to); err != nil || !info.IsDir() {
		return problem.New("usage", "%s is not a folder to write to", o.to).Hint("mount the medium there, or make the folder: mkdir %s", o.to)
	}
	opener, err := openerOf(o.identities)
	if err != nil {
		return err
	}
	sealed, err := oneBundle(opener, paths)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sealed.Close()) }()
	recipients, err := o.encrypt.recipients(p, sealed)
	if err != nil {
		return err
	}
	root, err := p.rootFor(sealed, o.trust)
	if err != nil {
		return err
	}
	set, content, err := sealed.Reship(limits, root, recipients...)
	if err != nil {
		return err
	}
	doc := reshipDocument{Manifest: set.Manifest(), Set: set.ID(), Complete: set.IsComplete(), DryRun: o.dryRun}
	if o.dryRun {
		doc.Volumes = plannedVolumes(set, o.to)
	} else {
		progress := p.app.Progress()
		doc.Volumes, err = set.WriteTo(ctx, o.to, content, bundle.SetWriteOptions{NoReadback: o.noReadback, Begin: shown{progress}.volume})
		progress.Close()
	}
	if err != nil {
		return err
	}
	return p.app.Print("VolumeSet", doc, doc.table)
}

// rootFor is the trust root that chooses between signatures beside volumes:
// none where there is no choice, or nobody to trust.
func (p *project) rootFor(sealed *bundle.Sealed, trust string) (*signing.Root, error) {
	if !sealed.IsAmbiguous() {
		return nil, nil
	}
	folder, err := p.trustFor(trust)
	if trust == "" && cli.CodeOf(err) == "trust/missing" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known, err := sealed.Trust(folder.Trust, p.app.Now())
	if err != nil {
		return nil, err
	}
	return known.Root(), nil
}

// leastVolume is the smallest size of volumes that can be asked for: less has
// hardly any room beside what every volume begins with.
const leastVolume = 64 << 10

// volumeSizes reads the flag --volume-size; none stands for one volume of any
// size.
func volumeSizes(text string) ([]int64, error) {
	if text == "" {
		return nil, nil
	}
	sizes, err := bundle.ParseVolumeSizes(text)
	if err != nil {
		return nil, err
	}
	for _, n := range sizes {
		if n < leastVolume {
			return nil, problem.New("volume/too-small", "volumes of %d bytes are too small: nearly all of each would be what every volume begins with", n).
				With(fmt.Sprintf("at least:  %d bytes", leastVolume)).Hint("choose larger volumes with --volume-size")
		}
	}
	return sizes, nil
}

// oneBundle finds the one bundle whose volumes lie at the paths. Where one of
// them is damaged in its head, nobody knows which bundle it belongs to, and so
// what is lacking without it: that is an error.
func oneBundle(opener bundle.Opener, paths []string) (*bundle.Sealed, error) {
	sealed, damage, _, err := bundleAt(opener, paths)
	if err != nil || damage == nil {
		return sealed, err
	}
	return nil, errors.Join(damage, sealed.Close())
}

// bundleAt is oneBundle for somebody who goes on with the volumes that are
// sound, and tells of the damage afterwards.
func bundleAt(opener bundle.Opener, paths []string) (sealed *bundle.Sealed, damage error, passed []string, err error) {
	found, err := opener.Find(slices.DeleteFunc(slices.Clone(paths), bundle.LiesBeside)...)
	if err != nil {
		return nil, nil, nil, err
	}
	damage = problem.Some(found.Damaged)
	switch {
	case len(found.Bundles) == 1:
		return found.Bundles[0], damage, found.Passed, nil
	case len(found.Bundles) == 0 && damage != nil:
		return nil, nil, nil, damage
	case len(found.Bundles) == 0 && len(found.Locked) > 0:
		return nil, nil, nil, problem.Some(found.Locked)
	case len(found.Bundles) == 0:
		return nil, nil, nil, problem.New("volume/none", "there is no bundle in %s", strings.Join(paths, ", ")).With(bundle.PassedOver(found.Passed)...).
			Hint("a bundle is a file such as plant-7-000042.tar, written by  packhof export")
	}
	p := problem.New("volume/several", "there are %d bundles in %s", len(found.Bundles), strings.Join(paths, ", ")).Hint("name the volumes of one of them")
	var names []string
	var closed []error
	for _, s := range found.Bundles {
		names = append(names, "found:  "+s.Name())
		closed = append(closed, s.Close())
	}
	return nil, nil, nil, errors.Join(p.With(problem.SomeOf(names)...), errors.Join(closed...))
}

// damageOf is what is wrong with the volumes as files. Somebody who only looks at
// the head is told of it, too.
func damageOf(opener bundle.Opener, s *bundle.Sealed) error {
	var damage []error
	for _, path := range s.Paths() {
		again, err := opener.OpenFile(path)
		if again != nil {
			err = errors.Join(err, again.Close())
		}
		if err != nil {
			damage = append(damage, err)
		}
	}
	return problem.Some(damage)
}

func plannedVolumes(set *bundle.SetPlan, dir string) []bundle.Written {
	volumes := []bundle.Written{}
	for i, path := range set.Paths(dir) {
		volumes = append(volumes, bundle.Written{Path: path, Size: set.VolumeSize(i + 1)})
	}
	return volumes
}

func (d reshipDocument) table(w io.Writer) {
	verb := "wrote"
	if d.DryRun {
		verb = "would write"
	}
	for _, v := range d.Volumes {
		fmt.Fprintf(w, "%s %s  (%s)\n", verb, v.Path, cli.Bytes(v.Size))
	}
	fmt.Fprintf(w, "set %s of the bundle %s\n", d.Set.Short(), d.Manifest)
	if !d.Complete {
		fmt.Fprintln(w, "the set brings a part of the content, as what it was made of did")
	}
	if d.DryRun {
		fmt.Fprintln(w, "dry run: nothing was written")
	}
}
