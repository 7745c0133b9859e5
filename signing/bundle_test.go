package signing_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json/jsontext"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/packhof/packhof/signing"
	sgroot "github.com/sigstore/sigstore-go/pkg/root"
)

func TestSignIsDeterministicAndCanonical(t *testing.T) {
	private, _, err := signing.GenerateKey([]byte("pw"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := signing.ParsePrivateKey(private, []byte("pw"))
	if err != nil {
		t.Fatal(err)
	}
	payload := []byte(`{"format":"packhof.bundle/v1"}`)
	first, second := sign(t, key, payload), sign(t, key, payload)
	if diff := cmp.Diff(string(first), string(second)); diff != "" {
		t.Errorf("two signatures of one key differ:\n%s", diff)
	}
	value := jsontext.Value(bytes.Clone(first))
	if err := value.Canonicalize(); err != nil || !bytes.Equal(value, first) {
		t.Errorf("not canonical: %v", err)
	}
	bundle, err := signing.ParseBundle(first)
	if err != nil {
		t.Fatal(err)
	}
	id, err := bundle.Verify(payload, newSigner(t).public, newEd25519(t), signing.PublicKey{}, key.Public())
	if err != nil || id != key.Public().ID() || bundle.Claims() != id {
		t.Errorf("signer %s, claims %s, want %s: %v", id, bundle.Claims(), key.Public().ID(), err)
	}
	_, err = bundle.Verify(payload, newSigner(t).public)
	wantCode(t, err, signing.CodeNotGenuine)
	if got, want := signing.BundleFileName(id), id.String()[:16]+".sigstore.json"; got != want {
		t.Errorf("file name %q, want %q", got, want)
	}
}

// oddSigner is a signing service gone wrong.
type oddSigner struct {
	public signing.PublicKey
	answer []byte
	err    error
}

func (s oddSigner) Public() signing.PublicKey { return s.public }
func (s oddSigner) SignDigest(context.Context, [sha256.Size]byte) ([]byte, error) {
	return s.answer, s.err
}

func TestSignDistrustsItsSigner(t *testing.T) {
	key := newSigner(t)
	other, err := key.SignDigest(t.Context(), sha256.Sum256([]byte("other bytes")))
	if err != nil {
		t.Fatal(err)
	}
	offline := errors.New("token is not there")
	for _, c := range []struct {
		name   string
		signer signing.Signer
		code   string
	}{
		{"fails", oddSigner{key.public, nil, offline}, signing.CodeSigner},
		{"no bytes", oddSigner{key.public, nil, nil}, signing.CodeSigner},
		{"signature of other bytes", oddSigner{key.public, other, nil}, signing.CodeSigner},
		{"Ed25519", oddSigner{newEd25519(t), nil, nil}, signing.CodeKeyAlgorithm},
		{"no key", oddSigner{}, signing.CodeKeyAlgorithm},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := signing.Sign(t.Context(), c.signer, []byte("payload"))
			wantCode(t, err, c.code)
			if raw != nil {
				t.Error("an error and a bundle")
			}
		})
	}
	if _, err := signing.Sign(t.Context(), oddSigner{key.public, nil, offline}, nil); !errors.Is(err, offline) {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestFileKeyObeysItsContext(t *testing.T) {
	private, _, err := signing.GenerateKey([]byte("pw"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := signing.ParsePrivateKey(private, []byte("pw"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := signing.Sign(ctx, key, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestParseBundleIsStrict(t *testing.T) {
	good := sign(t, newSigner(t), []byte("payload"))
	for name, raw := range map[string][]byte{
		"empty":            nil,
		"null":             []byte("null"),
		"too large":        append(bytes.Clone(good), bytes.Repeat([]byte(" "), signing.MaxBundle)...),
		"trailing newline": append(bytes.Clone(good), '\n'),
		"leading space":    append([]byte(" "), good...),
		"snake case":       bytes.Replace(good, []byte("mediaType"), []byte("media_type"), 1),
		"spaces":           bytes.ReplaceAll(good, []byte(`":`), []byte(`": `)),
		"escape":           bytes.Replace(good, []byte("SHA2_256"), []byte(`SHA2\u005f256`), 1),
		"enum as number":   bytes.Replace(good, []byte(`"SHA2_256"`), []byte(`1`), 1),
		"duplicate":        bytes.Replace(good, []byte(`{"mediaType"`), []byte(`{"mediaType":"x","mediaType"`), 1),
		"deep":             []byte(strings.Repeat("[", 100)),
		"unknown member":   edit(t, good, func(d map[string]any) { d["more"] = 1 }),
		"older media type": edit(t, good, func(d map[string]any) {
			d["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.3"
		}),
		"no signature":    edit(t, good, func(d map[string]any) { delete(d, "messageSignature") }),
		"empty signature": edit(t, good, func(d map[string]any) { at(d, "messageSignature")["signature"] = "" }),
		"no digest":       edit(t, good, func(d map[string]any) { delete(at(d, "messageSignature"), "messageDigest") }),
		"SHA-512": edit(t, good, func(d map[string]any) {
			at(d, "messageSignature", "messageDigest")["algorithm"] = "SHA2_512"
		}),
		"short digest": edit(t, good, func(d map[string]any) {
			at(d, "messageSignature", "messageDigest")["digest"] = "AAAA"
		}),
		"no hint":      edit(t, good, func(d map[string]any) { delete(at(d, "verificationMaterial", "publicKey"), "hint") }),
		"other hint":   edit(t, good, func(d map[string]any) { at(d, "verificationMaterial", "publicKey")["hint"] = "release" }),
		"no material":  edit(t, good, func(d map[string]any) { delete(d, "verificationMaterial") }),
		"DSSE":         edit(t, good, func(d map[string]any) { d["dsseEnvelope"] = map[string]any{} }),
		"only DSSE":    edit(t, good, func(d map[string]any) { delete(d, "messageSignature"); d["dsseEnvelope"] = dsse() }),
		"empty DSSE":   edit(t, good, func(d map[string]any) { delete(d, "messageSignature"); d["dsseEnvelope"] = map[string]any{} }),
		"hint is null": edit(t, good, func(d map[string]any) { at(d, "verificationMaterial", "publicKey")["hint"] = nil }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := signing.ParseBundle(raw)
			wantCode(t, err, signing.CodeBadBundle)
		})
	}
	if _, err := signing.ParseBundle(good); err != nil {
		t.Fatal(err)
	}
}

func dsse() map[string]any {
	return map[string]any{"payload": "AAAA", "payloadType": "application/vnd.in-toto+json", "signatures": []any{}}
}

func TestTrustedRootForCosignIsReadAndTrustsNobody(t *testing.T) {
	root, err := sgroot.NewTrustedRootFromJSON(signing.TrustedRootForCosign())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(root.FulcioCertificateAuthorities()) + len(root.RekorLogs()) + len(root.CTLogs()) + len(root.TimestampingAuthorities()); n != 0 {
		t.Errorf("it trusts %d things", n)
	}
}

func TestCosignCommandsSurviveAShell(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "it's a $(file) `name`.json")
	lines := signing.CosignCommands(signing.CosignFiles{
		Payload: "-o", Bundle: "b.sigstore.json", PublicKey: "http://x/key.pub", TrustedRoot: file,
	})
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	script := lines[0] + "\n" + strings.Replace(lines[1], "cosign ", "printf '%s|' ", 1) + "\ncat " + "\"$1\""
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := strings.Join([]string{
		"verify-blob", "--new-bundle-format", "--insecure-ignore-tlog", "--offline", "--trusted-root", file,
		"--key", "./http://x/key.pub", "--bundle", "b.sigstore.json", "./-o", string(signing.TrustedRootForCosign()),
	}, "|")
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Error(diff)
	}
}
