package oci_test

import (
	"context"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/mirror/sourcetest"
)

func TestSourceConforms(t *testing.T) {
	for name, c := range map[string]struct {
		push      func(t *testing.T, r *testkit.Registry, seed string)
		platforms []string
		opts      []testkit.Option
	}{
		"an image":              {push: image},
		"an image over TLS":     {push: image, opts: []testkit.Option{testkit.WithTLS()}},
		"all of an index":       {push: index},
		"one of three":          {push: index, platforms: []string{"linux/arm64"}},
		"two of three":          {push: index, platforms: []string{"linux/arm64", "linux/amd64"}},
		"a config-less package": {push: artifact},
	} {
		t.Run(name, func(t *testing.T) {
			r := testkit.NewRegistry(t, c.opts...)
			c.push(t, r, "first")
			var w watch
			sourcetest.Test(t, sourcetest.Case{
				Source:  newSource(t, r, &w),
				Request: want(r, "app:1", c.platforms...),
				Unknown: want(r, "app:2"),
				Mutate:  func(t *testing.T) { c.push(t, r, "second") },
				Fetches: func() int { return blobsAsked(r) },
				Asked:   func() int { return len(r.Requests()) },
				Interrupt: func(cancel context.CancelFunc) {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.onAdvance = cancel
				},
			})
		})
	}
}

func image(t *testing.T, r *testkit.Registry, seed string) {
	pushImage(t, r, "app:1", testkit.ImageSpec{Seed: seed, PayloadSize: 3_000_000})
}

func index(t *testing.T, r *testkit.Registry, seed string) {
	pushIndex(t, r, "app:1", attested(t, seed, "amd64", "arm64", "riscv64"))
}

func artifact(t *testing.T, r *testkit.Registry, seed string) {
	pushRaw(t, r, "app:1", bundle.TypeOCIManifest, [][]byte{[]byte("{}"), []byte("some file: " + seed)}, emptyConfig)
}

func emptyConfig(d []bundle.OCIDescriptor) bundle.OCI {
	d[0].MediaType = "application/vnd.oci.empty.v1+json"
	d[1].MediaType = "text/plain"
	return bundle.OCI{ArtifactType: "application/vnd.example.v1", Config: &d[0], Layers: d[1:]}
}

func TestPinnedSaysWhatWasWritten(t *testing.T) {
	r := testkit.NewRegistry(t)
	d := pushImage(t, r, "team/app:1.0", testkit.ImageSpec{Seed: "x", PayloadSize: 1000})
	s := newSource(t, r, new(watch))
	at := "@" + d.String()
	for _, c := range []struct {
		from, version, wantVersion string
		verified                   bundle.Verified
	}{
		{":1.0", "", "1.0", bundle.VerifiedLock},
		{at, "", d.Short(), bundle.VerifiedDigest},
		{":1.0" + at, "", "1.0", bundle.VerifiedDigest},
		{":1.0", "2026-11", "2026-11", bundle.VerifiedLock},
	} {
		w := want(r, "team/app"+c.from)
		w.Version, w.Labels = c.version, map[string]string{"line": "7"}
		p, store := resolve(t, s, w)
		if p.From != w.From || p.Version != c.wantVersion || p.Verified != c.verified || p.Root.Digest != d ||
			p.Source != "oci" || p.Transport != bundle.TransportPlain || p.Labels["line"] != "7" || p.Derived != nil {
			t.Errorf("%s: %+v", w.From, p)
		}
		if p.Files != 3 || len(p.Subjects) != 1 || p.Subjects[0] != (mirror.Subject{Digest: d, Platform: "linux/amd64"}) {
			t.Errorf("%s: %d files, subjects %v", w.From, p.Files, p.Subjects)
		}
		if got := testkit.CheckStore(t, store); got != 2 {
			t.Errorf("resolve left %d blobs in the store, want manifest and config", got)
		}
	}
}

func TestReferenceWithoutTag(t *testing.T) {
	r := testkit.NewRegistry(t)
	_, err := newSource(t, r, new(watch)).Resolve(t.Context(), mirror.Request{From: "nginx"}, newStore(t))
	wantCode(t, err, "reference/malformed")
}

func TestArtifactIsItsOwnSubject(t *testing.T) {
	r := testkit.NewRegistry(t)
	artifact(t, r, "x")
	p, _ := resolve(t, newSource(t, r, new(watch)), want(r, "app:1"))
	if p.Root.ArtifactType != "application/vnd.example.v1" || len(p.Subjects) != 1 || p.Subjects[0].Digest != p.Root.Digest || p.Subjects[0].Platform != "" {
		t.Errorf("root %+v, subjects %v", p.Root, p.Subjects)
	}
}
