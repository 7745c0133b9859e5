package oci_test

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/registry"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror/oci"
)

func TestMovedTag(t *testing.T) {
	for name, platforms := range map[string][]string{"whole": nil, "derived": {"linux/amd64", "linux/arm64"}, "one": {"linux/amd64"}} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t)
			old := pushIndex(t, r, "app:1", attested(t, "old", "amd64", "arm64", "riscv64"))
			s := newSource(t, r, new(watch))
			p, store := resolve(t, s, want(r, "app:1", platforms...))
			now := pushIndex(t, r, "app:1", attested(t, "new", "amd64", "arm64", "riscv64"))
			r.ForgetRequests()
			text := wantCode(t, s.Fetch(t.Context(), p, store), "source/moved")
			for _, part := range []string{"locked: " + old.String(), "now:    " + now.String(), "packhof plan", "@" + old.String()} {
				if !strings.Contains(text, part) {
					t.Errorf("no %q in:\n%s", part, text)
				}
			}
			if n := blobsAsked(r); n != 0 {
				t.Errorf("%d blobs were fetched", n)
			}
		})
	}
}

func TestBrokenDownloads(t *testing.T) {
	for name, c := range map[string]struct {
		fault testkit.Fault
		code  string // "" where it succeeds in the end
	}{
		"cut once":          {testkit.CutAfter(testkit.FirstN(1, testkit.Blobs), 100), ""},
		"cut always":        {testkit.CutAfter(testkit.Blobs, 100), registry.CodeInterrupted},
		"wrong once":        {testkit.Corrupt(testkit.FirstN(1, testkit.Blobs)), ""},
		"wrong always":      {testkit.Corrupt(testkit.Blobs), "content/corrupt"},
		"busy, then well":   {testkit.Refuse(testkit.FirstN(3, testkit.Blobs), 429, "1"), ""},
		"503 for ever":      {testkit.Refuse(testkit.Blobs, 503, ""), "registry/failed"},
		"blobs are missing": {testkit.Refuse(testkit.Blobs, 404, ""), "registry/not-found"},
	} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t)
			pushImage(t, r, "app:1", testkit.ImageSpec{Seed: name, PayloadSize: 300_000})
			var w watch
			s := newSource(t, r, &w)
			p, store := resolve(t, s, want(r, "app:1"))
			before := testkit.CheckStore(t, store)
			r.ForgetRequests()
			r.SetFault(c.fault)
			err := s.Fetch(t.Context(), p, store)
			after := testkit.CheckStore(t, store)
			if c.code != "" {
				wantCode(t, err, c.code)
				if after != before {
					t.Errorf("%d blobs in the store, want the %d from before", after, before)
				}
				if n := blobsAsked(r); n > 2*registry.Attempts {
					t.Errorf("%d requests for two blobs", n)
				}
				return
			}
			if err != nil || after != before+2 {
				t.Errorf("%v; %d blobs in the store, want %d", err, after, before+2)
			}
			// The config was read at Resolve; a repetition is not counted twice.
			if got := slices.Sorted(slices.Values(w.started)); w.advanced != got[0]+got[1] || w.failed != 0 {
				t.Errorf("progress of %d bytes, %d failed; started %v", w.advanced, w.failed, got)
			}
		})
	}
}

func TestWrongManifestIsRefused(t *testing.T) {
	r := testkit.NewRegistry(t)
	pushImage(t, r, "app:1", testkit.ImageSpec{})
	r.SetFault(testkit.Corrupt(testkit.Manifests))
	store := newStore(t)
	_, err := newSource(t, r, new(watch)).Resolve(t.Context(), want(r, "app:1"), store)
	wantCode(t, err, "content/corrupt")
	if n := testkit.CheckStore(t, store); n != 0 {
		t.Errorf("%d blobs were stored", n)
	}
}

