package signing

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
)

// MaxKeyFile is the largest key file that is read, in bytes.
const MaxKeyFile = 64 << 10

const pemPublicKey = "PUBLIC KEY"

// KeyID is the SHA-256 of a public key's SubjectPublicKeyInfo in DER. It is
// always computed from a key; where a document states one, it is compared.
type KeyID [sha256.Size]byte

// ParseKeyID reads the 64 lower-case hexadecimal digits that String writes.
func ParseKeyID(s string) (KeyID, error) {
	var id KeyID
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(id) || hex.EncodeToString(raw) != s {
		return KeyID{}, fmt.Errorf("key id %q is not 64 lower-case hexadecimal digits", clip(s))
	}
	copy(id[:], raw)
	return id, nil
}

// String is the id as 64 hexadecimal digits.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// Short is the first 16 hexadecimal digits: for file names and for people,
// never for a comparison that decides anything.
func (id KeyID) Short() string { return id.String()[:16] }

// MarshalText writes the form of String.
func (id KeyID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads the form of String and nothing else.
func (id *KeyID) UnmarshalText(text []byte) error {
	parsed, err := ParseKeyID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// Algorithm names how a key signs. The trust root fixes it per key; a
// signature never chooses.
type Algorithm string

const (
	// ECDSA is ECDSA over P-256 with SHA-256. Everything that vouches for a
	// bundle signs with it.
	ECDSA Algorithm = "ecdsa-p256-sha256"
	// Ed25519 is pure Ed25519 (RFC 8032). Audit logs and witnesses sign
	// checkpoints with it; it never counts towards a role's threshold.
	Ed25519 Algorithm = "ed25519"
)

// PublicKey is one public key in its only accepted encoding. The zero value is
// no key: it has a zero KeyID and verifies nothing.
type PublicKey struct {
	id   KeyID
	alg  Algorithm
	spki string // DER; a string, so that a PublicKey cannot change after its id was computed
	key  crypto.PublicKey
}

// NewPublicKey wraps a key from a signer: *ecdsa.PublicKey on P-256 or
// ed25519.PublicKey. Anything else is CodeKeyAlgorithm.
func NewPublicKey(key crypto.PublicKey) (PublicKey, error) {
	alg, err := algorithmOf(key)
	if err != nil {
		return PublicKey{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return PublicKey{}, newError(CodeNotKey, "the public key cannot be encoded", err)
	}
	return PublicKey{id: sha256.Sum256(der), alg: alg, spki: string(der), key: key}, nil
}

// ParsePublicKey reads one public key: a PEM block "PUBLIC KEY" alone in its
// file, or its SubjectPublicKeyInfo DER. ECDSA P-256 and Ed25519 only, at most
// MaxKeyFile bytes. A key that is not in the one encoding its id is computed
// over is refused, so that no key can have two ids.
func ParsePublicKey(raw []byte) (PublicKey, error) {
	if len(raw) > MaxKeyFile {
		return PublicKey{}, tooLarge(CodeKeyTooLarge, "the key file", len(raw), MaxKeyFile)
	}
	der := raw
	if bytes.Contains(raw, []byte("-----BEGIN")) {
		block, err := onlyBlock(raw)
		if err != nil {
			return PublicKey{}, err
		}
		if block.Type != pemPublicKey {
			return PublicKey{}, newError(CodeNotKey, fmt.Sprintf("this is a PEM block %q, not a public key", clip(block.Type)), nil)
		}
		der = block.Bytes
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return PublicKey{}, newError(CodeNotKey, "this is not a public key", err)
	}
	public, err := NewPublicKey(key)
	if err != nil {
		return PublicKey{}, err
	}
	if public.spki != string(der) {
		return PublicKey{}, newError(CodeNotKey, "the public key is in an unusual encoding", nil).
			with("want:  "+public.id.String(), "got:   "+KeyID(sha256.Sum256(der)).String())
	}
	return public, nil
}

// ID is the SHA-256 of the key's DER.
func (k PublicKey) ID() KeyID { return k.id }

// Algorithm says how the key signs; empty for the zero value.
func (k PublicKey) Algorithm() Algorithm { return k.alg }

// IsZero tells whether there is no key.
func (k PublicKey) IsZero() bool { return k.key == nil }

// DER is the key's SubjectPublicKeyInfo.
func (k PublicKey) DER() []byte { return []byte(k.spki) }

// PEM is the key as a "PUBLIC KEY" block, as cosign reads it.
func (k PublicKey) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemPublicKey, Bytes: []byte(k.spki)})
}

// Key is the key for a standard library function: *ecdsa.PublicKey or
// ed25519.PublicKey. The caller must not change it.
func (k PublicKey) Key() crypto.PublicKey { return k.key }

// verifyDigest tells whether sig is k's ECDSA signature over a SHA-256.
func (k PublicKey) verifyDigest(digest [sha256.Size]byte, sig []byte) bool {
	key, ok := k.key.(*ecdsa.PublicKey)
	return ok && ecdsa.VerifyASN1(key, digest[:], sig)
}

func algorithmOf(key crypto.PublicKey) (Algorithm, error) {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if key != nil && key.Curve == elliptic.P256() {
			return ECDSA, nil
		}
	case ed25519.PublicKey:
		if len(key) == ed25519.PublicKeySize {
			return Ed25519, nil
		}
	}
	return "", otherAlgorithm(key)
}

// onlyBlock is the single PEM block of a key file: nothing before it, nothing
// after it, no headers. What follows a key is otherwise read by some programs
// and not by others.
func onlyBlock(raw []byte) (*pem.Block, error) {
	text := bytes.TrimSpace(raw)
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, newError(CodeNotKey, "this is not a key file: it holds no PEM block", nil)
	}
	if !bytes.HasPrefix(text, []byte("-----BEGIN")) || len(bytes.TrimSpace(rest)) > 0 || len(block.Headers) > 0 {
		return nil, newError(CodeNotKey, "a key file holds one PEM block and nothing else", nil)
	}
	return block, nil
}
