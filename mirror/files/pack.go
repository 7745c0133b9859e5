package files

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/mirror"
)

// hashed is a folder that was read once: its files with their digests, and the
// packs that the small ones of a large folder will travel in.
type hashed struct {
	own     []bundle.File
	inPacks []bundle.File
	packs   []bundle.Pack
}

// all are the files wherever they lie, in no order.
func (h *hashed) all() []bundle.File { return slices.Concat(h.own, h.inPacks) }

// hashTree reads every file once. Packs are hashed as they will be written;
// only their indices are kept, in the store.
func (s *Source) hashTree(ctx context.Context, kind bundle.Kind, from string, into *cas.Store) (_ *hashed, err error) {
	t, err := s.open(from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.root.Close()) }()
	found, err := t.names()
	if err != nil {
		return nil, err
	}
	own, groups := bundle.PlanPacks(kind, found)
	h := &hashed{own: make([]bundle.File, len(own)), packs: make([]bundle.Pack, len(groups))}
	titles := bundle.PackTitles(found, len(groups))
	item := s.progress.Start("hash "+from, 0)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for i, f := range own {
		group.Go(func() (err error) {
			h.own[i], err = t.hash(ctx, f.Path, item)
			return err
		})
	}
	for i, files := range groups {
		h.packs[i].Title = titles[i]
		group.Go(func() error { return t.hashPack(ctx, files, &h.packs[i], into, item) })
	}
	err = group.Wait()
	h.inPacks = slices.Concat(groups...)
	item.Done(err)
	return h, err
}

// hashPack finds out what a pack would be, and the digests of its files.
func (t *tree) hashPack(ctx context.Context, files []bundle.File, p *bundle.Pack, into *cas.Store, item mirror.Item) error {
	reader := t.reader(ctx, item)
	defer reader.close()
	sum := sha256.New()
	w := bundle.NewPackWriter(sum)
	packed := make([]bundle.PackedFile, len(files))
	for i, f := range files {
		content, err := reader.read(f.Path, f.Size)
		if err != nil {
			return err
		}
		files[i].Digest = cas.DigestOf(content)
		packed[i] = bundle.PackedFile{File: files[i], SHA512: sha512.Sum512(content)}
		if packed[i].Offset, err = w.Add(f.Path, content); err != nil {
			return err
		}
	}
	size, err := w.Close()
	if err != nil {
		return err
	}
	sum.Sum(p.Digest[:0])
	p.Size = size
	index := (&bundle.PackIndex{Pack: p.Digest, Size: p.Size, Files: packed}).Encode()
	p.IndexSize = int64(len(index))
	p.Index, err = into.PutBytes(ctx, index)
	return err
}

// fetchPacks writes the packs into the store that it does not have.
func (s *Source) fetchPacks(ctx context.Context, from string, packs []bundle.Pack, into *cas.Store) (err error) {
	var missing []bundle.Pack
	var bytes int64
	for _, p := range packs {
		there, err := into.Has(p.Digest, p.Size)
		if err != nil {
			return err
		}
		if !there {
			missing = append(missing, p)
			bytes += p.Size
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return bring(ctx, s, from, "pack", bytes, missing, func(ctx context.Context, t *tree, p bundle.Pack, item mirror.Item) error {
		return t.storePack(ctx, p, into, item)
	})
}

// storePack writes one pack while its files are read. One that is not as it was
// when the lock was made ends it.
func (t *tree) storePack(ctx context.Context, p bundle.Pack, into *cas.Store, item mirror.Item) error {
	x, err := bundle.ReadPackIndex(p, documentsIn(into))
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	var writing errgroup.Group
	writing.Go(func() error {
		err := t.writePack(ctx, x.Files, w, item)
		return errors.Join(err, w.CloseWithError(err))
	})
	err = into.Put(ctx, r, p.Digest, p.Size, p.Title)
	_ = r.CloseWithError(err) // never fails; it ends the writer where Put has ended first
	if failed := writing.Wait(); failed != nil && !errors.Is(failed, io.ErrClosedPipe) && (err == nil || !errors.Is(failed, err)) {
		return failed
	}
	return err
}

func (t *tree) writePack(ctx context.Context, files []bundle.PackedFile, into io.Writer, item mirror.Item) error {
	reader := t.reader(ctx, item)
	defer reader.close()
	w := bundle.NewPackWriter(into)
	for i := range files {
		f := &files[i]
		content, err := reader.read(f.Path, f.Size)
		if errors.Is(err, fs.ErrNotExist) {
			return t.gone(f.File)
		}
		if err != nil {
			return err
		}
		if got := cas.DigestOf(content); got != f.Digest {
			return t.changed(f.File, got, int64(len(content)))
		}
		if _, err := w.Add(f.Path, content); err != nil {
			return err
		}
	}
	_, err := w.Close()
	return err
}

// documentsIn reads the documents of a tree from the store.
func documentsIn(store *cas.Store) func(bundle.OCIDescriptor) ([]byte, error) {
	return func(d bundle.OCIDescriptor) ([]byte, error) { return store.ReadAll(d.Digest, bundle.ReadLimit(d)) }
}

// smallReader reads small files one after the other, in the order of their
// paths, and so most often from the same folder as the one before.
type smallReader struct {
	tree   *tree
	ctx    context.Context
	item   mirror.Item
	buffer []byte
	name   string   // of the folder
	folder *os.File // nil: none is open
}

func (t *tree) reader(ctx context.Context, item mirror.Item) *smallReader {
	return &smallReader{tree: t, ctx: ctx, item: item, buffer: make([]byte, bundle.PackBelow)}
}

// read gives the content of a file until the next call; size is what it was
// when it was found.
func (s *smallReader) read(name string, size int64) ([]byte, error) {
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	n, err := s.fill(name, s.buffer[:size+1])
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", name, s.tree.from, err)
	}
	if int64(n) != size {
		return nil, s.tree.resized(name, size, int64(n))
	}
	s.item.Advance(size)
	return s.buffer[:n], nil
}

// fill reads from the folder of the file before. Where that does not work, as
// with a link, which may lead elsewhere in the tree, it goes from the top.
func (s *smallReader) fill(name string, b []byte) (int, error) {
	if dir := path.Dir(name); s.folder == nil || dir != s.name {
		s.close()
		folder, err := s.tree.root.Open(filepath.FromSlash(dir)) // refuses to leave the tree
		if err != nil {
			return 0, err
		}
		s.name, s.folder = dir, folder
	}
	if n, err := readIn(s.folder, path.Base(name), b); err == nil || errors.Is(err, io.EOF) {
		return n, nil
	}
	f, err := s.tree.root.Open(filepath.FromSlash(name))
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return n, errors.Join(err, f.Close())
}

// close gives back the folder, which was only read.
func (s *smallReader) close() {
	if s.folder != nil {
		_ = s.folder.Close()
	}
	s.folder = nil
}
