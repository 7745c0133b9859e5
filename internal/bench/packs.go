package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/mirror/files"
)

// smallFiles is how many files of a few bytes the tree has.
const smallFiles = 200_000

// packs measures what becomes of very many small files: read, hashed twice and
// written into packs in the store.
func (b *bench) packs() error {
	dir := filepath.Join(b.dir, "small")
	fmt.Printf("making a folder of %d files\n", smallFiles)
	for i := range smallFiles {
		folder := filepath.Join(dir, fmt.Sprintf("part-%03d", i/1000))
		if i%1000 == 0 {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%06d.txt", i)), fmt.Appendf(nil, "line %d\n", i), 0o644); err != nil {
			return err
		}
	}
	both, err := b.inTurn(b.rounds,
		func() (run, error) { return b.tar(dir) },
		func() (run, error) { return b.packFolder(dir) })
	if err != nil {
		return err
	}
	b.results = append(b.results, both.faster(fmt.Sprintf("speed of packing a folder of %d small files, hashed and synced", smallFiles),
		"GNU tar of the same folder, synced", 0.5))
	return os.RemoveAll(dir)
}

func (b *bench) tar(dir string) (run, error) {
	archive := filepath.Join(b.dir, "small.tar")
	settle()
	r, err := b.command(dir, "sh", "-c", `tar -cf "$1" . && sync "$1"`, "sh", archive)
	return r, errors.Join(err, os.Remove(archive))
}

// packFolder builds the packs of a folder that has been pinned before.
func (b *bench) packFolder(dir string) (run, error) {
	store, err := cas.OpenStore(filepath.Join(b.dir, "small-store"))
	if err != nil {
		return run{}, err
	}
	s, err := files.New(b.dir, nil, silent{})
	if err != nil {
		return run{}, err
	}
	want := mirror.Request{Kind: bundle.Dataset, Name: "small", Version: "1", From: filepath.Base(dir)}
	pinned, err := s.Resolve(b.ctx, want, store)
	if err != nil {
		return run{}, err
	}
	settle()
	begun := time.Now()
	if err := s.Fetch(b.ctx, pinned, store); err != nil {
		return run{}, err
	}
	return run{took: time.Since(begun)}, os.RemoveAll(store.Dir())
}

// silent is a Progress that nobody watches.
type silent struct{}

func (silent) Start(string, int64) mirror.Item { return silent{} }
func (silent) Advance(int64)                   {}
func (silent) Done(error)                      {}
