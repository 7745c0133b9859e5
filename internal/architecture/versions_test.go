package architecture

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// minimum is the oldest version of a module that we accept, if it is built or
// tested with at all.
type minimum struct{ module, version, why string }

var minimums = []minimum{
	{"github.com/distribution/distribution/v3", "v3.1.2", "CVE-2026-85747: the client did not verify the digest of manifests; CVE-2026-33540: credentials sent to another realm"},
	{"github.com/google/go-containerregistry", "v0.21.9", "refuses realms, redirects and upload locations that point into private networks"},
	{"github.com/in-toto/attestation", "v1.2.0", "the statement types that our attestations are written in"},
	{"github.com/klauspost/compress", "v1.20.2", "CVE-2026-116591: a crafted zstd frame of 27 KB made the decoder panic"},
	{"github.com/moby/go-archive", "v0.3.0", "CVE-2026-17106: links led out of the directory that was unpacked into"},
	{"github.com/open-policy-agent/opa", "v1.22.3", "GHSA-g2pf-6v5v-qcc8: signatures of policy bundles could be bypassed"},
	{"github.com/secure-systems-lab/go-securesystemslib", "v0.11.1", "the release that the encryption of key files was tested with against stock cosign"},
	{"github.com/sigstore/cosign/v2", "v2.6.5", "CVE-2026-22703: any transparency log entry was accepted; certificates were not compared with the entry's key"},
	{"github.com/sigstore/sigstore", "v1.10.11", "CVE-2026-24137: path traversal in the cache of the legacy TUF client"},
	{"github.com/sigstore/sigstore-go", "v1.3.0", "CVE-2026-49834: the threshold over several logs could be bypassed; CVE-2026-54787: signing time not checked against the key's window"},
	{"github.com/sigstore/sigstore/pkg/signature/kms/hashivault", "v1.10.11", "goes with sigstore of the same version"},
	{"github.com/sigstore/timestamp-authority/v2", "v2.1.3", "CVE-2026-39984: authorisation bypassed by a bag of certificates"},
	{"github.com/theupdateframework/go-tuf/v2", "v2.4.2", "CVE-2026-23992: a threshold of zero was accepted; CVE-2026-24686: path traversal in multirepo"},
	{"oras.land/oras-go/v2", "v2.6.2", "CVE-2026-48978: credentials sent to another realm; CVE-2026-50163: hard links led out of the directory that was unpacked into"},
}

const minimumGo = "v1.27.3" // CVE-2026-111943 is mended in crypto/x509 since then

func goMod(t *testing.T) *modfile.File {
	t.Helper()
	data, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// requiredModules returns the version of every module that provides a package
// to our programs or tests. go.mod is complete in this since Go 1.17, and
// unlike the go command's own list of all modules it needs no network.
func requiredModules(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, r := range goMod(t).Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions
}

func TestMinimumVersions(t *testing.T) {
	report(t, tooOld(requiredModules(t), minimums))

	file := goMod(t)
	if got := "v" + file.Go.Version; semver.Compare(got, minimumGo) < 0 {
		t.Errorf("go.mod asks for Go %s, want at least %s", got, minimumGo)
	}
	// A replacement would make the versions above say nothing.
	for _, r := range file.Replace {
		t.Errorf("go.mod replaces %s by %s", r.Old.Path, r.New.Path)
	}
}

func tooOld(versions map[string]string, minimums []minimum) (violations []string) {
	for _, m := range minimums {
		got, used := versions[m.module]
		if used && semver.Compare(got, m.version) < 0 {
			violations = append(violations, fmt.Sprintf("%s %s, want at least %s: %s", m.module, got, m.version, m.why))
		}
	}
	return violations
}
