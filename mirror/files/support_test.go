package files_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/mirror/files"
)

// watch is a Progress that counts bytes and can call somebody at the first.
type watch struct {
	mu    sync.Mutex
	bytes int64
	peak  uint64 // of the heap, looked at every 64 MiB
	next  int64
	first func()

	stopAt int64 // bytes after which stop is called
	stop   func()
}

func (w *watch) Start(string, int64) mirror.Item { return w }
func (w *watch) Done(error)                      {}

func (w *watch) Advance(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first != nil && n > 0 {
		w.first()
		w.first = nil
	}
	w.bytes += n
	if w.stop != nil && w.bytes > w.stopAt {
		w.stop()
	}
	if w.bytes >= w.next {
		w.next += 64 << 20
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.peak = max(w.peak, m.HeapAlloc)
	}
}

func newSource(t *testing.T, base string, hosts map[string]files.Host) *files.Source {
	t.Helper()
	s, err := files.New(base, hosts, &watch{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newStore(t *testing.T) *cas.Store {
	t.Helper()
	s, err := cas.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func request(from string) mirror.Request {
	return mirror.Request{Kind: bundle.Files, Name: "notes", Version: "1", From: from}
}

func resolve(t *testing.T, s *files.Source, store *cas.Store, want mirror.Request) (mirror.Pinned, error) {
	t.Helper()
	return s.Resolve(context.Background(), want, store)
}

// paths lists what a pinned tree is made of.
func paths(t *testing.T, store *cas.Store, p mirror.Pinned) map[string]cas.Digest {
	t.Helper()
	list := map[string]cas.Digest{}
	read := func(d bundle.OCIDescriptor) ([]byte, error) {
		return store.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
	}
	root := bundle.OCIDescriptor{MediaType: p.Root.MediaType, Digest: p.Root.Digest, Size: p.Root.Size}
	if err := bundle.Walk(root, read, func(d bundle.OCIDescriptor, _ bundle.Role) error {
		if !bundle.IsManifest(d.MediaType) {
			return nil
		}
		b, err := read(d)
		if err != nil {
			return err
		}
		doc, err := bundle.ParseOCI(b, d.MediaType)
		if err != nil {
			return err
		}
		for _, layer := range doc.Layers {
			list[layer.Annotations["org.opencontainers.image.title"]] = layer.Digest
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	got := problem.CodeOf(err)
	if err == nil || got != code {
		t.Errorf("%s: %v (%s), want %s", what, err, got, code)
	}
}
