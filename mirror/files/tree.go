package files

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/mirror"
)

const maxFiles = bundle.MaxEntries - 10_000 // and the manifests that list them

// tree is an opened folder, or a single file seen as a folder with one file.
type tree struct {
	root *os.Root
	only string // name of the one file; empty for a folder
	from string // as people wrote it, for messages
}

func (s *Source) open(from string) (*tree, error) {
	path := from
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.base, path)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New("source/not-found", "there is no %s", from).Hint("correct the path in packhof.yaml; it starts from the folder of that file")
	}
	if err != nil {
		return nil, err
	}
	t := &tree{from: from}
	if !info.IsDir() {
		path, t.only = filepath.Split(path)
	}
	t.root, err = os.OpenRoot(filepath.Clean(path)) // Split leaves "" for the folder we are in
	return t, err
}

// names lists the regular files below the folder, with slashes, and their sizes.
func (t *tree) names() ([]bundle.File, error) {
	if t.only != "" {
		info, err := t.root.Lstat(t.only)
		if err != nil {
			return nil, err
		}
		size, err := t.checkRegular(t.only, fs.FileInfoToDirEntry(info))
		return []bundle.File{{Path: t.only, Size: size}}, err
	}
	var names []bundle.File
	err := fs.WalkDir(t.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name == "." {
			return nil
		}
		if d.IsDir() {
			return bundle.CheckPath(name)
		}
		if len(names) == maxFiles {
			return problem.New("artifact/too-many-files", "%s has more than %d files", t.from, maxFiles).Hint("split the tree into several artifacts")
		}
		size, err := t.checkRegular(name, d)
		names = append(names, bundle.File{Path: name, Size: size})
		return err
	})
	if err == nil && len(names) == 0 {
		err = problem.New("artifact/empty", "%s has no files", t.from)
	}
	return names, err
}

// checkRegular takes regular files, and links to regular files of the same
// folder; everything else has no content that could travel. It gives the size.
func (t *tree) checkRegular(name string, d fs.DirEntry) (int64, error) {
	info, err := d.Info()
	if err == nil && d.Type()&fs.ModeSymlink != 0 {
		info, err = t.root.Stat(filepath.FromSlash(name)) // refuses to leave the folder
	}
	if err != nil {
		return 0, problem.New("source/unreadable", "%s in %s cannot be read: %w", name, t.from, err).
			Hint("remove it, or replace the link by the file it points to")
	}
	if !info.Mode().IsRegular() {
		return 0, problem.New("source/not-a-file", "%s in %s is neither a file nor a folder", name, t.from).
			With("found:  " + info.Mode().String()).Hint("remove it, or replace the link by the file it points to")
	}
	return info.Size(), bundle.CheckPath(name)
}

func (t *tree) hash(ctx context.Context, name string, item mirror.Item) (bundle.File, error) {
	f, err := t.root.Open(filepath.FromSlash(name))
	if err != nil {
		return bundle.File{}, fmt.Errorf("read %s in %s: %w", name, t.from, err)
	}
	h := sha256.New()
	size, err := t.copySteady(h, &watched{ctx: ctx, r: f, item: item}, f, name)
	if err = errors.Join(err, f.Close()); err != nil {
		return bundle.File{}, err
	}
	return bundle.File{Path: name, Size: size, Digest: cas.Digest(h.Sum(nil))}, nil
}

// copySteady copies a file that nobody writes to meanwhile: of one that grows
// there might be no end. It looks one byte further than the size that the file
// has, since some files say that they have none.
func (t *tree) copySteady(w io.Writer, r io.Reader, f *os.File, name string) (int64, error) {
	before, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("read %s in %s: %w", name, t.from, err)
	}
	size, err := io.CopyBuffer(w, io.LimitReader(r, before.Size()+1), make([]byte, 256<<10))
	if err != nil {
		return size, fmt.Errorf("read %s in %s: %w", name, t.from, err)
	}
	after, err := f.Stat()
	if err != nil {
		return size, fmt.Errorf("read %s in %s: %w", name, t.from, err)
	}
	if size == before.Size() && after.Size() == before.Size() && after.ModTime().Equal(before.ModTime()) {
		return size, nil
	}
	return size, problem.New("source/changing", "%s in %s changes while it is read", name, t.from).
		With(fmt.Sprintf("before:  %d bytes", before.Size()), fmt.Sprintf("now:     %d bytes", after.Size())).
		Hint("stop what writes to it, and run the same command again")
}

