package registry_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	inmemory "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/gate/registry"
	"github.com/packhof/packhof/gate/sinktest"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

// noWait waits for nothing between attempts.
func noWait(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func newSink(t testing.TB, config registry.Config) *registry.Sink {
	t.Helper()
	config.Sleep = noWait
	s, err := registry.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// The CNCF registry has no referrers API.
func TestSinkOnDistribution(t *testing.T) {
	sinktest.Run(t, func(t testing.TB, _ func() *gate.Gate) sinktest.Harness {
		storage := t.TempDir()
		r := testkit.NewRegistry(t, testkit.WithStorage(storage))
		c := client{at: r.Host() + "/plant/", http: r.Client()}
		return sinktest.Harness{
			Sink: newSink(t, registry.Config{Registry: r.Host() + "/plant", Plain: true}),
			Read: c.read, Lose: c.lose,
			Dump:    func(t testing.TB) map[string][]byte { return stored(t, storage) },
			Arrived: func(testing.TB) []bundle.Digest { return manifests(r.Requests()) },
			Interrupt: func(_ testing.TB, cancel context.CancelFunc) {
				r.SetFault(interrupt(cancel))
			},
			Unreachable: func(t testing.TB) {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			},
		}
	})
}

// A registry with the referrers API, which needs no fallback tags.
func TestSinkOnARegistryWithReferrers(t *testing.T) {
	sinktest.Run(t, func(t testing.TB, _ func() *gate.Gate) sinktest.Harness {
		server := newModern(t)
		c := client{at: server.host() + "/", http: server.Client()}
		t.Cleanup(func() {
			for _, q := range server.asked() {
				if strings.Contains(q.Path, "/manifests/sha256-") {
					t.Errorf("a fallback tag was used: %s %s", q.Method, q.Path)
				}
			}
		})
		return sinktest.Harness{
			Sink: newSink(t, registry.Config{Registry: server.host(), Plain: true}), Read: c.read,
			Arrived: func(testing.TB) []bundle.Digest { return manifests(server.asked()) },
		}
	})
}

// modern is go-containerregistry's registry in memory, with referrers.
type modern struct {
	*httptest.Server
	mu       sync.Mutex
	requests []testkit.Request
}

func newModern(t testing.TB) *modern {
	t.Helper()
	m := &modern{}
	handler := inmemory.New(inmemory.WithReferrersSupport(true), inmemory.Logger(log.New(io.Discard, "", 0)))
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.requests = append(m.requests, testkit.Request{Method: r.Method, Path: r.URL.Path})
		m.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *modern) host() string { return m.Listener.Addr().String() }

func (m *modern) asked() []testkit.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]testkit.Request(nil), m.requests...)
}

// interrupt has cancel called in the middle of the first blob.
func interrupt(cancel context.CancelFunc) testkit.Fault {
	first := testkit.FirstN(1, func(r *http.Request) bool {
		return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/uploads/")
	})
	return testkit.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if !first(r) {
			return false
		}
		_, _ = io.CopyN(io.Discard, r.Body, 100_000) // what arrives before is no matter
		cancel()
		panic(http.ErrAbortHandler)
	})
}

// manifests are the digests of the manifests that were put.
func manifests(requests []testkit.Request) []bundle.Digest {
	var all []bundle.Digest
	for _, q := range requests {
		if _, identifier, ok := strings.Cut(q.Path, "/manifests/"); ok && q.Method == http.MethodPut {
			if d, err := cas.ParseDigest(identifier); err == nil {
				all = append(all, d)
			}
		}
	}
	return all
}

// stored is everything on a registry's disk but unfinished uploads.
func stored(t testing.TB, storage string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(storage, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() && e.Name() == "_uploads" {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() {
			return err
		}
		all[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// client is an independent client of a registry.
type client struct {
	at   string // host and prefix
	http *http.Client
}

func (c client) options(t testing.TB) []remote.Option {
	return []remote.Option{remote.WithTransport(c.http.Transport), remote.WithContext(t.Context())}
}

func (c client) repository(t testing.TB, n gate.Name) name.Repository {
	t.Helper()
	repository, err := name.NewRepository(c.at+n.Repository, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return repository
}

// read pulls everything that is under a name, referrers included.
func (c client) read(t testing.TB, n gate.Name) map[string][]byte {
	t.Helper()
	d, err := remote.Get(c.repository(t, n).Tag(n.Tag), c.options(t)...)
	if answered, ok := errors.AsType[*transport.Error](err); ok && answered.StatusCode == http.StatusNotFound {
		return nil
	}
	if err != nil {
		t.Fatalf("pull %s: %v", n, err)
	}
	p := pull{client: c, repository: c.repository(t, n), seen: map[string][]byte{}}
	p.manifest(t, d)
	return p.seen
}

type pull struct {
	client
	repository name.Repository
	seen       map[string][]byte
}

func (p pull) manifest(t testing.TB, d *remote.Descriptor) {
	t.Helper()
	p.seen[d.Digest.String()] = d.Manifest
	if d.MediaType.IsIndex() {
		index, err := d.ImageIndex()
		if err != nil {
			t.Fatal(err)
		}
		list, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		p.list(t, list)
	} else {
		p.blobs(t, d)
	}
	referrers, err := remote.Referrers(p.repository.Digest(d.Digest.String()), p.options(t)...)
	if err != nil {
		t.Fatalf("referrers of %s: %v", d.Digest, err)
	}
	list, err := referrers.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	p.list(t, list)
}

func (p pull) list(t testing.TB, list *v1.IndexManifest) {
	t.Helper()
	for _, entry := range list.Manifests {
		d, err := remote.Get(p.repository.Digest(entry.Digest.String()), p.options(t)...)
		if err != nil {
			t.Fatalf("pull %s: %v", entry.Digest, err)
		}
		p.manifest(t, d)
	}
}

func (p pull) blobs(t testing.TB, d *remote.Descriptor) {
	t.Helper()
	image, err := d.Image()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range append([]v1.Descriptor{manifest.Config}, manifest.Layers...) {
		layer, err := remote.Layer(p.repository.Digest(blob.Digest.String()), p.options(t)...)
		if err != nil {
			t.Fatal(err)
		}
		r, err := layer.Compressed()
		if err != nil {
			t.Fatalf("pull %s: %v", blob.Digest, err)
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatalf("pull %s: %v", blob.Digest, err)
		}
		p.seen[blob.Digest.String()] = b
	}
}

// lose deletes one blob of a published name from its repository.
func (c client) lose(t testing.TB, n gate.Name) {
	t.Helper()
	d, err := remote.Get(c.repository(t, n).Tag(n.Tag), c.options(t)...)
	if err != nil {
		t.Fatal(err)
	}
	for d.MediaType.IsIndex() {
		index, err := d.ImageIndex()
		if err != nil {
			t.Fatal(err)
		}
		list, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if d, err = remote.Get(c.repository(t, n).Digest(list.Manifests[0].Digest.String()), c.options(t)...); err != nil {
			t.Fatal(err)
		}
	}
	image, err := d.Image()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	c.remove(t, n, "blobs/"+manifest.Layers[0].Digest.String())
}

// remove deletes something of a repository.
func (c client) remove(t testing.TB, n gate.Name, path string) {
	t.Helper()
	host, prefix, _ := strings.Cut(c.at, "/")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+host+"/v2/"+prefix+n.Repository+"/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		t.Fatalf("delete %s: %s", path, resp.Status)
	}
}
