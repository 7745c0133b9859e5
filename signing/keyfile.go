package signing

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json/v2"
	"encoding/pem"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// pemCosignKey is what cosign wrote before it wrote the sigstore type; the
// contents are the same.
const pemCosignKey = "ENCRYPTED COSIGN PRIVATE KEY"

// FileKey is a Signer over a private key that was read from an encrypted
// cosign key file. Its signatures follow RFC 6979: the same digest gives the
// same bytes. Safe for use by several goroutines.
type FileKey struct {
	key    *ecdsa.PrivateKey
	public PublicKey
}

// GenerateKey makes an ECDSA P-256 key pair. The private half is a cosign key
// file (PEM "ENCRYPTED SIGSTORE PRIVATE KEY": scrypt and NaCl secretbox around
// PKCS #8), the public half a PEM "PUBLIC KEY". An empty passphrase is refused:
// CodeNoPassphrase. The passphrase stays the caller's, to be cleared by it.
func GenerateKey(passphrase []byte) (privatePEM, publicPEM []byte, err error) {
	if len(passphrase) == 0 {
		return nil, nil, newError(CodeNoPassphrase, "a signing key needs a passphrase", nil)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	public, err := NewPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	der, err := cryptoutils.MarshalPrivateKeyToDER(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the new key: %w", err)
	}
	defer clear(der)
	sealed, err := encrypted.Encrypt(der, passphrase)
	if err != nil {
		return nil, nil, fmt.Errorf("encrypt the new key: %w", err)
	}
	return cryptoutils.PEMEncode(cryptoutils.EncryptedSigstorePrivateKeyPEMType, sealed), public.PEM(), nil
}

// ParsePrivateKey reads an encrypted cosign key file, of the current or the
// older PEM type, at most MaxKeyFile bytes. The errors tell apart: no key file
// (CodeNotKey), a key without encryption (CodeUnencryptedKey), the wrong
// passphrase (CodeWrongPassphrase, which a damaged file cannot be told from),
// and a key of another kind than ECDSA P-256 (CodeKeyAlgorithm).
func ParsePrivateKey(raw, passphrase []byte) (*FileKey, error) {
	if len(raw) > MaxKeyFile {
		return nil, tooLarge(CodeKeyTooLarge, "the key file", len(raw), MaxKeyFile)
	}
	block, err := onlyBlock(raw)
	if err != nil {
		return nil, err
	}
	if err := checkPrivateBlock(block); err != nil {
		return nil, err
	}
	if err := checkSealedKey(block.Bytes); err != nil {
		return nil, err
	}
	der, err := encrypted.Decrypt(block.Bytes, passphrase)
	if err != nil {
		return nil, newError(CodeWrongPassphrase, "the passphrase does not open the key file", err)
	}
	defer clear(der)
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, newError(CodeNotKey, "the key file opens, but holds no private key", err)
	}
	return newFileKey(key)
}

// Public is the public half.
func (k *FileKey) Public() PublicKey { return k.public }

// SignDigest signs deterministically (RFC 6979). It fails only if ctx is done.
func (k *FileKey) SignDigest(ctx context.Context, digest [sha256.Size]byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return k.key.Sign(nil, digest[:], crypto.SHA256)
}

func newFileKey(key crypto.PrivateKey) (*FileKey, error) {
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok || private.Curve != elliptic.P256() {
		return nil, otherAlgorithm(key)
	}
	public, err := NewPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	return &FileKey{key: private, public: public}, nil
}

func checkPrivateBlock(block *pem.Block) error {
	switch block.Type {
	case string(cryptoutils.EncryptedSigstorePrivateKeyPEMType), pemCosignKey:
		return nil
	case "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY":
		return newError(CodeUnencryptedKey, "the private key is not encrypted", nil)
	case pemPublicKey:
		return newError(CodeNotKey, "this is a public key, not a private one", nil)
	}
	return newError(CodeNotKey, fmt.Sprintf("this is a PEM block %q, not a cosign key file", clip(block.Type)), nil)
}

// sealedKey is the JSON inside the PEM block.
type sealedKey struct {
	KDF struct {
		Name   string `json:"name"`
		Params struct {
			N int `json:"N"`
			R int `json:"r"`
			P int `json:"p"`
		} `json:"params"`
		Salt []byte `json:"salt"`
	} `json:"kdf"`
	Cipher struct {
		Name  string `json:"name"`
		Nonce []byte `json:"nonce"`
	} `json:"cipher"`
	Ciphertext []byte `json:"ciphertext"`
}

// checkSealedKey refuses everything that decryption would refuse for another
// reason than the passphrase, so that what is left is the passphrase. The
// library says both with one kind of error.
func checkSealedKey(raw []byte) error {
	var sealed sealedKey
	if err := json.Unmarshal(raw, &sealed, json.RejectUnknownMembers(true)); err != nil {
		return newError(CodeNotKey, "the key file does not hold an encrypted key", err)
	}
	if sealed.KDF.Name != "scrypt" || sealed.Cipher.Name != "nacl/secretbox" || len(sealed.Cipher.Nonce) != 24 {
		return newError(CodeNotKey, fmt.Sprintf("the key file is encrypted with %q and %q, not with scrypt and nacl/secretbox",
			clip(sealed.KDF.Name), clip(sealed.Cipher.Name)), nil)
	}
	// The library's own three cost settings; others are refused, since a file
	// must not decide how much memory it takes to be read.
	p := sealed.KDF.Params
	if (p.N != 1<<15 && p.N != 1<<16 && p.N != 1<<17) || p.R != 8 || p.P != 1 {
		return newError(CodeNotKey, fmt.Sprintf("the key file asks for unusual scrypt costs: N=%d r=%d p=%d", p.N, p.R, p.P), nil)
	}
	return nil
}
