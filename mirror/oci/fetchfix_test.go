package oci_test

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
)

func TestTheLockedTransportHolds(t *testing.T) {
	r := testkit.NewRegistry(t) // speaks plain HTTP, as the configuration allows
	tagged := pushIndex(t, r, "app:1", attested(t, "x", "amd64", "arm64", "riscv64"))
	s := newSource(t, r, new(watch))
	for name, w := range map[string]mirror.Request{
		"by tag":    want(r, "app:1"),
		"by digest": want(r, "app@"+tagged.String()),
		"derived":   want(r, "app@"+tagged.String(), "linux/amd64", "linux/arm64"),
		"one":       want(r, "app@"+tagged.String(), "linux/amd64"),
	} {
		t.Run(name, func(t *testing.T) {
			p, store := resolve(t, s, w)
			if err := s.Fetch(t.Context(), p, store); err != nil {
				t.Fatalf("as it is locked: %v", err)
			}
			p.Transport, p.Settled = bundle.TransportTLS, true
			r.ForgetRequests()
			if err := s.Fetch(t.Context(), p, store); err != nil {
				t.Errorf("nothing has to be transferred: %v", err)
			}
			text := wantCode(t, s.Fetch(t.Context(), p, newStore(t)), "source/plain-http")
			if !strings.HasSuffix(text, "\npackhof plan") {
				t.Errorf("no way out in:\n%s", text)
			}
			p.Settled = false
			wantCode(t, s.Fetch(t.Context(), p, newStore(t)), "source/plain-http")
			if asked := r.Requests(); len(asked) > 0 {
				t.Errorf("asked without TLS: %v", asked)
			}
		})
	}
}

// The layers alone are reason enough: the manifests may be in the store.
func TestTheLockedTransportHoldsForBlobs(t *testing.T) {
	r := testkit.NewRegistry(t)
	d := pushImage(t, r, "app:1", testkit.ImageSpec{PayloadSize: 1000})
	s := newSource(t, r, new(watch))
	p, store := resolve(t, s, want(r, "app@"+d.String()))
	p.Transport = bundle.TransportTLS
	r.ForgetRequests()
	wantCode(t, s.Fetch(t.Context(), p, store), "source/plain-http")
	if asked := r.Requests(); len(asked) > 0 {
		t.Errorf("asked without TLS: %v", asked)
	}
}

func TestTheRootMustComeFromWhatTheLockSays(t *testing.T) {
	r := testkit.NewRegistry(t)
	pushIndex(t, r, "app:1", attested(t, "x", "amd64", "arm64", "riscv64"))
	s := newSource(t, r, new(watch))
	other := pushImage(t, r, "app:other", testkit.ImageSpec{Seed: "other"})
	for name, c := range map[string]struct {
		platforms []string
		spoil     func(t *testing.T, p *mirror.Pinned, store *cas.Store)
	}{
		"another image of the repository": {[]string{"linux/amd64"}, func(t *testing.T, p *mirror.Pinned, store *cas.Store) {
			q, err := s.Resolve(t.Context(), want(r, "app@"+other.String()), store)
			if err != nil {
				t.Fatal(err)
			}
			p.Root = q.Root
		}},
		"another platform of the same": {[]string{"linux/amd64"}, func(_ *testing.T, p *mirror.Pinned, _ *cas.Store) {
			p.Derived.Platforms = []string{"linux/arm64"}
		}},
		"other platforms, in the store": {[]string{"linux/amd64", "linux/arm64"}, func(_ *testing.T, p *mirror.Pinned, _ *cas.Store) {
			p.Derived.Platforms = []string{"linux/amd64", "linux/riscv64"}
		}},
		"no platforms": {[]string{"linux/amd64"}, func(_ *testing.T, p *mirror.Pinned, _ *cas.Store) {
			p.Derived.Platforms = nil
		}},
	} {
		for _, settled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, settled %v", name, settled), func(t *testing.T) {
				p, store := resolve(t, s, want(r, "app:1", c.platforms...))
				if ok, err := store.Has(p.Derived.From, sizeOf(t, store, p.Derived.From)); !ok || err != nil {
					t.Fatalf("resolve kept no index of upstream: %v", err)
				}
				if err := s.Fetch(t.Context(), p, store); err != nil {
					t.Fatal(err)
				}
				c.spoil(t, &p, store)
				p.Settled = settled
				r.ForgetRequests()
				wantCode(t, s.Fetch(t.Context(), p, store), "source/derived-differs")
				if n := blobsAsked(r); n != 0 {
					t.Errorf("%d blobs were fetched", n)
				}
			})
		}
	}
}

