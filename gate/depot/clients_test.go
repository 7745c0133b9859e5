package depot

import (
	"encoding/json/v2"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

// plant is a depot with TLS and what a client needs to trust it.
type plant struct {
	server *httptest.Server
	host   string
	certs  string // folder with ca.crt
}

// plant starts the server of a shelf that is stocked.
func (s *shelf) plant(t *testing.T) *plant {
	t.Helper()
	p := &plant{server: s.serveTLS(), certs: t.TempDir()}
	p.host = p.server.Listener.Addr().String()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	if err := os.WriteFile(p.ca(), ca, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *plant) ca() string { return filepath.Join(p.certs, "ca.crt") }

// run runs a program of others and gives what it printed.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), testkit.Tool(t, program), args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir, "TMPDIR="+dir, "NO_COLOR=1", "http_proxy=", "https_proxy=", "HTTP_PROXY=", "HTTPS_PROXY=")
	var complaints strings.Builder
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, complaints.String())
	}
	return string(out)
}

func TestSkopeo(t *testing.T) {
	s := newShelf(t)
	image := s.addImage("team/app", "1.0", must(testkit.Image(testkit.ImageSpec{Seed: "skopeo", PayloadSize: 2 << 20})))
	multi := must(testkit.MultiArch(testkit.ImageSpec{Seed: "multi", PayloadSize: 1 << 20}))
	s.addIndex("team/multi", "2", multi)
	p := s.plant(t)
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.json")
	if err := os.WriteFile(policy, []byte(`{"default":[{"type":"insecureAcceptAnything"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	raw := run(t, dir, "skopeo", "inspect", "--raw", "--cert-dir", p.certs, "docker://"+p.host+"/team/app:1.0")
	if got := cas.DigestOf([]byte(raw)); got != image.Digest {
		t.Errorf("skopeo inspects %s, want %s", got, image.Digest)
	}
	arm := must(cas.ParseDigest(must(multi.IndexManifest()).Manifests[1].Digest.String()))
	for ref, want := range map[string]bundle.Digest{"/team/app:1.0": image.Digest, "/team/app@" + image.Digest.String(): image.Digest, "/team/multi:2": arm} {
		// Old versions of skopeo cannot copy a whole index without changing it.
		arch := map[bool]string{true: "arm64", false: "amd64"}[want == arm]
		out := filepath.Join(t.TempDir(), "copied")
		run(t, dir, "skopeo", "--override-arch", arch, "copy", "--policy", policy, "--preserve-digests", "--src-cert-dir", p.certs, "docker://"+p.host+ref, "dir:"+out)
		b := must(os.ReadFile(filepath.Join(out, "manifest.json")))
		if got := cas.DigestOf(b); got != want {
			t.Errorf("skopeo copied %s, want %s", got, want)
		}
	}
	var tags struct{ Tags []string }
	if err := json.Unmarshal([]byte(run(t, dir, "skopeo", "list-tags", "--cert-dir", p.certs, "docker://"+p.host+"/team/app")), &tags, json.MatchCaseInsensitiveNames(true)); err != nil || !slices.Equal(tags.Tags, []string{"1.0"}) {
		t.Errorf("skopeo lists %v, %v", tags.Tags, err)
	}
}

func TestOras(t *testing.T) {
	s := newShelf(t)
	files := map[string]string{"config.json": "{}", "weights/model.bin": strings.Repeat("w", 2<<20)}
	tree := s.addTree("models/tiny", "v1", bundle.Model, files)
	sbom := s.addReferrer("models/tiny", "application/vnd.cyclonedx+json", `{"bomFormat":"CycloneDX"}`, tree, nil)
	p := s.plant(t)
	dir, out := t.TempDir(), t.TempDir()
	run(t, dir, "oras", "pull", "--ca-file", p.ca(), "--output", out, p.host+"/models/tiny:v1")
	for path, want := range files {
		if got := must(os.ReadFile(filepath.Join(out, path))); string(got) != want {
			t.Errorf("oras pulled %d bytes of %s, want %d", len(got), path, len(want))
		}
	}
	found := run(t, dir, "oras", "discover", "--ca-file", p.ca(), "--format", "json", "--artifact-type", "application/vnd.cyclonedx+json", p.host+"/models/tiny:v1")
	if !strings.Contains(found, sbom.String()) {
		t.Errorf("oras does not discover %s:\n%s", sbom, found)
	}
	for _, want := range []string{"v1", "models/tiny"} {
		what := []string{"repo", "tags", "--ca-file", p.ca(), p.host + "/models/tiny"}
		if want == "models/tiny" {
			what = []string{"repo", "ls", "--ca-file", p.ca(), p.host}
		}
		if got := strings.TrimSpace(run(t, dir, "oras", what...)); got != want {
			t.Errorf("oras %s: %q, want %q", strings.Join(what, " "), got, want)
		}
	}
	run(t, dir, "oras", "cp", "--recursive", "--from-ca-file", p.ca(), p.host+"/models/tiny:v1", "--to-oci-layout", filepath.Join(out, "layout:v1"))
	if _, err := os.Stat(filepath.Join(out, "layout", "blobs", "sha256", sbom.Hex())); err != nil {
		t.Errorf("oras copies without the referrer: %v", err)
	}
}

func TestGoContainerRegistry(t *testing.T) {
	s := newShelf(t)
	root := s.addIndex("team/multi", "2", must(testkit.MultiArch(testkit.ImageSpec{Seed: "multi", PayloadSize: 2 << 20})))
	sbom := s.addReferrer("team/multi", "application/vnd.cyclonedx+json", `{}`, root, map[string]string{"a": "b"})
	p := s.plant(t)
	opts := []remote.Option{remote.WithContext(t.Context()), remote.WithTransport(p.server.Client().Transport)}
	ref := must(name.ParseReference(p.host + "/team/multi:2"))
	index := must(must(remote.Get(ref, opts...)).ImageIndex())
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if got := must(index.Digest()).String(); got != root.Digest.String() {
		t.Errorf("pulled %s, want %s", got, root.Digest)
	}
	referrers := must(must(remote.Referrers(ref.Context().Digest(root.Digest.String()), opts...)).IndexManifest())
	if len(referrers.Manifests) != 1 || referrers.Manifests[0].Digest.String() != sbom.String() || referrers.Manifests[0].Annotations["a"] != "b" {
		t.Errorf("referrers: %+v", referrers.Manifests)
	}
	if diff := cmp.Diff([]string{"2"}, must(remote.List(ref.Context(), opts...))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"team/multi"}, must(remote.Catalog(t.Context(), ref.Context().Registry, opts...))); diff != "" {
		t.Error(diff)
	}
	if err := remote.Tag(ref.Context().Tag("mine"), must(remote.Get(ref, opts...)), opts...); err == nil {
		t.Error("a client could write a tag")
	}
}

func TestCurl(t *testing.T) {
	s := newShelf(t)
	s.addTree("set", "1", bundle.Files, map[string]string{"big file.bin": strings.Repeat("0123456789", 1<<20)})
	p := s.plant(t)
	dir := t.TempDir()
	url := "https://" + p.host + "/files/set/1/big%20file.bin"
	common := []string{"--silent", "--show-error", "--fail", "--cacert", p.ca(), "--output", "got.bin"}
	run(t, dir, "curl", append(common, "--range", "0-999999", url)...)
	run(t, dir, "curl", append(common, "--continue-at", "-", url)...)
	if got := must(os.ReadFile(filepath.Join(dir, "got.bin"))); string(got) != strings.Repeat("0123456789", 1<<20) {
		t.Errorf("curl resumed to %d bytes", len(got))
	}
}

// The suite of the OCI distribution specification passes for what a read-only
// registry has: pull and content discovery. It is run in parts, since as a
// whole, without pushing, it crashes over its own report after the last test.
func TestOCIConformance(t *testing.T) {
	conformance := testkit.Tool(t, "conformance")
	s := newShelf(t)
	image := s.addImage("team/app", "1.0", must(testkit.Image(testkit.ImageSpec{Seed: "conformance", PayloadSize: 1 << 20})))
	index := s.addIndex("team/app", "2.0", must(testkit.MultiArch(testkit.ImageSpec{Seed: "multi"})))
	sbom := s.addReferrer("team/app", "application/vnd.cyclonedx+json", `{}`, image, nil)
	p := s.plant(t)
	blobs := []string{}
	for d, b := range s.blobs["team/app"] {
		if !b.Manifest {
			blobs = append(blobs, d.String())
		}
	}
	for part, interfaces := range map[string][]string{
		"ping":      {"Ping"},
		"empty":     {"Tag listing", "Referrers"},
		"read-only": {"Tag listing", "Blob get", "Blob head", "Manifest get by digest", "Manifest get by tag", "Manifest head by digest", "Manifest head by tag", "Referrers"},
	} {
		dir := t.TempDir()
		command := exec.CommandContext(t.Context(), conformance)
		command.Dir = dir
		command.Env = append(os.Environ(),
			"SSL_CERT_FILE="+p.ca(), "NO_PROXY=127.0.0.1", "OCI_FILTER_TEST=OCI Conformance Test/"+part,
			"OCI_VERSION=1.1", "OCI_REGISTRY="+p.host, "OCI_REPO1=team/app", "OCI_RESULTS_DIR="+dir,
			"OCI_API_PULL=true", "OCI_API_TAGS_LIST=true", "OCI_API_REFERRER=true", "OCI_API_BLOBS_DIGEST_HEADER=true", "OCI_DATA_SHA512=false",
			"OCI_API_PUSH=false", "OCI_API_BLOBS_DELETE=false", "OCI_API_MANIFESTS_DELETE=false", "OCI_API_TAGS_DELETE=false",
			"OCI_RO_DATA_TAGS=1.0 2.0", "OCI_RO_DATA_MANIFESTS="+strings.Join([]string{image.Digest.String(), index.Digest.String(), sbom.String()}, " "),
			"OCI_RO_DATA_BLOBS="+strings.Join(blobs, " "), "OCI_RO_DATA_REFERRERS="+image.Digest.String(),
		)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", part, err, out)
		}
		for _, name := range interfaces {
			if !passed(string(out), name) {
				t.Errorf("%s: %s did not pass:\n%s", part, name, out)
			}
		}
	}
}

// passed looks for an interface in the summary of the suite.
func passed(report, name string) bool {
	for line := range strings.Lines(report) {
		what, verdict, ok := strings.Cut(line, ":")
		if ok && strings.TrimRight(strings.TrimSpace(what), ".") == name && strings.TrimSpace(verdict) == "Pass" {
			return true
		}
	}
	return false
}
