package testkit

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func mustImage(t *testing.T, spec ImageSpec) v1.Image {
	t.Helper()
	image, err := Image(spec)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func push(t *testing.T, r *Registry, ref string, image v1.Image) v1.Hash {
	t.Helper()
	digest, err := r.PushImage(t.Context(), ref, image)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func pull(t *testing.T, r *Registry, repoAndTag string) (v1.Image, error) {
	t.Helper()
	ref, err := r.Ref(repoAndTag)
	if err != nil {
		t.Fatal(err)
	}
	return remote.Image(ref, r.RemoteOptions(t.Context())...)
}

func TestRegistryGivesBackWhatWasPushed(t *testing.T) {
	for name, opts := range map[string][]Option{
		"plain":      nil,
		"tls":        {WithTLS()},
		"auth":       {WithBasicAuth("anna", "geheim")},
		"everything": {WithTLS(), WithBasicAuth("anna", "geheim"), WithStorage(t.TempDir())},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRegistry(t, opts...)
			digest := push(t, r, "plant/app:1.0", mustImage(t, ImageSpec{Seed: name, PayloadSize: 100_000}))
			got, err := pull(t, r, "plant/app@"+digest.String())
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Image(got); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRegistryKeepsContentInItsStorage(t *testing.T) {
	dir := t.TempDir()
	first, err := StartRegistry(WithStorage(dir))
	if err != nil {
		t.Fatal(err)
	}
	digest := push(t, first, "app:1", mustImage(t, ImageSpec{}))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := NewRegistry(t, WithStorage(dir))
	if _, err := pull(t, second, "app@"+digest.String()); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestRegistryRefusesWithoutCredentials(t *testing.T) {
	r := NewRegistry(t, WithBasicAuth("anna", "geheim"))
	response, err := r.Client().Get(r.URL() + "/v2/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d, want 401", response.StatusCode)
	}

	r.password = "falsch"
	_, err = r.PushImage(t.Context(), "app:1", mustImage(t, ImageSpec{}))
	var refused *transport.Error
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusUnauthorized {
		t.Errorf("push with a wrong password: %v, want 401", err)
	}
}

func TestRegistryCertificateIsTrustedByItsAuthorityOnly(t *testing.T) {
	r := NewRegistry(t, WithTLS())
	_, err := http.Get(r.URL() + "/v2/")
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Errorf("a client that does not know the authority: %v", err)
	}
	response, err := r.Client().Get(strings.Replace(r.URL(), "127.0.0.1", "localhost", 1) + "/v2/")
	if err != nil {
		t.Fatalf("by the name localhost: %v", err)
	}
	response.Body.Close()
}

func TestRegistryDeletes(t *testing.T) {
	r := NewRegistry(t)
	digest := push(t, r, "app:1", mustImage(t, ImageSpec{}))
	ref, err := r.Ref("app@" + digest.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Delete(ref, r.RemoteOptions(t.Context())...); err != nil {
		t.Fatal(err)
	}
	if _, err := pull(t, r, "app@"+digest.String()); err == nil {
		t.Error("a deleted manifest was served")
	}
}

func TestRegistryRemembersRequests(t *testing.T) {
	r := NewRegistry(t)
	push(t, r, "app:1", mustImage(t, ImageSpec{}))
	r.ForgetRequests()

	ref, err := r.Ref("app:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Head(ref, r.RemoteOptions(t.Context())...); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range r.Requests() {
		got = append(got, q.Method+" "+q.Path)
	}
	if diff := cmp.Diff([]string{"GET /v2/", "HEAD /v2/app/manifests/1"}, got); diff != "" {
		t.Errorf("requests of a HEAD (-want +got):\n%s", diff)
	}
}

func TestRegistriesDoNotShareContent(t *testing.T) {
	a, b := NewRegistry(t), NewRegistry(t)
	push(t, a, "app:1", mustImage(t, ImageSpec{}))
	if _, err := pull(t, b, "app:1"); err == nil {
		t.Error("an image pushed to one registry was served by another")
	}
}

func TestPushIndexBringsItsImages(t *testing.T) {
	r := NewRegistry(t)
	index, err := MultiArch(ImageSpec{Seed: "index", PayloadSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := r.PushIndex(t.Context(), "app:multi", index)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := r.Ref("app@" + digest.String())
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Index(ref, r.RemoteOptions(t.Context())...)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(got); err != nil {
		t.Error(err)
	}
}

func TestStockSkopeoInspects(t *testing.T) {
	skopeo := Tool(t, "skopeo")
	r := NewRegistry(t, WithTLS(), WithBasicAuth("anna", "geheim"))
	digest := push(t, r, "plant/app:1.0", mustImage(t, ImageSpec{Labels: map[string]string{"line": "7"}}))

	certs := t.TempDir()
	if err := os.WriteFile(filepath.Join(certs, "ca.crt"), r.CAPEM(), 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), skopeo, "inspect", "--cert-dir", certs,
		"--creds", "anna:geheim", "docker://"+r.Host()+"/plant/app:1.0")
	command.Stderr = t.Output()
	out, err := command.Output()
	if err != nil {
		t.Fatalf("skopeo: %v", err)
	}
	var seen struct {
		Digest       string
		RepoTags     []string
		Architecture string
		Labels       map[string]string
	}
	if err := json.Unmarshal(out, &seen); err != nil {
		t.Fatal(err)
	}
	if seen.Digest != digest.String() || !slices.Contains(seen.RepoTags, "1.0") || seen.Architecture != "amd64" || seen.Labels["line"] != "7" {
		t.Errorf("skopeo saw %+v, want digest %s", seen, digest)
	}
}

func TestCloseTwice(t *testing.T) {
	r, err := StartRegistry(WithTLS(), WithBasicAuth("anna", "geheim"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := os.Stat(r.scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the password file's directory is still there: %v", err)
	}
	if _, err := r.Client().Get(r.URL()); err == nil {
		t.Error("a closed registry answered")
	}
}

func body(t *testing.T, response *http.Response) ([]byte, error) {
	t.Helper()
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