func sizeOf(t *testing.T, store *cas.Store, d cas.Digest) int64 {
	t.Helper()
	size, err := store.Size(d)
	if err != nil {
		t.Fatal(err)
	}
	return size
}

// Once sealed, a tag counts no more, and a store that lost everything is
// filled again by digest alone.
func TestSettledAsksByDigestOnly(t *testing.T) {
	for name, platforms := range map[string][]string{"whole": nil, "derived": {"linux/amd64", "linux/arm64"}, "one": {"linux/amd64"}} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t)
			pushIndex(t, r, "app:1", attested(t, "old", "amd64", "arm64", "riscv64"))
			s := newSource(t, r, new(watch))
			p, _ := resolve(t, s, want(r, "app:1", platforms...))
			pushIndex(t, r, "app:1", attested(t, "new", "amd64", "arm64", "riscv64"))
			p.Settled = true
			store := newStore(t)
			r.ForgetRequests()
			if err := s.Fetch(t.Context(), p, store); err != nil {
				t.Fatal(err)
			}
			for _, q := range r.Requests() {
				if !strings.Contains(q.Path, "sha256:") || q.Method != http.MethodGet {
					t.Errorf("asked for %s %s", q.Method, q.Path)
				}
			}
			if p.Derived == nil {
				return
			}
			// The index of upstream is one of the things that may be lost.
			if err := os.Remove(store.Path(p.Derived.From)); err != nil {
				t.Fatal(err)
			}
			r.SetFault(testkit.Refuse(testkit.Everything, http.StatusNotFound, ""))
			r.ForgetRequests()
			wantCode(t, s.Fetch(t.Context(), p, store), "registry/not-found")
			for _, q := range r.Requests() {
				if !strings.Contains(q.Path, "sha256:") {
					t.Errorf("asked for %s %s", q.Method, q.Path)
				}
			}
		})
	}
}

// library answers for manifests by their digests, and for one by the tag
// "odd".
type library struct {
	types map[string]string
	texts map[string][]byte
}

func newLibrary() library { return library{map[string]string{}, map[string][]byte{}} }

