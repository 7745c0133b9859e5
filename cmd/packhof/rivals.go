package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
)

// proven proves every byte of a bundle. Of volumes that claim one place in their
// set it finds those that make what was signed, and gives the bundle without the
// others, whose paths are aside.
func (p *project) proven(ctx context.Context, b *bundle.Bundle, rivals [][][]string, name string, jobs int) (sound *bundle.Bundle, aside []string, failure error) {
	for _, aside := range bundle.Choices(rivals) {
		chosen := b.Without(aside)
		progress := p.app.Progress()
		item := progress.Start("verify "+name, chosen.Manifest().Totals.Bytes-lacking(chosen))
		err := chosen.CheckOn(ctx, jobs, item.Advance)
		item.Done(err)
		progress.Close()
		switch {
		case err == nil:
			return chosen, aside, nil
		case ctx.Err() != nil:
			return b, nil, err
		case failure == nil:
			failure = err
		}
	}
	return b, nil, bundle.Suspected(failure, rivals)
}

// warnOfRivals says which volumes are none of the set, as far as that can be
// told: that takes all of it.
func (p *project) warnOfRivals(rivals [][][]string, aside []string, whole bool) {
	if whole {
		for _, path := range aside {
			p.warn(fmt.Sprintf("%s was left out: another volume with its number makes what was signed", filepath.Base(path)), nil)
		}
		return
	}
	for _, claims := range rivals {
		var names []string
		for _, path := range slices.Concat(claims...) {
			names = append(names, filepath.Base(path))
		}
		p.warn(fmt.Sprintf("%s claim one place; which of them is the exporter's shows when the set is whole", strings.Join(names, ", ")), nil)
	}
}

// placesHeld counts the volumes of sets that are here; a copy counts for nothing.
func placesHeld(sets []setState) (n int) {
	for _, s := range sets {
		n += s.Count - len(s.Missing)
	}
	return n
}
