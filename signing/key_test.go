package signing_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/packhof/packhof/signing"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

func derOf(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestParsePublicKeyReadsPEMAndDER(t *testing.T) {
	for _, want := range []signing.PublicKey{newSigner(t).public, newEd25519(t)} {
		for name, raw := range map[string][]byte{
			"PEM": want.PEM(), "DER": want.DER(), "PEM with blank lines": []byte("\n" + string(want.PEM()) + "\r\n\n"),
		} {
			got, err := signing.ParsePublicKey(raw)
			if err != nil {
				t.Fatalf("%s %s: %v", want.Algorithm(), name, err)
			}
			if got.ID() != want.ID() || got.Algorithm() != want.Algorithm() || !bytes.Equal(got.DER(), want.DER()) {
				t.Errorf("%s %s: got %s %s, want %s", want.Algorithm(), name, got.Algorithm(), got.ID(), want.ID())
			}
		}
		if want.ID() != signing.KeyID(sha256.Sum256(want.DER())) {
			t.Errorf("the id of %s is not the SHA-256 of its DER", want.Algorithm())
		}
	}
}

func TestParsePublicKeyTellsErrorsApart(t *testing.T) {
	good := newSigner(t).public
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	withHeader := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Headers: map[string]string{"Note": "x"}, Bytes: good.DER()})
	for _, c := range []struct {
		name string
		raw  []byte
		code string
	}{
		{"empty", nil, signing.CodeNotKey},
		{"text", []byte("ssh-ed25519 AAAA"), signing.CodeNotKey},
		{"cut PEM", good.PEM()[:60], signing.CodeNotKey},
		{"two keys", append(good.PEM(), good.PEM()...), signing.CodeNotKey},
		{"text before", append([]byte("# release key\n"), good.PEM()...), signing.CodeNotKey},
		{"headers", withHeader, signing.CodeNotKey},
		{"private key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: good.DER()}), signing.CodeNotKey},
		{"trailing byte", append(good.DER(), 0), signing.CodeNotKey},
		{"too large", make([]byte, signing.MaxKeyFile+1), signing.CodeKeyTooLarge},
		{"P-384", derOf(t, p384.Public()), signing.CodeKeyAlgorithm},
		{"RSA", derOf(t, rsaKey.Public()), signing.CodeKeyAlgorithm},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, err := signing.ParsePublicKey(c.raw)
			wantCode(t, err, c.code)
			if !key.IsZero() {
				t.Error("an error and a key")
			}
		})
	}
}

func TestNewPublicKeyRefusesWhatIsNoKey(t *testing.T) {
	for _, key := range []any{nil, "key", (*ecdsa.PublicKey)(nil), &ecdsa.PublicKey{}} {
		_, err := signing.NewPublicKey(key)
		wantCode(t, err, signing.CodeKeyAlgorithm)
	}
}

func TestKeyIDText(t *testing.T) {
	id := newSigner(t).id()
	if got := id.Short(); len(got) != 16 || !strings.HasPrefix(id.String(), got) {
		t.Errorf("Short is %q of %s", got, id)
	}
	back, err := signing.ParseKeyID(id.String())
	if err != nil || back != id {
		t.Errorf("ParseKeyID(%s) = %s, %v", id, back, err)
	}
	for _, bad := range []string{"", id.Short(), id.String() + "0", strings.ToUpper("ab" + id.String()[2:]), "zz" + id.String()[2:]} {
		if _, err := signing.ParseKeyID(bad); err == nil {
			t.Errorf("ParseKeyID(%q) gives no error", bad)
		}
	}
}

