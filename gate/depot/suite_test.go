package depot

import (
	"encoding/json/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/gate/sinktest"
	"github.com/packhof/packhof/internal/cas"
)

// The depot keeps what every destination promises, as its clients see it.
func TestSuiteOfDestinations(t *testing.T) {
	sinktest.Run(t, func(_ testing.TB, opened func() *gate.Gate) sinktest.Harness {
		return sinktest.Harness{
			Name: gate.DepotName, OfTheGate: true,
			Sink: New(func() gate.DepotStore { return opened().Depot() }),
			Read: func(t testing.TB, name gate.Name) map[string][]byte {
				c := client{t: t, handler: Handler(opened().Depot(), Options{}), name: name, seen: map[string][]byte{}}
				return c.read()
			},
		}
	})
}

// client looks at one name by requests alone.
type client struct {
	t       testing.TB
	handler http.Handler
	name    gate.Name
	seen    map[string][]byte
}

func (c *client) get(path string) (status int, mediaType string, body []byte) {
	c.t.Helper()
	request := httptest.NewRequestWithContext(c.t.Context(), http.MethodGet, path, nil)
	request.Header.Set("Accept", "application/json")
	recorder := httptest.NewRecorder()
	c.handler.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Header().Get("Content-Type"), recorder.Body.Bytes()
}

func (c *client) mustGet(path string) (mediaType string, body []byte) {
	c.t.Helper()
	status, mediaType, body := c.get(path)
	if status != http.StatusOK {
		c.t.Fatalf("%s: %d %s", path, status, body)
	}
	return mediaType, body
}

// read gives everything under the name; nil where there is no such name.
func (c *client) read() map[string][]byte {
	c.t.Helper()
	if c.name.Kind.IsTree() {
		return c.readTree()
	}
	status, mediaType, body := c.get("/v2/" + c.name.Repository + "/manifests/" + c.name.Tag)
	if status == http.StatusNotFound {
		return nil
	}
	c.manifest(mediaType, body)
	return c.seen
}

func (c *client) readTree() map[string][]byte {
	c.t.Helper()
	status, _, body := c.get("/files/" + c.name.Repository + "/" + c.name.Tag + "/")
	if status == http.StatusNotFound {
		return nil
	}
	var listing treeListing
	c.decode(body, &listing)
	for _, f := range listing.Files {
		_, c.seen[f.Path] = c.mustGet(f.Href)
	}
	return c.seen
}

// manifest goes on to what a manifest needs, and to what refers to it.
func (c *client) manifest(mediaType string, body []byte) {
	c.t.Helper()
	d := cas.DigestOf(body)
	c.seen[d.String()] = body
	doc := must(bundle.ParseOCI(body, mediaType))
	for _, child := range doc.Children() {
		if bundle.IsManifest(child.MediaType) {
			c.manifest(c.mustGet("/v2/" + c.name.Repository + "/manifests/" + child.Digest.String()))
			continue
		}
		_, c.seen[child.Digest.String()] = c.mustGet("/v2/" + c.name.Repository + "/blobs/" + child.Digest.String())
	}
	_, found := c.mustGet("/v2/" + c.name.Repository + "/referrers/" + d.String())
	var index ociIndex
	c.decode(found, &index)
	for _, r := range index.Manifests {
		c.manifest(c.mustGet("/v2/" + c.name.Repository + "/manifests/" + r.Digest.String()))
	}
}

func (c *client) decode(b []byte, into any) {
	c.t.Helper()
	if err := json.Unmarshal(b, into); err != nil {
		c.t.Fatal(err)
	}
}