// watched is a reader that ends with its context and tells of its progress.
type watched struct {
	ctx  context.Context
	r    io.Reader
	item mirror.Item
}

func (w *watched) Read(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	n, err := w.r.Read(p)
	w.item.Advance(int64(n))
	return n, err
}

// fetchTree brings the files into the store that it does not have.
func (s *Source) fetchTree(ctx context.Context, from string, files []bundle.File, into *cas.Store) (err error) {
	var missing []bundle.File
	var bytes int64
	queued := map[cas.Digest]bool{}
	for _, f := range files {
		ok, err := into.Has(f.Digest, f.Size)
		if err != nil {
			return err
		}
		if !ok && !queued[f.Digest] {
			queued[f.Digest] = true
			missing = append(missing, f)
			bytes += f.Size
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return bring(ctx, s, from, "read", bytes, missing, func(ctx context.Context, t *tree, f bundle.File, item mirror.Item) error {
		return t.store(ctx, f, into, item)
	})
}

// bring opens a tree and does with each part of it, on all cores, what brings it
// into the store; verb and bytes are for the progress.
func bring[T any](ctx context.Context, s *Source, from, verb string, bytes int64, parts []T, do func(context.Context, *tree, T, mirror.Item) error) (err error) {
	t, err := s.open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.root.Close()) }()
	item := s.progress.Start(verb+" "+from, bytes)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for _, part := range parts {
		group.Go(func() error { return do(ctx, t, part, item) })
	}
	err = group.Wait()
	item.Done(err)
	return err
}

// store copies one file into the store. Its SHA-512, for the SBOM, is
// computed in the same pass.
func (t *tree) store(ctx context.Context, want bundle.File, into *cas.Store, item mirror.Item) error {
	f, err := t.root.Open(filepath.FromSlash(want.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return t.gone(want)
	}
	if err != nil {
		return fmt.Errorf("read %s in %s: %w", want.Path, t.from, err)
	}
	sum := sha512.New()
	err = into.Put(ctx, &watched{ctx: ctx, r: f, item: item}, want.Digest, want.Size, want.Path, sum)
	err = errors.Join(err, f.Close())
	var corrupt *cas.CorruptError
	if errors.As(err, &corrupt) {
		return t.changed(want, corrupt.Got, corrupt.GotSize)
	}
	if err != nil {
		return err
	}
	return into.SetNote(mirror.NoteSHA512, want.Digest, []byte(hex.EncodeToString(sum.Sum(nil))))
}

func (t *tree) gone(want bundle.File) error {
	return problem.New("source/moved", "%s in %s is gone since the lock was made", want.Path, t.from).
		With("locked:  " + want.Digest.String()).Hint("packhof plan")
}

func (t *tree) changed(want bundle.File, got cas.Digest, gotSize int64) error {
	return problem.New("source/moved", "%s in %s has changed since the lock was made", want.Path, t.from).
		With(fmt.Sprintf("locked:  %s, %d bytes", want.Digest, want.Size), fmt.Sprintf("now:     %s, %d bytes or more", got, gotSize)).
		Hint("packhof plan")
}

// resized is a small file that has another size than before.
func (t *tree) resized(name string, before, now int64) error {
	return problem.New("source/moved", "%s in %s has changed since it was found", name, t.from).
		With(fmt.Sprintf("before:  %d bytes", before), fmt.Sprintf("now:     %d bytes or more", now)).Hint("packhof plan")
}
