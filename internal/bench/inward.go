package main

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

// plant is what the measurements of the inward side need: a bundle of the same
// images with SBOMs, a gate that trusts its sender, and the images in OCI
// layouts for skopeo.
type plant struct {
	dir      string
	gate     string // packhof-gate
	upstream *testkit.Registry
	template string // data directory before anything was received
	volume   string
	password string
}

func (b *bench) inward() error {
	fmt.Println("exporting the images once more, with SBOMs, for a gate")
	p, err := b.makePlant()
	if err != nil {
		return err
	}
	defer p.upstream.Close()
	if err := b.load(p); err != nil {
		return err
	}
	return b.pull(p)
}

func (b *bench) makePlant() (*plant, error) {
	p := &plant{dir: filepath.Join(b.dir, "plant"), gate: filepath.Join(filepath.Dir(b.packhof), "packhof-gate")}
	p.template, p.password = filepath.Join(p.dir, "template"), filepath.Join(p.dir, "password")
	var err error
	if p.upstream, err = testkit.StartRegistry(testkit.WithTLS(), testkit.WithStorage(filepath.Join(b.dir, "registry"))); err != nil {
		return nil, err
	}
	host := filepath.Join(b.dir, "outside")
	certs := filepath.Join(host, "certs")
	spec := fmt.Sprintf("apiVersion: packhof/v1\nkind: Export\nchannel: bench\nhosts:\n  %q: {ca: certs/ca.crt}\nartifacts:\n", p.upstream.Host())
	for i := range images {
		spec += fmt.Sprintf("  - image: %s/bench/image%d:1\n", p.upstream.Host(), i)
	}
	err = errors.Join(
		os.MkdirAll(certs, 0o755), os.MkdirAll(p.dir, 0o755),
		os.WriteFile(filepath.Join(certs, "ca.crt"), p.upstream.CAPEM(), 0o644),
		os.WriteFile(p.password, []byte("as long as a password\n"), 0o600))
	if err != nil {
		return nil, err
	}
	for _, line := range [][]string{
		{p.gate, "--data", p.template, "init", "--owner", "bench", "--account", "anna", "--password-file", p.password},
		{b.packhof, "init", "--channel", "bench"}, {b.packhof, "key", "generate"}, {b.packhof, "trust", "init", "--owner", "bench"},
	} {
		if _, err := b.command(host, line[0], line[1:]...); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(host, "packhof.yaml"), []byte(spec), 0o644); err != nil {
		return nil, err
	}
	return p, b.exportFor(p, host)
}

// exportFor enrols the gate, exports, and has the gate trust the sender.
func (b *bench) exportFor(p *plant, host string) error {
	enrol, root := filepath.Join(p.template, "enrol.json"), filepath.Join(host, "trust", "root-1.json")
	prints := map[string]string{}
	for _, path := range []string{enrol, root} {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		prints[path] = cas.DigestOf(raw).Hex()
	}
	for _, line := range [][]string{
		{b.packhof, "trust", "add-gate", enrol, "--fingerprint", prints[enrol]}, {b.packhof, "plan"}, {b.packhof, "export", "--quiet"},
		{p.gate, "--data", p.template, "trust", "init", root, "--fingerprint", prints[root]},
	} {
		if _, err := b.command(host, line[0], line[1:]...); err != nil {
			return err
		}
	}
	p.volume = filepath.Join(host, "bench-000001.tar")
	return b.layouts(p)
}

// layouts brings the images to where skopeo pushes them from.
func (b *bench) layouts(p *plant) error {
	for i := range images {
		if _, err := b.command(p.dir, "skopeo", "copy", "--quiet", "--insecure-policy", "--src-cert-dir", filepath.Join(b.dir, "outside", "certs"),
			"--dest-shared-blob-dir", filepath.Join(p.dir, "blobs"),
			fmt.Sprintf("docker://%s/bench/image%d:1", p.upstream.Host(), i), fmt.Sprintf("oci:%s:1", filepath.Join(p.dir, fmt.Sprintf("image%d", i)))); err != nil {
			return err
		}
	}
	return nil
}

// load measures receive and release into an empty registry against skopeo
// pushing the same images into another one.
func (b *bench) load(p *plant) error {
	both, err := b.inTurn(b.rounds,
		func() (run, error) { return b.intoRegistry(p, b.push) },
		func() (run, error) { return b.intoRegistry(p, b.clear) })
	if err != nil {
		return err
	}
	b.results = append(b.results,
		both.sooner(fmt.Sprintf("receive, prove, judge and release %d images, %d MiB, into an empty registry and the depot", images, targetMiB),
			"skopeo pushing them from OCI layouts, proving nothing", 1.2),
		both.memory("peak memory of that"))
	return nil
}

// intoRegistry gives something an empty registry to fill.
func (b *bench) intoRegistry(p *plant, fill func(*plant, *testkit.Registry) (run, error)) (r run, err error) {
	storage := filepath.Join(b.dir, "destination")
	if err := os.RemoveAll(storage); err != nil {
		return run{}, err
	}
	registry, err := testkit.StartRegistry(testkit.WithStorage(storage))
	if err != nil {
		return run{}, err
	}
	defer func() { err = errors.Join(err, registry.Close(), os.RemoveAll(storage)) }()
	return fill(p, registry)
}

