package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// verifyAcross proves what lies across volumes of one bundle, each of which the
// gate has proven, and gives the paths of those that belong together. It warns
// of the others.
func (s *site) verifyAcross(ctx context.Context, paths []string, proven map[string]gate.Verification) (belong []string, err error) {
	first := proven[paths[0]]
	found, err := s.opener().Find(paths...)
	if err != nil {
		return paths, err
	}
	defer func() {
		for _, sealed := range found.Bundles {
			err = errors.Join(err, sealed.Close())
		}
	}()
	for _, sealed := range found.Bundles {
		rivals := sealed.Rivals()
		aside, err := choose(ctx, sealed, first.Manifest, rivals)
		if err != nil {
			return paths, bundle.Suspected(err, rivals)
		}
		belong = append(belong, slices.DeleteFunc(sealed.Paths(), func(path string) bool { return slices.Contains(aside, path) })...)
		s.warn(s.strangers(rivals, aside, isWhole(belong, proven)))
	}
	return belong, nil
}

// choose finds what to leave out of rivals so that the rest makes what was
// signed. Where nothing does, it says what is wrong with the first choice.
func choose(ctx context.Context, sealed *bundle.Sealed, manifest bundle.Digest, rivals [][][]string) (aside []string, failure error) {
	for _, aside := range bundle.Choices(rivals) {
		err := sealed.CheckPieces(ctx, manifest, aside)
		switch {
		case err == nil:
			return aside, nil
		case ctx.Err() != nil || !isPassing(err):
			return nil, err
		case failure == nil:
			failure = err
		}
	}
	return nil, failure
}

// isWhole tells whether all volumes of the set of the first one are there.
func isWhole(paths []string, proven map[string]gate.Verification) bool {
	numbers := map[int]bool{}
	first := proven[paths[0]].Volume
	for _, path := range paths {
		if v := proven[path].Volume; v.Set == first.Set {
			numbers[v.Number] = true
		}
	}
	return len(numbers) == first.Count
}

// strangers says which volumes are none of the set, as far as that can be told.
func (s *site) strangers(rivals [][][]string, aside []string, whole bool) (all []error) {
	if whole {
		for _, path := range aside {
			all = append(all, errors.New(s.say("{file} was left out: another volume with its number makes what was signed", "file", filepath.Base(path))))
		}
		return all
	}
	for _, claims := range rivals {
		var names []string
		for _, path := range slices.Concat(claims...) {
			names = append(names, filepath.Base(path))
		}
		all = append(all, errors.New(s.say("{files} claim one place; which of them is the exporter's shows when the set is whole", "files", strings.Join(names, ", "))))
	}
	return all
}
