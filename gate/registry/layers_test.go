package registry_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/gate/registry"
	"github.com/packhof/packhof/internal/testkit"
)

// reachable is everything below a manifest, itself included, parents first.
func reachable(t *testing.T, r *gate.Release, root bundle.Descriptor) (all []bundle.OCIDescriptor) {
	t.Helper()
	read := func(d bundle.OCIDescriptor) ([]byte, error) { return r.ReadAll(d.Digest, bundle.MaxOCIManifestSize) }
	visit := func(d bundle.OCIDescriptor, _ bundle.Role) error {
		all = append(all, d)
		return nil
	}
	if err := bundle.Walk(bundle.OCIDescriptor{MediaType: root.MediaType, Digest: root.Digest, Size: root.Size}, read, visit); err != nil {
		t.Fatal(err)
	}
	return all
}

// shared is the base layer of both images.
func (l serials) shared(t *testing.T) bundle.Digest {
	t.Helper()
	other := reachable(t, l.first, plain(t, l.first).Root)
	for _, d := range reachable(t, l.first, image(t, l.first).Root) {
		if strings.Contains(d.MediaType, ".layer.") && slices.ContainsFunc(other, func(o bundle.OCIDescriptor) bool { return o.Digest == d.Digest }) {
			return d.Digest
		}
	}
	t.Fatal("the images share no layer")
	return bundle.Digest{}
}

// count counts requests that have a text in their query.
func count(r *testkit.Registry, method, query string) (n int) {
	for _, q := range r.Requests() {
		if q.Method == method && strings.Contains(strings.ReplaceAll(q.Query, "%3A", ":"), query) {
			n++
		}
	}
	return n
}

func (l serials) aLayerOfTwoImagesIsSentOnce(t *testing.T) {
	layer := l.shared(t)
	r := testkit.NewRegistry(t)
	load(t, newSink(t, registry.Config{Registry: r.Host() + "/plant", Plain: true}), l.first)
	if n := count(r, http.MethodPut, "digest="+layer.String()); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	if n := count(r, http.MethodPost, "mount="+layer.String()); n != 1 {
		t.Errorf("it was to be taken over %d times", n)
	}
}

// Registries may refuse to take a layer over, not know how, or say that they
// did.
func (l serials) aLayerThatIsNotTakenOverIsSent(t *testing.T) {
	mounting := func(q *http.Request) bool {
		return q.Method == http.MethodPost && strings.Contains(q.URL.RawQuery, "mount=")
	}
	for name, fault := range map[string]testkit.Fault{
		"refused":    testkit.Refuse(mounting, http.StatusForbidden, ""),
		"no such":    testkit.Refuse(mounting, http.StatusNotFound, ""),
		"lied about": testkit.Refuse(mounting, http.StatusCreated, ""),
		"not known": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if mounting(q) {
					q.URL.RawQuery = ""
				}
				next.ServeHTTP(w, q)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			layer := l.shared(t)
			r := testkit.NewRegistry(t, testkit.WithFault(fault))
			load(t, newSink(t, registry.Config{Registry: r.Host(), Plain: true}), l.first)
			if n := count(r, http.MethodPut, "digest="+layer.String()); n != 2 {
				t.Errorf("it was sent %d times, want once for each repository", n)
			}
		})
	}
}

// What an index that is attached lists belongs to the artifact: when the
// registry has lost some of it, that is noticed, planned and brought again.
func (l serials) whatAReferrerLists(t *testing.T) {
	r := testkit.NewRegistry(t)
	s := newSink(t, registry.Config{Registry: r.Host(), Plain: true})
	load(t, s, l.first)
	a := plain(t, l.first)
	i := slices.IndexFunc(a.Referrers, func(r bundle.Referrer) bool { return bundle.IsIndex(r.Descriptor.MediaType) })
	if i < 0 {
		t.Fatal("no index is attached")
	}
	for _, d := range reachable(t, l.first, a.Referrers[i].Descriptor)[1:] {
		kind, isManifest := "blobs/", bundle.IsManifest(d.MediaType)
		if isManifest {
			kind = "manifests/"
		}
		t.Run(d.MediaType, func(t *testing.T) {
			client{at: r.Host() + "/", http: r.Client()}.remove(t, l.first.Name(a), kind+d.Digest.String())
			wantIn(t, told(t, s.Verify(t.Context(), l.first, a), "destination/mismatch"), d.Digest.String()+" is not there")
			if planned := toMove(t, s, l.first, a); isManifest && planned < d.Size {
				t.Errorf("%d bytes are planned", planned)
			}
			if _, err := s.Put(t.Context(), l.first, a); err != nil {
				t.Fatal(err)
			}
			if err := s.Verify(t.Context(), l.first, a); err != nil {
				t.Errorf("brought again: %v", err)
			}
			if planned := toMove(t, s, l.first, a); planned != 0 {
				t.Errorf("%d bytes are planned when everything is there", planned)
			}
		})
	}
}

// toMove is how many bytes a plan says for an artifact whose tag is right.
func toMove(t *testing.T, s *registry.Sink, r *gate.Release, a bundle.Artifact) int64 {
	t.Helper()
	actions, err := s.Plan(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(actions, func(action gate.Action) bool { return action.Name == r.Name(a) })
	if i < 0 || actions[i].Effect != gate.EffectKeep {
		t.Fatalf("plan: %+v", actions)
	}
	return actions[i].Bytes
}
