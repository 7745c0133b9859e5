package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/mirror/files"
	"github.com/packhof/packhof/mirror/sourcetest"
)

func TestConformanceOfAFolder(t *testing.T) {
	for name, kind := range map[string]bundle.Kind{"files": bundle.Files, "model": bundle.Model} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			put(t, filepath.Join(base, "d", "README.md"), []byte("hello"))
			put(t, filepath.Join(base, "d", "deep", "er", "data.bin"), testkit.Bytes("data", 3<<20))
			put(t, filepath.Join(base, "d", "deep", "same.bin"), testkit.Bytes("data", 3<<20))
			put(t, filepath.Join(base, "d", "empty"), nil)
			progress := &watch{}
			s, err := files.New(base, nil, progress)
			if err != nil {
				t.Fatal(err)
			}
			want := request("d")
			want.Kind = kind
			sourcetest.Test(t, sourcetest.Case{
				Source: s, Request: want, Unknown: request("none"),
				Mutate:    func(t *testing.T) { put(t, filepath.Join(base, "d", "README.md"), []byte("other")) },
				Interrupt: func(cancel context.CancelFunc) { progress.mu.Lock(); progress.first = cancel; progress.mu.Unlock() },
			})
		})
	}
}

func TestConformanceOfAFile(t *testing.T) {
	base := t.TempDir()
	put(t, filepath.Join(base, "driver.run"), testkit.Bytes("driver", 1<<20))
	s := newSource(t, base, nil)
	sourcetest.Test(t, sourcetest.Case{
		Source: s, Request: request("driver.run"), Unknown: request("none"),
		Mutate: func(t *testing.T) { put(t, filepath.Join(base, "driver.run"), []byte("other")) },
	})
}

func TestLinks(t *testing.T) {
	outside := t.TempDir()
	put(t, filepath.Join(outside, "secret"), []byte("secret"))
	link := func(target, name string) func(dir string) error {
		return func(dir string) error { return os.Symlink(target, filepath.Join(dir, name)) }
	}
	for name, c := range map[string]struct {
		make func(dir string) error
		code string // "" where the link may stay
	}{
		"to a file inside":     {link("file", "l"), ""},
		"up and down again":    {link("sub/../file", "l"), ""},
		"to a link inside":     {func(dir string) error { return errors.Join(link("file", "k")(dir), link("k", "l")(dir)) }, ""},
		"outside, absolute":    {link(filepath.Join(outside, "secret"), "l"), "source/unreadable"},
		"outside, relative":    {link("../secret", "l"), "source/unreadable"},
		"inside, but absolute": {func(dir string) error { return os.Symlink(filepath.Join(dir, "file"), filepath.Join(dir, "l")) }, "source/unreadable"},
		"to nothing":           {link("none", "l"), "source/unreadable"},
		"to itself":            {link("l", "l"), "source/unreadable"},
		"in a loop":            {func(dir string) error { return errors.Join(link("k", "l")(dir), link("l", "k")(dir)) }, "source/unreadable"},
		"to a folder":          {link("sub", "l"), "source/not-a-file"},
		"to the folder itself": {link(".", "l"), "source/not-a-file"},
		"to the folder above":  {link("..", "l"), "source/unreadable"},
		"to a folder outside":  {link(outside, "l"), "source/unreadable"},
		"to a device":          {link("/dev/zero", "l"), "source/unreadable"},
		"a pipe":               {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "l"), 0o644) }, "source/not-a-file"},
		"a link to a pipe": {func(dir string) error {
			return errors.Join(syscall.Mkfifo(filepath.Join(dir, "p"), 0o644), link("p", "l")(dir))
		}, "source/not-a-file"},
		"a socket":                  {socket, "source/not-a-file"},
		"a line break in a name":    {named("a\nb"), "artifact/bad-path"},
		"a backslash in a name":     {named(`a\b`), "artifact/bad-path"},
		"no UTF-8 in a name":        {named("a\xff"), "artifact/bad-path"},
		"a bidi mark in a name":     {named("a\u202eb"), "artifact/bad-path"},
		"no UTF-8 in a folder":      {named("a\xff/b"), "artifact/bad-path"},
		"a line break in a folder":  {named("a\n/b"), "artifact/bad-path"},
		"an escape in a folder":     {named("a\x1b[2J/b"), "artifact/bad-path"},
		"blanks and letters, ä ö ü": {named(" ä ö/ü "), ""},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "d")
			put(t, filepath.Join(base, "secret"), []byte("secret"))
			put(t, filepath.Join(dir, "file"), []byte("content"))
			put(t, filepath.Join(dir, "sub", "other"), []byte("other"))
			if err := c.make(dir); err != nil {
				t.Fatal(err)
			}
			store := newStore(t)
			p, err := resolve(t, newSource(t, base, nil), store, request("d"))
			if c.code != "" {
				wantCode(t, name, err, c.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := newSource(t, base, nil).Fetch(t.Context(), p, store); err != nil {
				t.Fatal(err)
			}
			if d, ok := paths(t, store, p)["l"]; ok && d != cas.DigestOf([]byte("content")) {
				t.Error("the link did not bring what it points to")
			}
		})
	}
}

