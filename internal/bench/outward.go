package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

// Five images that share their lower layers, about 1.4 GB in all.
const (
	images    = 5
	shared    = 2
	sharedMiB = 300
	ownMiB    = 150
	targetMiB = shared*sharedMiB + images*ownMiB
)

func (b *bench) upstream() error {
	fmt.Printf("making %d images, %d MiB, in a registry on this machine\n", images, targetMiB)
	var err error
	if b.registry, err = testkit.StartRegistry(testkit.WithStorage(filepath.Join(b.dir, "registry"))); err != nil {
		return err
	}
	var base []v1.Layer
	for i := range shared {
		layer, err := testkit.PayloadLayer(fmt.Sprintf("shared %d", i), sharedMiB<<20, "")
		if err != nil {
			return err
		}
		base = append(base, layer)
	}
	for i := range images {
		image, err := testkit.Image(testkit.ImageSpec{Seed: fmt.Sprintf("image %d", i), Base: base, PayloadSize: ownMiB << 20})
		if err != nil {
			return err
		}
		if _, err := b.registry.PushImage(b.ctx, fmt.Sprintf("bench/image%d:1", i), image); err != nil {
			return err
		}
	}
	return b.project()
}

// project sets up what both sides of the first measurement need beforehand.
func (b *bench) project() error {
	dir := filepath.Join(b.dir, "host")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := b.command(dir, b.packhof, "init", "--channel", "bench"); err != nil {
		return err
	}
	spec := fmt.Sprintf("apiVersion: packhof/v1\nkind: Export\nchannel: bench\nhosts:\n  %q: {plainHTTP: true}\nartifacts:\n", b.registry.Host())
	for i := range images {
		spec += fmt.Sprintf("  - image: %s/bench/image%d:1\n", b.registry.Host(), i)
	}
	if err := os.WriteFile(filepath.Join(dir, "packhof.yaml"), []byte(spec), 0o644); err != nil {
		return err
	}
	enrol, err := filepath.Abs("testdata/enrol.json")
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(enrol)
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"key", "generate"}, {"trust", "init", "--owner", "bench"},
		{"trust", "add-gate", enrol, "--fingerprint", signing.FingerprintOf(raw).String()}, {"plan"},
	} {
		if _, err := b.command(dir, b.packhof, args...); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) export() error {
	p, err := b.inTurn(b.rounds, b.skopeo, b.freshExport)
	if err != nil {
		return err
	}
	b.results = append(b.results,
		p.sooner(fmt.Sprintf("export of %d images sharing layers, %d MiB, without scan and read-back", images, targetMiB), "skopeo into OCI layouts with shared blobs", 1.0),
		p.memory("peak memory of that export"))
	return b.secondExport()
}

// skopeo copies the images one by one into layouts that share their blobs.
func (b *bench) skopeo() (run, error) {
	dir := filepath.Join(b.dir, "skopeo")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return run{}, err
	}
	settle()
	var sum run
	for i := range images {
		r, err := b.command(dir, "skopeo", "copy", "--quiet", "--insecure-policy", "--src-tls-verify=false",
			"--dest-shared-blob-dir", filepath.Join(dir, "blobs"),
			fmt.Sprintf("docker://%s/bench/image%d:1", b.registry.Host(), i), fmt.Sprintf("oci:%s:1", filepath.Join(dir, fmt.Sprintf("image%d", i))))
		if err != nil {
			return run{}, err
		}
		sum.took += r.took
	}
	return sum, os.RemoveAll(dir)
}

// freshExport exports with an empty store. The ledger is put back afterwards,
// so that every round seals anew.
func (b *bench) freshExport() (run, error) {
	dir := filepath.Join(b.dir, "host")
	ledger := filepath.Join(dir, "packhof.ledger")
	if err := os.RemoveAll(filepath.Join(dir, ".packhof")); err != nil {
		return run{}, err
	}
	if err := os.WriteFile(ledger, []byte(`{"format":"packhof.ledger/v1","channel":"bench"}`+"\n"), 0o644); err != nil {
		return run{}, err
	}
	settle()
	return b.command(dir, b.packhof, "export", "--quiet", "--no-scan", "--no-readback")
}

func (b *bench) secondExport() error {
	b.registry.ForgetRequests()
	dir := filepath.Join(b.dir, "host")
	r, err := b.command(dir, b.packhof, "export", "--quiet", "--no-scan", "--no-readback")
	if err != nil {
		return err
	}
	blobs := 0
	for _, request := range b.registry.Requests() {
		if request.Method == "GET" && strings.Contains(request.Path, "/blobs/") {
			blobs++
		}
	}
	b.results = append(b.results, result{
		what: "blobs fetched by the same export again", ours: fmt.Sprintf("%d in %.1f s", blobs, r.took.Seconds()), theirs: "–",
		value: float64(blobs), format: "%.0f", bound: "0", holds: blobs == 0,
	})
	return nil
}

// verify measures both programs on one core, with the file in the page cache.
func (b *bench) verify() error {
	dir := filepath.Join(b.dir, "host")
	volume := filepath.Join(dir, "bench-000001.tar")
	info, err := os.Stat(volume)
	if err != nil {
		return err
	}
	p, err := b.inTurn(b.rounds+2, // the first ones warm up
		func() (run, error) {
			return b.command(dir, "taskset", "-c", "0", "openssl", "dgst", "-sha256", volume)
		},
		func() (run, error) {
			return b.command(dir, "taskset", "-c", "0", b.packhof, "verify", "--quiet", volume)
		})
	if err != nil {
		return err
	}
	b.results = append(b.results,
		p.faster(fmt.Sprintf("speed of verify, %d MiB, one core", info.Size()>>20), "openssl dgst -sha256 of the same file", 0.9),
		p.memory("peak memory of that verify"))
	return nil
}
