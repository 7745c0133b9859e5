package depot

import (
	"io"
	"net/http"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
)

// BenchmarkPull compares a pull of one blob with the CNCF registry's: the
// first, which is proven while it is sent, and those within the hour after.
func BenchmarkPull(b *testing.B) {
	const size = 256 << 20
	content := testkit.Bytes("throughput", size)
	s := newShelf(b)
	d := s.put(content)
	s.show("r", gate.DepotBlob{Digest: d, MediaType: typeBytes, Size: size})
	path := "/v2/r/blobs/" + d.String()
	registry := testkit.NewRegistry(b, testkit.WithStorage(b.TempDir()))
	pushLayer(b, registry, "r", content)
	secure := testkit.NewRegistry(b, testkit.WithStorage(b.TempDir()), testkit.WithTLS())
	pushLayer(b, secure, "r", content)

	plain, tls := s.serve(Options{}), s.serveTLS()
	unremembered := httptestServer(b, Handler(s, Options{}))
	for _, c := range []struct {
		name, url string
		client    *http.Client
	}{
		{"registry", registry.URL(), registry.Client()},
		{"depot, first", unremembered, http.DefaultClient},
		{"depot, then", plain.URL, plain.Client()},
		{"registry, TLS", secure.URL(), secure.Client()},
		{"depot, TLS", tls.URL, tls.Client()},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				if n := download(b, c.client, c.url+path); n != size {
					b.Fatalf("%d bytes", n)
				}
			}
		})
	}
}

func pushLayer(b *testing.B, r *testkit.Registry, repository string, content []byte) {
	b.Helper()
	image := must(testkit.Image(testkit.ImageSpec{Seed: "carrier", Base: []v1.Layer{static.NewLayer(content, types.OCILayer)}}))
	must(r.PushImage(b.Context(), repository+":1", image))
}

func download(b *testing.B, client *http.Client, url string) int64 {
	b.Helper()
	response := must(client.Do(must(http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil))))
	if response.StatusCode != 200 {
		b.Fatal(response.Status)
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, response.Body, make([]byte, 1<<20))
	if err != nil {
		b.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		b.Fatal(err)
	}
	return n
}