func named(name string) func(dir string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o644))
	}
}

// socket is made under a short name: the path of a socket may have 108 bytes.
func socket(dir string) error {
	root, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	l, err := net.Listen("unix", filepath.Join(root, "l"))
	if err != nil {
		return err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	return errors.Join(l.Close(), os.Rename(filepath.Join(root, "l"), filepath.Join(dir, "l")), os.Remove(root))
}

// TestSingleFiles: what is no file must not be opened, since a pipe would
// block and a device never end.
func TestSingleFiles(t *testing.T) {
	base := t.TempDir()
	put(t, filepath.Join(base, "file"), []byte("content"))
	if err := errors.Join(
		syscall.Mkfifo(filepath.Join(base, "pipe"), 0o644),
		os.Symlink("file", filepath.Join(base, "inside")),
		os.Symlink("/dev/zero", filepath.Join(base, "device")),
		os.Symlink("pipe", filepath.Join(base, "to-pipe")),
	); err != nil {
		t.Fatal(err)
	}
	s := newSource(t, base, nil)
	for from, code := range map[string]string{
		"pipe": "source/not-a-file", "to-pipe": "source/not-a-file", "device": "source/unreadable", "/dev/zero": "source/not-a-file",
		"none": "source/not-found", "": "artifact/bad-path",
	} {
		if from == "" {
			put(t, filepath.Join(base, `back\slash`), nil)
			from = `back\slash`
		}
		_, err := resolve(t, s, newStore(t), request(from))
		wantCode(t, from, err, code)
	}
	for _, from := range []string{"file", "inside", filepath.Join(base, "file")} {
		p, err := resolve(t, s, newStore(t), request(from))
		if err != nil || p.Files != 2 || p.Bytes != int64(len("content")+len("{}")) {
			t.Errorf("%s: %+v, %v", from, p, err)
		}
	}
	if err := os.Mkdir(filepath.Join(base, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := resolve(t, s, newStore(t), request("empty"))
	wantCode(t, "an empty folder", err, "artifact/empty")
}

// TestUnreadableFile uses a file that even root cannot read.
func TestUnreadableFile(t *testing.T) {
	if _, err := os.Stat("/proc/self/mem"); err != nil {
		t.Skip("no such file here")
	}
	if _, err := resolve(t, newSource(t, "/", nil), newStore(t), request("/proc/self/mem")); err == nil {
		t.Error("read what cannot be read")
	}
}

func TestManyFiles(t *testing.T) {
	base := t.TempDir()
	const count = 2000
	for i := range count {
		put(t, filepath.Join(base, "d", fmt.Sprintf("%02d", i%40), fmt.Sprintf("file-%04d.txt", i)), fmt.Appendf(nil, "%d", i%1500)) // some twice
	}
	s, store := newSource(t, base, nil), newStore(t)
	want := request("d")
	want.Kind = bundle.Model // which has no packs
	p, err := resolve(t, s, store, want)
	if err != nil {
		t.Fatal(err)
	}
	if !bundle.IsIndex(p.Root.MediaType) || p.Listing == nil || p.Listing.Files != count || p.Files != 1502 {
		t.Errorf("%d files became %+v with %d blobs", count, p.Root, p.Files)
	}
	if err := s.Fetch(t.Context(), p, store); err != nil {
		t.Fatal(err)
	}
	list := paths(t, store, p)
	if len(list) != count {
		t.Fatalf("%d files are listed", len(list))
	}
	for path, d := range list {
		if b, err := os.ReadFile(filepath.Join(base, "d", path)); err != nil || cas.DigestOf(b) != d {
			t.Errorf("%s is listed as %s, %v", path, d, err)
		}
	}
}

func TestChangedBetweenPlanAndFetch(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"changed":         func(path string) error { return os.WriteFile(path, []byte("CONTENT"), 0o644) },
		"grown":           func(path string) error { return os.WriteFile(path, []byte("content and more"), 0o644) },
		"cut":             func(path string) error { return os.WriteFile(path, []byte("con"), 0o644) },
		"gone":            os.Remove,
		"a folder now":    func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) },
		"a way out now":   func(path string) error { return errors.Join(os.Remove(path), os.Symlink("../../secret", path)) },
		"the folder gone": func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		for _, lostRoot := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, root lost %v", name, lostRoot), func(t *testing.T) {
				base := t.TempDir()
				put(t, filepath.Join(base, "secret"), []byte("content"))
				put(t, filepath.Join(base, "d", "file"), []byte("content"))
				put(t, filepath.Join(base, "d", "other"), []byte("other"))
				s, store := newSource(t, base, nil), newStore(t)
				p, err := resolve(t, s, store, request("d"))
				if err != nil {
					t.Fatal(err)
				}
				if err := change(filepath.Join(base, "d", "file")); err != nil {
					t.Fatal(err)
				}
				if lostRoot {
					if err := os.Remove(store.Path(p.Root.Digest)); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Fetch(t.Context(), p, store); err == nil {
					t.Error("fetched something else than what was pinned")
				}
				if _, err := store.Size(cas.DigestOf([]byte("content"))); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the store has the file: %v", err)
				}
			})
		}
	}
}

