package signing_test

import (
	"crypto"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/signing"
	sgbundle "github.com/sigstore/sigstore-go/pkg/bundle"
	sgroot "github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

const (
	conformanceVectors = 70
	conformanceIssuer  = "https://token.actions.githubusercontent.com"
	conformanceSAN     = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main"
)

// conformanceDir looks for the vectors of sigstore-conformance beside the
// project. They are not ours to copy.
func conformanceDir(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Skip("the project root was not found")
		}
		dir = parent
	}
	vectors := filepath.Join(dir, "..", "shared", "data", "sigstore-conformance")
	if _, err := os.Stat(vectors); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the sigstore-conformance vectors are not beside the project (../shared/data/sigstore-conformance)")
	}
	return vectors
}

// T-35: the verification core that is pinned gives the right answer to every
// vector; a release that does not must not be taken. And none of the vectors
// is a bundle of ours: each has a certificate, a log entry or a timestamp.
func TestT35ConformanceVectors(t *testing.T) {
	base := conformanceDir(t)
	dirs, err := filepath.Glob(filepath.Join(base, "bundle-verify", "*", "bundle.sigstore.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) != conformanceVectors {
		t.Fatalf("%d vectors, want %d", len(dirs), conformanceVectors)
	}
	publicGood := publicGoodRoot(t)
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			raw := read(t, file)
			if _, err := signing.ParseBundle(raw); codeOf(err) != signing.CodeBadBundle {
				t.Errorf("taken for a bundle of ours: %v", err)
			}
			err := verifyVector(t, base, dir, raw, publicGood)
			if fail := strings.HasSuffix(dir, "_fail"); fail != (err != nil) {
				t.Errorf("want failure %t, got %v", fail, err)
			}
		})
	}
}

func verifyVector(t *testing.T, base, dir string, raw, publicGood []byte) error {
	t.Helper()
	var entity sgbundle.Bundle
	if err := entity.UnmarshalJSON(raw); err != nil {
		return err
	}
	trusted, err := sgroot.NewTrustedRootFromJSON(readOr(t, filepath.Join(dir, "trusted_root.json"), publicGood))
	if err != nil {
		return err
	}
	var material sgroot.TrustedMaterial = trusted
	options := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	var policy verify.PolicyOption
	if pem := readOr(t, filepath.Join(dir, "key.pub"), nil); pem != nil {
		policy = verify.WithKey()
		key, err := keyMaterial(pem)
		if err != nil {
			return err
		}
		material = sgroot.TrustedMaterialCollection{material, key}
	} else {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
		issuer := strings.TrimSpace(string(readOr(t, filepath.Join(dir, "issuer"), []byte(conformanceIssuer))))
		san := strings.TrimSpace(string(readOr(t, filepath.Join(dir, "identity"), []byte(conformanceSAN))))
		identity, err := verify.NewShortCertificateIdentity(issuer, "", san, "")
		if err != nil {
			t.Fatal(err)
		}
		policy = verify.WithCertificateIdentity(identity)
	}
	verifier, err := verify.NewVerifier(material, options...)
	if err != nil {
		return err
	}
	artifact := readOr(t, filepath.Join(dir, "artifact"), nil)
	if artifact == nil {
		artifact = read(t, filepath.Join(base, "a.txt"))
	}
	_, err = verifier.Verify(&entity, verify.NewPolicy(verify.WithArtifactDigest("sha256", digest(artifact)), policy))
	return err
}

// publicGoodRoot is the trusted root of Sigstore's public instance as it lies
// among sigstore-go's test data, for the vectors that bring none. The package
// there is not imported: it would bring a test framework into our go.mod.
func publicGoodRoot(t *testing.T) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/sigstore/sigstore-go").Output()
	if err != nil {
		t.Skipf("the source of sigstore-go was not found: %v", err)
	}
	return read(t, filepath.Join(strings.TrimSpace(string(out)), "pkg", "testing", "data", "trusted-roots", "public-good.json"))
}

func keyMaterial(pem []byte) (sgroot.TrustedMaterial, error) {
	public, err := cryptoutils.UnmarshalPEMToPublicKey(pem)
	if err != nil {
		return nil, err
	}
	verifier, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return sgroot.NewTrustedPublicKeyMaterial(func(string) (sgroot.TimeConstrainedVerifier, error) {
		return sgroot.NewExpiringKey(verifier, time.Time{}, time.Time{}), nil
	}), nil
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func readOr(t *testing.T, file string, otherwise []byte) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return otherwise
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
