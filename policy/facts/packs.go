package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/sbom/inspect"
)

// packedFilesOf visits the files of a tree that lie in packs.
func packedFilesOf(ctx context.Context, b *bundle.Bundle, root bundle.Descriptor, visit func(file) error) (why string, err error) {
	// Packs are known when all is read, files as they come: each is told of
	// its pack by reference.
	packs := map[bundle.Digest]*bundle.Pack{}
	var failed error // of visit
	list, err := bundle.EachTreeFile(root, b.Document, func(f bundle.TreeFile) error {
		if !f.Packed() {
			return nil
		}
		if packs[f.Pack] == nil {
			packs[f.Pack] = &bundle.Pack{Digest: f.Pack}
		}
		failed = cmp.Or(context.Cause(ctx), failed)
		if failed == nil {
			failed = visit(file{path: f.Path, digest: f.Digest, size: f.Size, in: packs[f.Pack], offset: f.Offset})
		}
		return failed
	})
	if failed != nil {
		return "", failed
	}
	if err != nil {
		return "its packs and their indices do not fit, or cannot be read", nil
	}
	for _, p := range list {
		if packs[p.Digest] != nil {
			*packs[p.Digest] = p
		}
	}
	return "", nil
}

// mostListed is how many files of an artifact are stated one by one before
// those in packs that there is nothing to say about are only counted.
const mostListed = 20_000

// mayCount tells whether a file need not be stated by itself, after so many
// that were. Of models each file counts, whatever it is.
func (f file) mayCount(a *bundle.Artifact, stated int) bool {
	return f.in != nil && stated >= mostListed && (a.Kind == bundle.Dataset || a.Kind == bundle.Files)
}

// unremarkable tells whether there is nothing to say about a file but what a
// count says. Rules look for pickles by format as well.
func unremarkable(f policy.InspectedFile) bool {
	isPickle := f.Format == string(inspect.Pickle) || f.Format == string(inspect.TorchZip)
	return f.Format != "" && !isPickle && !f.Mismatch && !f.Unreadable && len(f.Findings) == 0
}

// counter counts files by format and ending.
type counter map[[2]string]*policy.CountedFiles

var ending = regexp.MustCompile(`^\.[A-Za-z0-9_+-]{1,15}$`)

func (c counter) add(f policy.InspectedFile, m *meter) error {
	end := strings.ToLower(path.Ext(f.Path))
	if !ending.MatchString(end) {
		end = ""
	}
	group := c[[2]string{f.Format, end}]
	if group == nil {
		group = &policy.CountedFiles{Format: f.Format, Ending: end}
		c[[2]string{f.Format, end}] = group
		if err := m.add(group); err != nil {
			return err
		}
	}
	group.Files++
	group.Bytes += f.Size
	return nil
}

func (c counter) sorted() []policy.CountedFiles {
	all := []policy.CountedFiles{}
	for _, group := range c {
		all = append(all, *group)
	}
	slices.SortFunc(all, func(a, b policy.CountedFiles) int {
		return cmp.Or(strings.Compare(a.Format, b.Format), strings.Compare(a.Ending, b.Ending))
	})
	return all
}

// looker looks into files one after the other. A pack stays open as long as
// files of it come.
type looker struct {
	ctx    context.Context
	bundle *bundle.Bundle
	open   Opener
	limits inspect.Limits
	pack   bundle.Digest
	opened ReadAtCloser
}

func (l *looker) into(f file) (report inspect.Report, err error) {
	if f.in != nil {
		if err := l.enter(f.in); err != nil {
			return report, err
		}
		return inspect.File(l.ctx, io.NewSectionReader(l.opened, f.offset, f.size), f.size, f.path, l.limits)
	}
	r, err := l.openWhole(f.digest, f.size)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return inspect.File(l.ctx, r, f.size, f.path, l.limits)
}

func (l *looker) openWhole(d bundle.Digest, want int64) (ReadAtCloser, error) {
	r, size, err := l.open(d)
	if err != nil {
		return nil, err
	}
	if size == want {
		return r, nil
	}
	err = problem.New("facts/wrong-size", "the content %s in the store is not as large as the manifest says", d).
		With(fmt.Sprintf("want:  %d bytes", want), fmt.Sprintf("got:   %d bytes", size)).Hint("receive the bundle again")
	return nil, errors.Join(err, r.Close())
}

// enter opens a pack and makes sure that it is what its index says.
func (l *looker) enter(p *bundle.Pack) error {
	if l.opened != nil && l.pack == p.Digest {
		return nil
	}
	if err := l.close(); err != nil {
		return err
	}
	index, err := bundle.ReadPackIndex(*p, l.bundle.Document)
	if err != nil {
		return err
	}
	r, err := l.openWhole(p.Digest, p.Size)
	if err != nil {
		return err
	}
	l.pack, l.opened = p.Digest, r
	return bundle.CheckPack(l.ctx, r, index)
}

func (l *looker) close() error {
	if l.opened == nil {
		return nil
	}
	err := l.opened.Close()
	l.opened = nil
	return err
}
