package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cli"
)

// choice leaves out volumes that claim the place of others, so that those are
// taken in alone: of two pieces the gate keeps the one that came first.
type choice struct {
	among string // the volumes that there are
	tried int
	aside map[string]string // names of those that are left out, by mark
}

// next makes another choice among rivals, by path and mark; false when all have
// been tried.
func (c *choice) next(rivals [][][]string, marks map[string]string) bool {
	choices := bundle.Choices(rivals)
	if c.tried++; c.tried >= len(choices) {
		return false
	}
	c.aside = map[string]string{}
	for _, path := range choices[c.tried] { // the first choice was the first of each
		c.aside[marks[path]] = filepath.Base(path)
	}
	return true
}

// rivalsAt are the volumes there that cannot all be from the exporter.
func (s *site) rivalsAt(paths []string) (rivals [][][]string, err error) {
	found, err := s.opener().Find(paths...)
	if err != nil {
		return nil, err
	}
	for _, sealed := range found.Bundles {
		rivals = append(rivals, sealed.Rivals()...)
		err = errors.Join(err, sealed.Close())
	}
	return rivals, err
}

// chooses has all volumes taken in once more without some, after their pieces
// put together were wrong, where several claim one place: one of those is none
// of the exporter's. Where no choice is left it gives the failure, which then
// names those volumes.
func (r *receiver) chooses(failure error, there []volumeAt) (bool, error) {
	if cli.CodeOf(failure) != codePiecesWrong {
		return false, failure
	}
	marks, paths := map[string]string{}, []string{}
	for _, v := range there {
		marks[v.path] = v.mark
		paths = append(paths, v.path)
	}
	rivals, err := r.site.rivalsAt(paths)
	if err != nil {
		return false, failure // whoever takes them in is told why
	}
	if among := strings.Join(paths, "\n"); among != r.choice.among {
		r.choice = choice{among: among}
	}
	if !r.choice.next(rivals, marks) {
		return false, bundle.Suspected(failure, rivals)
	}
	clear(r.done)
	return true, nil
}

// strangers warns of the volumes without which the bundle is whole.
func (r *receiver) strangers() {
	var all []error
	for _, name := range r.choice.aside {
		all = append(all, errors.New(r.site.say("{file} was left out: another volume with its number makes what was signed", "file", name)))
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	r.site.warn(all)
}
