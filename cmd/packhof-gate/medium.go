package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

// volumeAt is a volume on a medium, as another process can open it.
type volumeAt struct {
	path string
	mark string // tells this file from another one that takes its name later
}

// found is what lies at the places that a person names.
type found struct {
	volumes []volumeAt // of one bundle
	damaged []error    // volumes that cannot be read
	locked  []error    // encrypted files that are for others, or look so
	passed  []string   // files that are called as volumes are, and are none
}

// lying is what lies at such places, whatever bundle it belongs to.
type lying struct {
	bundles         []bundleAt // by channel, the oldest serial first
	damaged, locked []error
	passed          []string
}

// nothingThere marks the error that a medium is not there, or holds no bundle.
type nothingThere struct{ error }

func (n nothingThere) Unwrap() error { return n.error }

func isNothing(err error) bool {
	var nothing nothingThere
	return errors.As(err, &nothing)
}

// sayable refuses a path that cannot be told to the gate: its API is JSON, and
// speaks UTF-8.
func sayable(path string) error {
	if utf8.ValidString(path) {
		return nil
	}
	return problem.New("receive/path", "the path %+q is not UTF-8", path).Hint("mount the medium with iocharset=utf8, or copy the file to a name of plain letters")
}

// bundleAt is a bundle of which volumes lie on a medium. What it says of itself
// is proven by nobody yet.
type bundleAt struct {
	manifest      string
	name          string // of a file
	channel       string
	epoch, serial int64
	volumes       []volumeAt
}

// opener opens encrypted volumes with the gate's key, where there is a gate and
// this is somebody who may read it.
func (s *site) opener() bundle.Opener {
	if _, err := os.Stat(filepath.Join(s.dir, "enrol.json")); err != nil {
		return bundle.Opener{}
	}
	return gate.Opener(s.dir)
}

// bundlesAt finds the bundles that lie at files and folders, and the files that
// cannot be read.
func (s *site) bundlesAt(names []string) (l lying, err error) {
	paths, err := placesOf(names)
	if err != nil {
		return l, err
	}
	on, err := s.opener().Find(paths...)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nothingThere{err}
	}
	if err != nil {
		return l, err
	}
	defer func() {
		for _, sealed := range on.Bundles {
			err = errors.Join(err, sealed.Close())
		}
	}()
	l.damaged, l.locked, l.passed = on.Damaged, on.Locked, on.Passed
	for _, sealed := range on.Bundles {
		b, err := bundleOf(sealed)
		if err != nil {
			return l, err
		}
		l.bundles = append(l.bundles, b)
	}
	slices.SortStableFunc(l.bundles, func(a, b bundleAt) int {
		return cmp.Or(cmp.Compare(a.channel, b.channel), cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.serial, b.serial))
	})
	return l, nil
}

// placesOf gives the paths that names stand for, as another process can open
// them.
func placesOf(names []string) (paths []string, err error) {
	for _, name := range passOver(names) {
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		if err := sayable(path); err != nil {
			return nil, err
		}
		if err := besideTheBundle(path); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func bundleOf(s *bundle.Sealed) (bundleAt, error) {
	b := bundleAt{manifest: manifestOf(s), name: s.Name()}
	if claims, err := s.Claims(); err == nil { // otherwise the gate refuses it, and says why
		b.channel, b.epoch, b.serial = claims.Channel, claims.Epoch, claims.Serial
	}
	for _, path := range s.Paths() {
		if err := sayable(path); err != nil {
			return b, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return b, err
		}
		b.volumes = append(b.volumes, volumeAt{path: path, mark: markOf(path, info)})
	}
	return b, nil
}

// volumesAt finds the volumes of the one bundle that lies at files and folders;
// of a certain one, if its manifest is given.
func (s *site) volumesAt(names []string, manifest string) (f found, err error) {
	on, err := s.bundlesAt(names)
	if err != nil {
		return f, err
	}
	return on.volumesOf(names, manifest)
}

// volumesOf are those of the one bundle that lies there.
func (on lying) volumesOf(names []string, manifest string) (f found, err error) {
	f.damaged, f.locked, f.passed = on.damaged, on.locked, on.passed
	meant := slices.DeleteFunc(slices.Clone(on.bundles), func(b bundleAt) bool { return manifest != "" && b.manifest != manifest })
	switch len(meant) {
	case 0:
		return f, noBundle(names, on)
	case 1:
		f.volumes = meant[0].volumes
		return f, nil
	}
	return f, severalBundles(names, meant)
}

// noBundle says that nothing lies there that can be taken in, or why not.
func noBundle(names []string, on lying) error {
	if all := slices.Concat(on.damaged, on.locked); len(all) > 0 {
		return problem.Some(all)
	}
	return nothingThere{problem.New("receive/no-bundle", "%s holds no bundle", strings.Join(names, ", ")).With(bundle.PassedOver(on.passed)...).Hint("name the file that ends in .tar or .age, or the folder that it lies in")}
}

func manifestOf(s *bundle.Sealed) string {
	head := s.Head()
	return head.Digest().String()
}

// passOver leaves out, of several names, those of the files that lie beside a
// bundle: whoever names all files of a folder means the bundle.
func passOver(names []string) []string {
	rest := slices.DeleteFunc(slices.Clone(names), bundle.LiesBeside)
	if len(rest) == 0 {
		return names
	}
	return rest
}

func severalBundles(names []string, bundles []bundleAt) error {
	p := problem.New("receive/several", "%s holds %d bundles", strings.Join(names, ", "), len(bundles)).Hint("name the files of one of them")
	var lines []string
	for _, b := range bundles {
		lines = append(lines, "found:  "+b.name)
	}
	return p.With(problem.SomeOf(lines)...)
}

// markOf tells a file from another one of its name on another medium.
func markOf(path string, info fs.FileInfo) string {
	mark := fmt.Sprintf("%s %d %d", path, info.Size(), info.ModTime().UnixNano())
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		mark += fmt.Sprintf(" %d %d", stat.Dev, stat.Ino)
	}
	return mark
}

// bundleIn finds the first volume of the one bundle that a path means, as
// another process can open it.
func (s *site) bundleIn(name string) (string, error) {
	f, err := s.volumesAt([]string{name}, "")
	if err != nil || len(f.volumes) == 0 {
		return "", err
	}
	return f.volumes[0].path, nil
}

// besideTheBundle refuses the small file that export puts beside a bundle, a
// copy of its manifest, and says which file is the bundle.
func besideTheBundle(path string) error {
	name, ok := strings.CutSuffix(path, ".json")
	if !ok {
		return nil
	}
	whole := strings.TrimSuffix(name, ".packhof") + ".tar"
	wrong := problem.New("receive/no-bundle", "%s is not the bundle", path)
	if _, err := os.Stat(whole); err != nil {
		return wrong.With("looked for:  " + whole).Hint("name the file that ends in .tar or .age")
	}
	return wrong.With("bundle:  "+whole).Hint("name the bundle:  %s", whole)
}