func TestLockWithoutListing(t *testing.T) {
	base := t.TempDir()
	put(t, filepath.Join(base, "d", "file"), []byte("content"))
	s, store := newSource(t, base, nil), newStore(t)
	p, err := resolve(t, s, store, request("d"))
	if err != nil {
		t.Fatal(err)
	}
	bare := p
	bare.Listing = nil
	wantCode(t, "no listing", s.Fetch(t.Context(), bare, store), "lock/malformed")
	other := p
	other.Root.Digest = cas.DigestOf(nil)
	wantCode(t, "another root", s.Fetch(t.Context(), other, store), "source/moved")
	odd := p
	odd.Listing = &mirror.Listing{Digest: cas.DigestOf(nil), Files: 1}
	wantCode(t, "another listing", s.Fetch(t.Context(), odd, store), "source/moved")
}

// TestMemoryDoesNotGrowWithFiles hashes and fetches a file of 1 GiB.
func TestMemoryDoesNotGrowWithFiles(t *testing.T) {
	base := t.TempDir()
	f, err := os.Create(filepath.Join(base, "large"))
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 30
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	progress := &watch{}
	s, err := files.New(base, nil, progress)
	if err != nil {
		t.Fatal(err)
	}
	p, err := resolve(t, s, newStore(t), request("large"))
	if err != nil || p.Bytes != size+int64(len("{}")) {
		t.Fatalf("%d bytes, %v", p.Bytes, err)
	}
	stopped := errors.New("seen enough") // the disk need not take a GiB
	ctx, cancel := context.WithCancelCause(t.Context())
	progress.stopAt, progress.stop = size+128<<20, func() { cancel(stopped) }
	if err := s.Fetch(ctx, p, newStore(t)); !errors.Is(err, stopped) {
		t.Fatal(err)
	}
	if progress.peak == 0 || progress.peak > 64<<20 {
		t.Errorf("%d bytes took %d bytes of memory", int64(size), progress.peak)
	}
}

func TestHashesForTheSBOM(t *testing.T) {
	base := t.TempDir()
	put(t, filepath.Join(base, "d", "file"), []byte("content"))
	s, store := newSource(t, base, nil), newStore(t)
	p, err := resolve(t, s, store, request("d"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Fetch(t.Context(), p, store); err != nil {
		t.Fatal(err)
	}
	note, ok, err := store.Note(mirror.NoteSHA512, cas.DigestOf([]byte("content")))
	if !ok || err != nil || !bytes.HasPrefix(note, []byte("b2d1d285b5199c85f988d03649c37e44fd3dde01e5d69c50fef90651962f48110e9340b60d49a479c4c0b53f5f07d690686dd87d2481937a512e8b85ee7c617f")) {
		t.Errorf("the note on the SHA-512 is %q, %v", note, err)
	}
}