func (l library) add(mediaType string, body []byte) (descriptor string) {
	d := cas.DigestOf(body)
	for _, name := range []string{"odd", d.String()} {
		l.types[name], l.texts[name] = mediaType, body
	}
	return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d,"platform":{"os":"linux","architecture":"amd64"}}`, mediaType, d, len(body))
}

func (l library) fault() testkit.Fault {
	return testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		_, name, _ := strings.Cut(q.URL.Path, "/manifests/")
		body, ok := l.texts[name]
		if !ok {
			return false
		}
		w.Header().Set("Content-Type", l.types[name])
		w.Header().Set("Docker-Content-Digest", cas.DigestOf(body).String())
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if q.Method != http.MethodHead {
			_, _ = w.Write(body)
		}
		return true
	})
}

func indexOf(descriptors ...string) []byte {
	return []byte(`{"schemaVersion":2,"mediaType":"` + bundle.TypeOCIIndex + `","manifests":[` + strings.Join(descriptors, ",") + `]}`)
}

// many is a manifest of n layers that no other seed has.
func many(seed, n int) []byte {
	layers := make([]string, n)
	for i := range layers {
		layers[i] = fmt.Sprintf(`{"mediaType":"x","digest":"sha256:%032x%032x","size":1}`, seed+1, i)
	}
	return []byte(manifestOf(strings.Join(layers, ",")))
}

// long is a manifest of about n bytes that no other seed has.
func long(seed, n int) []byte {
	padding := fmt.Sprintf(`,"annotations":{"x":"%d%s"}}`, seed, strings.Repeat("x", n))
	return []byte(strings.TrimSuffix(manifestOf(descriptor(layerType, "")), "}") + padding)
}

func TestGraphsAreBounded(t *testing.T) {
	r := testkit.NewRegistry(t)
	pushImage(t, r, "app:1", testkit.ImageSpec{})
	for name, c := range map[string]struct {
		children int
		child    func(i int) []byte
		code     string // "" where it is all right
	}{
		"as many blobs as a bundle takes": {5, func(i int) []byte { return many(i, bundle.MaxBlobs/5-10) }, ""},
		"more blobs":                      {5, func(i int) []byte { return many(i, bundle.MaxBlobs/5) }, "oci/malformed"},
		"63 MiB of manifests":             {21, func(i int) []byte { return long(i, 3<<20-1000) }, ""},
		"more than 64 MiB":                {22, func(i int) []byte { return long(i, 3<<20-1000) }, "oci/malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLibrary()
			var children []string
			for i := range c.children {
				children = append(children, l.add(bundle.TypeOCIManifest, c.child(i)))
			}
			l.add(bundle.TypeOCIIndex, indexOf(children...))
			r.SetFault(l.fault())
			store := newStore(t)
			p, err := newSource(t, r, new(watch)).Resolve(t.Context(), want(r, "app:odd"), store)
			if c.code != "" {
				wantCode(t, err, c.code)
			} else if err != nil || len(p.Subjects) != c.children {
				t.Errorf("%d subjects, %v", len(p.Subjects), err)
			}
		})
	}
}

// Configs that are looked into count like manifests.
func TestConfigsAreBounded(t *testing.T) {
	r := testkit.NewRegistry(t)
	for name, c := range map[string]struct {
		configs int
		code    string
	}{"15 of 4 MiB": {15, ""}, "17 of 4 MiB": {17, "oci/malformed"}} {
		t.Run(name, func(t *testing.T) {
			l, configs := newLibrary(), map[string][]byte{}
			var children []string
			for i := range c.configs {
				config := fmt.Appendf(nil, `{"os":"linux","architecture":"amd64","x":"%d%s"}`, i, strings.Repeat("x", 4<<20-100))
				d := cas.DigestOf(config)
				configs[d.String()] = config
				body := fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},"layers":[]}`, d, len(config))
				bare, _, _ := strings.Cut(l.add(bundle.TypeOCIManifest, []byte(body)), `,"platform"`)
				children = append(children, bare+"}")
			}
			l.add(bundle.TypeOCIIndex, indexOf(children...))
			blobs := testkit.Answer(func(w http.ResponseWriter, q *http.Request) bool {
				_, name, _ := strings.Cut(q.URL.Path, "/blobs/")
				if configs[name] == nil {
					return false
				}
				_, _ = w.Write(configs[name])
				return true
			})
			r.SetFault(func(next http.Handler) http.Handler { return l.fault()(blobs(next)) })
			p, err := newSource(t, r, new(watch)).Resolve(t.Context(), want(r, "app:odd"), newStore(t))
			if c.code != "" {
				wantCode(t, err, c.code)
			} else if err != nil || len(p.Subjects) != c.configs {
				t.Errorf("%d subjects, %v", len(p.Subjects), err)
			}
		})
	}
}

// An index that names the next one a thousand times, and so on, says no more
// than one that names it once.
func TestRepeatedChildrenCountOnce(t *testing.T) {
	r := testkit.NewRegistry(t)
	l := newLibrary()
	d := l.add(bundle.TypeOCIManifest, []byte(manifestOf(descriptor(layerType, ""))))
	for range 6 {
		children := make([]string, 1000)
		for i := range children {
			children[i] = d
		}
		d = l.add(bundle.TypeOCIIndex, indexOf(children...))
	}
	r.SetFault(l.fault())
	p, err := newSource(t, r, new(watch)).Resolve(t.Context(), want(r, "app:odd"), newStore(t))
	if err != nil || len(p.Subjects) != 1 {
		t.Errorf("subjects %v, %v", p.Subjects, err)
	}
}