func (b *bench) push(p *plant, registry *testkit.Registry) (run, error) {
	settle()
	var sum run
	for i := range images {
		r, err := b.command(p.dir, "skopeo", "copy", "--quiet", "--insecure-policy", "--preserve-digests", "--dest-tls-verify=false", "--src-shared-blob-dir", filepath.Join(p.dir, "blobs"),
			fmt.Sprintf("oci:%s:1", filepath.Join(p.dir, fmt.Sprintf("image%d", i))), fmt.Sprintf("docker://%s/bench/image%d:1", registry.Host(), i))
		if err != nil {
			return run{}, err
		}
		sum.took, sum.peak = sum.took+r.took, max(sum.peak, r.peak)
	}
	return sum, nil
}

// clear takes the bundle in with a gate that has never seen it. What a person
// does in between is not measured.
func (b *bench) clear(p *plant, registry *testkit.Registry) (run, error) {
	data := filepath.Join(p.dir, "gate")
	if err := os.RemoveAll(data); err != nil {
		return run{}, err
	}
	if _, err := b.command(p.dir, "cp", "-a", p.template, data); err != nil {
		return run{}, err
	}
	config, err := os.OpenFile(filepath.Join(data, "gate.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return run{}, err
	}
	_, err = fmt.Fprintf(config, "\ndestinations:\n  - {name: registry, type: registry, registry: %q, plain: true, accepts: [image]}\n", registry.Host())
	if err := errors.Join(err, config.Close()); err != nil {
		return run{}, err
	}
	settle()
	received, err := b.command(p.dir, p.gate, "--data", data, "receive", "--quiet", p.volume)
	if err != nil {
		return run{}, err
	}
	if err := b.approve(p, data); err != nil {
		return run{}, err
	}
	released, err := b.command(p.dir, p.gate, "--data", data, "release", "--quiet", "1")
	fmt.Printf(" (%.1f + %.1f)", received.took.Seconds(), released.took.Seconds())
	return run{took: received.took + released.took, peak: max(received.peak, released.peak)}, err
}

func (b *bench) approve(p *plant, data string) error {
	c := exec.CommandContext(b.ctx, p.gate, "--data", data, "show", "1", "-o", "json")
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("show: %w\n%s", err, said.String())
	}
	var shown struct {
		Review struct {
			Digest string `json:"review"`
		} `json:"review"`
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		return err
	}
	_, err = b.command(p.dir, p.gate, "--data", data, "approve", "1", "--as", "anna", "--password-file", p.password, "--reason", "bench", "--yes", "--review", shown.Review.Digest)
	return err
}

// pull measures the depot against the CNCF registry, both over TLS, serving
// the same layer to the same client.
func (b *bench) pull(p *plant) error {
	data := filepath.Join(p.dir, "gate")
	address, stop, err := b.serve(p, data)
	if err != nil {
		return err
	}
	defer stop()
	layer, repository, err := b.largestLayer(p)
	if err != nil {
		return err
	}
	depotURL := fmt.Sprintf("https://%s/v2/%s/%s/blobs/%s", address, strings.ReplaceAll(p.upstream.Host(), ":", "-"), repository, layer)
	theirURL := fmt.Sprintf("https://%s/v2/%s/blobs/%s", p.upstream.Host(), repository, layer)
	both, err := b.inTurn(b.rounds+2, // the first ones warm up
		func() (run, error) {
			return b.command(p.dir, "curl", "-sSf", "--cacert", filepath.Join(b.dir, "outside", "certs", "ca.crt"), "-o", "/dev/null", theirURL)
		},
		func() (run, error) {
			return b.command(p.dir, "curl", "-sSf", "--cacert", filepath.Join(data, "tls", "cert.pem"), "-o", "/dev/null", depotURL)
		})
	if err != nil {
		return err
	}
	b.results = append(b.results, both.faster(fmt.Sprintf("speed of a pull from the depot, one layer of %d MiB over TLS", sharedMiB),
		"CNCF distribution serving the same layer over TLS", 0.8))
	return nil
}

// serve starts the gate where nobody else listens.
func (b *bench) serve(p *plant, data string) (address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address = l.Addr().String()
	if err := l.Close(); err != nil {
		return "", nil, err
	}
	c := exec.CommandContext(b.ctx, p.gate, "--data", data, "serve", "--listen", address)
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = c.Process.Signal(os.Interrupt) // it may have ended by itself
		_ = c.Wait()
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			return address, stop, conn.Close()
		}
	}
	stop()
	return "", nil, fmt.Errorf("the gate does not answer: %s", said.String())
}

// largestLayer names a shared layer.
func (b *bench) largestLayer(p *plant) (digest, repository string, err error) {
	out, err := exec.CommandContext(b.ctx, "skopeo", "inspect", "--raw", "--cert-dir", filepath.Join(b.dir, "outside", "certs"),
		fmt.Sprintf("docker://%s/bench/image0:1", p.upstream.Host())).Output()
	if err != nil {
		return "", "", err
	}
	var manifest struct {
		Layers []struct {
			Digest string `json:"digest"`
			Size   int64  `json:"size"`
		} `json:"layers"`
	}
	if err := json.Unmarshal(out, &manifest); err != nil {
		return "", "", err
	}
	var largest int64
	for _, l := range manifest.Layers {
		if l.Size > largest {
			largest, digest = l.Size, l.Digest
		}
	}
	return digest, "bench/image0", nil
}
