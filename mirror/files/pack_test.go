package files_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/mirror/files"
	"github.com/packhof/packhof/mirror/sourcetest"
)

// smallFiles makes a folder of 600 small files, a large one, and one whose path
// no pack can have. It gives what is in it.
func smallFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{
		"large.bin":          string(make([]byte, bundle.PackBelow)),
		"almost.bin":         string(make([]byte, bundle.PackBelow-1)),
		"empty":              "",
		longName(101):        "no pack has room for its name",
		"a/" + longName(101): "nor for this one",
	}
	for i := range 600 {
		tree[fmt.Sprintf("deep/%s/%02d/file %03d.txt", longName(90), i%7, i)] = fmt.Sprintf("line %d\n", i%590)
	}
	for name, content := range tree {
		put(t, filepath.Join(dir, filepath.FromSlash(name)), []byte(content))
	}
	return tree
}

func longName(n int) string { return strings.Repeat("n", n) }

// documents reads manifests and indices from a store.
func documents(store *cas.Store) func(bundle.OCIDescriptor) ([]byte, error) {
	return func(d bundle.OCIDescriptor) ([]byte, error) { return store.ReadAll(d.Digest, bundle.ReadLimit(d)) }
}

func TestConformanceOfPackedFolders(t *testing.T) {
	base := t.TempDir()
	smallFiles(t, filepath.Join(base, "d"))
	progress := &watch{}
	s, err := files.New(base, nil, progress)
	if err != nil {
		t.Fatal(err)
	}
	sourcetest.Test(t, sourcetest.Case{
		Source: s, Request: request("d"), Unknown: request("none"),
		Mutate:    func(t *testing.T) { put(t, filepath.Join(base, "d", "empty"), []byte("other")) },
		Interrupt: func(cancel context.CancelFunc) { progress.mu.Lock(); progress.first = cancel; progress.mu.Unlock() },
	})
}

// packed resolves and fetches the folder d of base.
func packed(t *testing.T, base string) (*cas.Store, mirror.Pinned) {
	t.Helper()
	s, store := newSource(t, base, nil), newStore(t)
	p, err := resolve(t, s, store, request("d"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Fetch(t.Context(), p, store); err != nil {
		t.Fatal(err)
	}
	return store, p
}

func TestSmallFilesTravelInPacks(t *testing.T) {
	base := t.TempDir()
	tree := smallFiles(t, filepath.Join(base, "d"))
	store, p := packed(t, base)
	list, err := bundle.ListTree(p.Root, documents(store))
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Packs) != 1 || list.Packs[0].Title != "packs/0001.tar" || p.Listing.Files != int64(len(tree)) {
		t.Errorf("packs %+v, %d files", list.Packs, p.Listing.Files)
	}
	got, own := map[string]string{}, map[string]bool{}
	for _, f := range list.Files {
		r, err := bundle.OpenTreeFile(bundle.StoreContent(store), f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatalf("%s: %v", f.Path, err)
		}
		got[f.Path] = string(b)
		if there, err := store.Has(f.Digest, f.Size); err != nil || there == f.Packed() {
			t.Errorf("%s, packed %v, has a blob of its own: %v, %v", f.Path, f.Packed(), there, err)
		}
		if !f.Packed() {
			own[f.Path] = true
		}
	}
	if diff := cmp.Diff(tree, got); diff != "" {
		t.Errorf("the tree and what is listed:\n%.2000s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"large.bin": true, longName(101): true, "a/" + longName(101): true}, own); diff != "" {
		t.Error(diff)
	}
}

// Whoever has tar restores the tree, and any reader of tar lists it.
func TestTarRestoresPacks(t *testing.T) {
	gnu, err := exec.LookPath("tar")
	if err != nil {
		t.Skip("there is no tar here")
	}
	base := t.TempDir()
	tree := smallFiles(t, filepath.Join(base, "d"))
	store, p := packed(t, base)
	list, err := bundle.ListTree(p.Root, documents(store))
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	for _, pack := range list.Packs {
		if b, err := exec.Command(gnu, "-xf", store.Path(pack.Digest), "-C", out).CombinedOutput(); err != nil || len(b) > 0 {
			t.Fatalf("tar: %v\n%s", err, b)
		}
	}
	names := tarNames(t, store.Path(list.Packs[0].Digest))
	for _, f := range list.Files {
		if !f.Packed() {
			continue
		}
		if b, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(f.Path))); err != nil || string(b) != tree[f.Path] {
			t.Errorf("%s was not restored: %v", f.Path, err)
		}
		if !names[f.Path] {
			t.Errorf("archive/tar does not list %s", f.Path)
		}
		delete(names, f.Path)
	}
	if len(names) > 0 {
		t.Errorf("archive/tar lists %v besides", names)
	}
}

