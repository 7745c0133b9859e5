package oci_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/registry"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/mirror/oci"
)

// watch is a Progress that remembers, and may act when bytes arrive.
type watch struct {
	mu        sync.Mutex
	started   []int64 // sizes, in the order in which items began
	advanced  int64
	failed    int
	onAdvance func()
}

type watched struct{ w *watch }

func (w *watch) Start(_ string, bytes int64) mirror.Item {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = append(w.started, bytes)
	return watched{w}
}

func (i watched) Advance(n int64) {
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	i.w.advanced += n
	if i.w.onAdvance != nil {
		i.w.onAdvance()
		i.w.onAdvance = nil
	}
}

func (i watched) Done(err error) {
	i.w.mu.Lock()
	defer i.w.mu.Unlock()
	if err != nil {
		i.w.failed++
	}
}

func newSource(t *testing.T, r *testkit.Registry, w *watch, opts ...oci.Option) *oci.Source {
	t.Helper()
	return oci.New(newClient(t, r), 4, w, opts...)
}

func newClient(t *testing.T, r *testkit.Registry) *registry.Client {
	t.Helper()
	for _, name := range []string{"HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv("DOCKER_CONFIG", "")
	client, err := registry.New(registry.Config{
		Hosts: map[string]registry.Host{r.Host(): {PlainHTTP: r.CAPEM() == nil, CA: r.CAPEM()}},
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func newStore(t *testing.T) *cas.Store {
	t.Helper()
	store, err := cas.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func want(r *testkit.Registry, reference string, platforms ...string) mirror.Request {
	return mirror.Request{Kind: bundle.Image, Name: "app", From: r.Host() + "/" + reference, Platforms: platforms}
}

func resolve(t *testing.T, s *oci.Source, w mirror.Request) (mirror.Pinned, *cas.Store) {
	t.Helper()
	store := newStore(t)
	p, err := s.Resolve(t.Context(), w, store)
	if err != nil {
		t.Fatalf("resolve %s: %v", w.From, err)
	}
	return p, store
}

func pushImage(t *testing.T, r *testkit.Registry, repoAndTag string, spec testkit.ImageSpec) cas.Digest {
	t.Helper()
	image, err := testkit.Image(spec)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := r.PushImage(t.Context(), repoAndTag, image)
	if err != nil {
		t.Fatal(err)
	}
	return digest(t, hash)
}

func digest(t *testing.T, h v1.Hash) cas.Digest {
	t.Helper()
	d, err := cas.ParseDigest(h.String())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// attested is an index as BuildKit makes it: an image and its attestation for
// each architecture.
func attested(t *testing.T, seed string, archs ...string) v1.ImageIndex {
	t.Helper()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range archs {
		image, err := testkit.Image(testkit.ImageSpec{Seed: seed, Arch: arch, PayloadSize: 20_000})
		if err != nil {
			t.Fatal(err)
		}
		hash, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		statement, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
			static.NewLayer([]byte(`{"predicate":"`+seed+arch+`"}`), "application/vnd.in-toto+json"))
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}},
			mutate.IndexAddendum{Add: statement, Descriptor: v1.Descriptor{
				Platform:    &v1.Platform{OS: "unknown", Architecture: "unknown"},
				Annotations: map[string]string{"vnd.docker.reference.digest": hash.String(), "vnd.docker.reference.type": "attestation-manifest"},
			}})
	}
	return index
}

func pushIndex(t *testing.T, r *testkit.Registry, repoAndTag string, index v1.ImageIndex) cas.Digest {
	t.Helper()
	hash, err := r.PushIndex(t.Context(), repoAndTag, index)
	if err != nil {
		t.Fatal(err)
	}
	return digest(t, hash)
}

// raw is a manifest of bytes as they are.
type raw struct {
	body      []byte
	mediaType string
}

func (m raw) RawManifest() ([]byte, error)        { return m.body, nil }
func (m raw) MediaType() (types.MediaType, error) { return types.MediaType(m.mediaType), nil }

// pushRaw uploads blobs and a manifest of them that f writes.
func pushRaw(t *testing.T, r *testkit.Registry, repoAndTag, mediaType string, blobs [][]byte, f func([]bundle.OCIDescriptor) bundle.OCI) cas.Digest {
	t.Helper()
	at, err := r.Ref(repoAndTag)
	if err != nil {
		t.Fatal(err)
	}
	var descriptors []bundle.OCIDescriptor
	for _, b := range blobs {
		if err := remote.WriteLayer(at.Context(), static.NewLayer(b, types.OCILayer), r.RemoteOptions(t.Context())...); err != nil {
			t.Fatal(err)
		}
		descriptors = append(descriptors, bundle.OCIDescriptor{MediaType: string(types.OCILayer), Digest: cas.DigestOf(b), Size: int64(len(b))})
	}
	doc := f(descriptors)
	doc.SchemaVersion, doc.MediaType = 2, mediaType
	body, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Put(at, raw{body, mediaType}, r.RemoteOptions(t.Context())...); err != nil {
		t.Fatal(err)
	}
	return cas.DigestOf(body)
}

// serve answers for a manifest that the CNCF registry would not take, by the
// tag "odd" and by its digest.
func serve(mediaType string, body []byte) testkit.Fault {
	d := cas.DigestOf(body)
	return testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.HasSuffix(q.URL.Path, "/manifests/odd") && !strings.HasSuffix(q.URL.Path, "/manifests/"+d.String()) {
			return false
		}
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Docker-Content-Digest", d.String())
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if q.Method != http.MethodHead {
			_, _ = w.Write(body)
		}
		return true
	})
}

func blobsAsked(r *testkit.Registry) (n int) {
	for _, q := range r.Requests() {
		if q.Method == http.MethodGet && strings.Contains(q.Path, "/blobs/sha256:") {
			n++
		}
	}
	return n
}

func wantCode(t *testing.T, err error, code string) string {
	t.Helper()
	var coded interface {
		error
		Code() string
		Evidence() []string
	}
	if !errors.As(err, &coded) || coded.Code() != code {
		t.Fatalf("error %v, want one of code %s", err, code)
	}
	text := err.Error() + "\n" + strings.Join(coded.Evidence(), "\n")
	if r, ok := coded.(interface{ Remedy() string }); ok {
		text += "\n" + r.Remedy()
	}
	return text
}