func TestLargestFirst(t *testing.T) {
	r := testkit.NewRegistry(t)
	pushImage(t, r, "app:1", testkit.ImageSpec{Seed: "x", PayloadSize: 300_000, Files: []testkit.File{{Path: "a", Data: testkit.Bytes("a", 20_000)}}})
	var w watch
	s := oci.New(newClient(t, r), 1, &w)
	p, _ := resolve(t, s, want(r, "app:1"))
	if err := s.Fetch(t.Context(), p, newStore(t)); err != nil {
		t.Fatal(err)
	}
	if len(w.started) != 4 || !slices.IsSortedFunc(w.started, func(a, b int64) int { return cmp.Compare(b, a) }) {
		t.Errorf("fetched blobs of %v bytes in this order, want the largest of 4 first", w.started)
	}
}

func TestKindsOfLayers(t *testing.T) {
	r := testkit.NewRegistry(t)
	base, err := testkit.Layer(testkit.RootFS(testkit.BasePackages()), compression.ZStd)
	if err != nil {
		t.Fatal(err)
	}
	pushImage(t, r, "zstd:1", testkit.ImageSpec{Seed: "z", PayloadSize: 10_000, Compression: compression.ZStd})
	pushImage(t, r, "twice:1", testkit.ImageSpec{Base: []v1.Layer{base, base}})
	pushRaw(t, r, "nothing:1", bundle.TypeOCIManifest, [][]byte{[]byte("{}"), {}}, emptyConfig)
	s := newSource(t, r, new(watch))
	for name, files := range map[string]int64{"zstd": 3, "twice": 2, "nothing": 2} {
		p, store := resolve(t, s, want(r, name+":1"))
		if p.Files != files {
			t.Errorf("%s: %d blobs, want %d", name, p.Files, files)
		}
		if err := s.Fetch(t.Context(), p, store); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := testkit.CheckStore(t, store); got != int(files)+1 {
			t.Errorf("%s: %d blobs in the store, want %d and the manifest", name, got, files)
		}
	}
}

func TestSharedLayersTravelOnce(t *testing.T) {
	r := testkit.NewRegistry(t)
	base, err := testkit.PayloadLayer("base", 500_000, compression.None)
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"a:1", "b:1", "c:1"} {
		pushImage(t, r, tag, testkit.ImageSpec{Base: []v1.Layer{base}, Labels: map[string]string{"tag": tag}})
	}
	var w watch
	s := newSource(t, r, &w)
	store := newStore(t)
	var group sync.WaitGroup
	for _, tag := range []string{"a:1", "b:1", "c:1"} {
		group.Go(func() {
			p, err := s.Resolve(t.Context(), want(r, tag), store)
			if err == nil {
				err = s.Fetch(t.Context(), p, store)
			}
			if err != nil {
				t.Errorf("%s: %v", tag, err)
			}
		})
	}
	group.Wait()
	if len(w.started) != 1 {
		t.Errorf("%d blobs were downloaded beside the configs, want the one that is shared", len(w.started))
	}
}

func TestRottenManifestIsFetchedAgain(t *testing.T) {
	for name, platforms := range map[string][]string{"upstream's": nil, "derived": {"linux/amd64", "linux/arm64"}} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t)
			pushIndex(t, r, "app:1", attested(t, "x", "amd64", "arm64", "riscv64"))
			s := newSource(t, r, new(watch))
			p, store := resolve(t, s, want(r, "app:1", platforms...))
			path := store.Path(p.Root.Digest)
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, make([]byte, p.Root.Size), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := s.Fetch(t.Context(), p, store); err != nil {
				t.Fatal(err)
			}
			testkit.CheckStore(t, store)
		})
	}
}

func TestLockThatContradictsItself(t *testing.T) {
	r := testkit.NewRegistry(t)
	d := pushImage(t, r, "app:1", testkit.ImageSpec{})
	s := newSource(t, r, new(watch))
	p, store := resolve(t, s, want(r, "app@"+d.String()))
	p.From = r.Host() + "/app@" + cas.DigestOf(nil).String()
	wantCode(t, s.Fetch(t.Context(), p, store), "source/lock-contradiction")

	pushIndex(t, r, "app:2", attested(t, "x", "amd64", "arm64", "riscv64"))
	p, _ = resolve(t, s, want(r, "app:2", "linux/amd64", "linux/arm64"))
	p.Derived.Platforms = []string{"linux/amd64", "linux/riscv64"}
	wantCode(t, s.Fetch(t.Context(), p, newStore(t)), "source/derived-differs")
}