func tarNames(t *testing.T, path string) map[string]bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	names := map[string]bool{}
	for in := tar.NewReader(f); ; {
		h, err := in.Next()
		if err == io.EOF {
			return names
		}
		if err != nil || h.Format != tar.FormatUSTAR || h.Typeflag != tar.TypeReg {
			t.Fatalf("%+v, %v", h, err)
		}
		names[h.Name] = true
	}
}

func TestPacksAreTheSameAgain(t *testing.T) {
	var roots []cas.Digest
	for range 2 {
		base := t.TempDir()
		smallFiles(t, filepath.Join(base, "d"))
		_, p := packed(t, base)
		roots = append(roots, p.Root.Digest)
	}
	if roots[0] != roots[1] {
		t.Errorf("the same folder became %s and %s", roots[0], roots[1])
	}
}

// What changes after the lock was made is named, and no pack of it is kept.
func TestPackedFilesThatChange(t *testing.T) {
	name := fmt.Sprintf("deep/%s/%02d/file %03d.txt", longName(90), 300%7, 300)
	for what, change := range map[string]func(path string) error{
		"changed":       func(path string) error { return os.WriteFile(path, []byte("LINE 300\n"), 0o644) },
		"grown":         func(path string) error { return os.WriteFile(path, []byte("line 300\nmore"), 0o644) },
		"cut":           func(path string) error { return os.WriteFile(path, []byte("line"), 0o644) },
		"gone":          os.Remove,
		"a way out now": func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/etc/hostname", path)) },
	} {
		t.Run(what, func(t *testing.T) {
			base := t.TempDir()
			smallFiles(t, filepath.Join(base, "d"))
			s, store := newSource(t, base, nil), newStore(t)
			p, err := resolve(t, s, store, request("d"))
			if err != nil {
				t.Fatal(err)
			}
			if err := change(filepath.Join(base, "d", filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
			err = s.Fetch(t.Context(), p, store)
			if err == nil {
				t.Fatal("fetched something else than what was pinned")
			}
			if what != "a way out now" {
				wantCode(t, what, err, "source/moved")
			}
			if !strings.Contains(err.Error(), name) {
				t.Errorf("does not name the file: %v", err)
			}
			list, err := bundle.ListTree(p.Root, documents(store))
			if err != nil {
				t.Fatal(err)
			}
			if there, _ := store.Has(list.Packs[0].Digest, list.Packs[0].Size); there {
				t.Error("the store has a pack that cannot be")
			}
		})
	}
}

// A link within the folder leads out of its own folder, and is followed.
func TestLinksInPacks(t *testing.T) {
	base := t.TempDir()
	smallFiles(t, filepath.Join(base, "d"))
	put(t, filepath.Join(base, "d", "one", "file"), []byte("content"))
	put(t, filepath.Join(base, "d", "two", "other"), nil)
	if err := os.Symlink("../one/file", filepath.Join(base, "d", "two", "link")); err != nil {
		t.Fatal(err)
	}
	store, p := packed(t, base)
	list, err := bundle.ListTree(p.Root, documents(store))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list.Files {
		if f.Path == "two/link" && f.Digest == cas.DigestOf([]byte("content")) && f.Packed() {
			return
		}
	}
	t.Error("the link did not bring what it points to")
}
