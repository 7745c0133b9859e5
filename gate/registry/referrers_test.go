package registry_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate/registry"
	"github.com/packhof/packhof/internal/testkit"
)

// fallback reads the index of a fallback tag as it is.
func fallback(t *testing.T, c client, repository string, subject bundle.Digest) []byte {
	t.Helper()
	resp, err := c.http.Get("http://" + strings.TrimSuffix(c.at, "/") + "/v2/" + repository + "/manifests/sha256-" + subject.Hex())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != bundle.TypeOCIIndex {
		t.Fatalf("%s %s, %v", resp.Status, resp.Header.Get("Content-Type"), err)
	}
	return b.Bytes()
}

// putRaw puts a manifest as somebody else would.
func putRaw(t *testing.T, c client, path, mediaType, b string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+strings.TrimSuffix(c.at, "/")+"/v2/"+path, strings.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("%s, %v", resp.Status, err)
	}
}

func (l serials) theFallbackTagSaysWhatTheSpecificationAsks(t *testing.T) {
	first := l.first
	r := testkit.NewRegistry(t)
	c := client{at: r.Host() + "/", http: r.Client()}
	load(t, newSink(t, registry.Config{Registry: r.Host(), Plain: true}), first)
	a := image(t, first)
	for _, referrer := range a.Referrers {
		want := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":%q,"digest":%q,"size":%d,"artifactType":%q}]}`,
			bundle.TypeOCIIndex, bundle.TypeOCIManifest, referrer.Descriptor.Digest, referrer.Descriptor.Size, referrer.Descriptor.ArtifactType)
		if got := string(fallback(t, c, "team/tool", referrer.Subject)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func (l serials) entriesOfOthersStay(t *testing.T) {
	first := l.first
	r := testkit.NewRegistry(t)
	c := client{at: r.Host() + "/", http: r.Client()}
	s := newSink(t, registry.Config{Registry: r.Host(), Plain: true})
	a := image(t, first)
	put(t, s, first)
	subject := a.Referrers[0].Subject
	theirs := fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d,"data":"e30=","x":[1,  2]}`, a.Root.MediaType, a.Root.Digest, a.Root.Size)
	putRaw(t, c, "team/tool/manifests/sha256-"+subject.Hex(), bundle.TypeOCIIndex,
		fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[%s],"annotations":{"by":"others"}}`, bundle.TypeOCIIndex, theirs))
	load(t, s, first)
	got := string(fallback(t, c, "team/tool", subject))
	wantIn(t, got, `"annotations":{"by":"others"}`, `"data":"e30=","x":[1,2]`, a.Referrers[0].Descriptor.Digest.String())
	index, err := remote.Referrers(c.repository(t, first.Name(a)).Digest(subject.String()), c.options(t)...)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := index.IndexManifest(); err != nil || len(list.Manifests) != 2 {
		t.Errorf("an independent client sees %+v, %v", list, err)
	}
}

func (l serials) aTagThatListsNothingStandsInTheWay(t *testing.T) {
	first := l.first
	r := testkit.NewRegistry(t)
	c := client{at: r.Host() + "/", http: r.Client()}
	s := newSink(t, registry.Config{Registry: r.Host(), Plain: true})
	put(t, s, first)
	a := image(t, first)
	subject := a.Referrers[0].Subject
	manifest, err := first.ReadAll(subject, bundle.MaxOCIManifestSize)
	if err != nil {
		t.Fatal(err)
	}
	putRaw(t, c, "team/tool/manifests/sha256-"+subject.Hex(), bundle.TypeOCIManifest, string(manifest))
	_, err = s.Put(t.Context(), first, a)
	wantIn(t, told(t, err, "destination/refused"), "sha256-"+subject.Hex(), "holds something else")
}

// Whoever overwrites what was just written is written over again, but not for
// ever.
func (l serials) anotherWriterOfTheFallbackTag(t *testing.T) {
	first := l.first
	a := image(t, first)
	for name, losses := range map[string]int{"twice": 2, "always": 1000} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t)
			s := newSink(t, registry.Config{Registry: r.Host(), Plain: true})
			lose := testkit.FirstN(losses, putting("/manifests/sha256-"+a.Referrers[0].Subject.Hex()))
			r.SetFault(testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
				if lose(q) {
					w.WriteHeader(http.StatusCreated)
					return true
				}
				return false
			}))
			_, err := s.Put(t.Context(), first, a)
			if losses > 2 {
				wantIn(t, told(t, err, "destination/mismatch"), "another program")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func (l serials) puttingAtTheSameTime(t *testing.T) {
	first, second := l.first, l.second
	r := testkit.NewRegistry(t)
	s := newSink(t, registry.Config{Registry: r.Host(), Plain: true})
	var group errgroup.Group
	for _, release := range []int{1, 2, 1, 2} {
		of := first
		if release == 2 {
			of = second
		}
		for _, a := range of.Artifacts() {
			group.Go(func() error {
				_, err := s.Put(t.Context(), of, a)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	load(t, s, first)
	load(t, s, second)
	if err := verify(t, s, first); err == nil || errors.Is(err, http.ErrServerClosed) {
		t.Errorf("the names of the first serial: %v", err)
	}
}