func TestGenerateKeyGivesWhatSigstoreReads(t *testing.T) {
	private, public, err := signing.GenerateKey([]byte("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := cryptoutils.UnmarshalPEMToPrivateKey(private, cryptoutils.StaticPasswordFunc([]byte("correct horse")))
	if err != nil {
		t.Fatalf("sigstore's own reader: %v", err)
	}
	ours, err := signing.ParsePrivateKey(private, []byte("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	if !ours.Public().Key().(*ecdsa.PublicKey).Equal(theirs.(*ecdsa.PrivateKey).Public()) {
		t.Error("sigstore reads another key than we do")
	}
	if stated, err := signing.ParsePublicKey(public); err != nil || stated.ID() != ours.Public().ID() {
		t.Errorf("the public file is another key: %v", err)
	}
	if _, err := signing.ParsePrivateKey(private, []byte("wrong")); codeOf(err) != signing.CodeWrongPassphrase {
		t.Errorf("wrong passphrase gives %q: %v", codeOf(err), err)
	}
}

func TestParsePrivateKeyReadsWhatSigstoreWrites(t *testing.T) {
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte("pw")))
	if err != nil {
		t.Fatal(err)
	}
	older := bytes.ReplaceAll(private, []byte("ENCRYPTED SIGSTORE"), []byte("ENCRYPTED COSIGN"))
	want, err := signing.ParsePublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{"sigstore": private, "cosign": older} {
		key, err := signing.ParsePrivateKey(raw, []byte("pw"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if key.Public().ID() != want.ID() {
			t.Errorf("%s: another key", name)
		}
	}
}

func TestParsePrivateKeyTellsErrorsApart(t *testing.T) {
	sealed := func(kind string, body string) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(body)})
	}
	const nonce = `"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"`
	box := func(kdf, n, cipher, nonce string) string {
		return `{"kdf":{"name":"` + kdf + `","params":{"N":` + n + `,"r":8,"p":1},"salt":"AAAA"},"cipher":{"name":"` + cipher + `","nonce":` + nonce + `},"ciphertext":"AAAA"}`
	}
	p384, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P384(), cryptoutils.StaticPasswordFunc([]byte("pw")))
	if err != nil {
		t.Fatal(err)
	}
	plain, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const sigstoreKey = "ENCRYPTED SIGSTORE PRIVATE KEY"
	for _, c := range []struct {
		name string
		raw  []byte
		code string
	}{
		{"empty", nil, signing.CodeNotKey},
		{"text", []byte("hello"), signing.CodeNotKey},
		{"public key", newSigner(t).public.PEM(), signing.CodeNotKey},
		{"certificate", sealed("CERTIFICATE", "x"), signing.CodeNotKey},
		{"not encrypted", plain, signing.CodeUnencryptedKey},
		{"EC, not encrypted", sealed("EC PRIVATE KEY", "x"), signing.CodeUnencryptedKey},
		{"too large", bytes.Repeat([]byte("-"), signing.MaxKeyFile+1), signing.CodeKeyTooLarge},
		{"no JSON inside", sealed(sigstoreKey, "x"), signing.CodeNotKey},
		{"unknown member", sealed(sigstoreKey, `{"x":1}`), signing.CodeNotKey},
		{"other kdf", sealed(sigstoreKey, box("argon2", "65536", "nacl/secretbox", nonce)), signing.CodeNotKey},
		{"other cipher", sealed(sigstoreKey, box("scrypt", "65536", "aes", nonce)), signing.CodeNotKey},
		{"huge cost", sealed(sigstoreKey, box("scrypt", "1073741824", "nacl/secretbox", nonce)), signing.CodeNotKey},
		{"short nonce", sealed(sigstoreKey, box("scrypt", "65536", "nacl/secretbox", `"AAAA"`)), signing.CodeNotKey},
		{"well formed", sealed(sigstoreKey, box("scrypt", "32768", "nacl/secretbox", nonce)), signing.CodeWrongPassphrase},
		{"P-384", p384, signing.CodeKeyAlgorithm},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := signing.ParsePrivateKey(c.raw, []byte("pw"))
			wantCode(t, err, c.code)
		})
	}
	if _, _, err := signing.GenerateKey(nil); codeOf(err) != signing.CodeNoPassphrase {
		t.Errorf("no passphrase gives %v", err)
	}
}
