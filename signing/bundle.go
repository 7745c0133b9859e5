package signing

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	sgbundle "github.com/sigstore/sigstore-go/pkg/bundle"
	sgroot "github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
)

const (
	// BundleMediaType is the media type of every bundle written and read here.
	BundleMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// MaxBundle is the largest bundle that is read, in bytes. A message
	// signature by a key takes about 400.
	MaxBundle = 16 << 10
	// MaxSignatures is how many bundles over one payload are looked at.
	MaxSignatures = 64
)

// Bundle is one signature over some bytes, as a Sigstore bundle v0.3 with one
// message signature and a public key's hint. It proves nothing until Verify.
type Bundle struct {
	entity *sgbundle.Bundle
	claims KeyID
}

// Sign makes a bundle over payload: protojson, then RFC 8785, so that a
// deterministic signer gives the same bundle bytes each time. The hint is the
// key's id in base64, as cosign writes it.
func Sign(ctx context.Context, signer Signer, payload []byte) ([]byte, error) {
	sig, err := signBytes(ctx, signer, payload)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(payload)
	id := signer.Public().ID()
	entity, err := sgbundle.NewBundle(&protobundle.Bundle{
		MediaType: BundleMediaType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{
				PublicKey: &protocommon.PublicKeyIdentifier{Hint: hintOf(id)},
			},
		},
		Content: &protobundle.Bundle_MessageSignature{
			MessageSignature: &protocommon.MessageSignature{
				MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: digest[:]},
				Signature:     sig,
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make a bundle with key %s: %w", id.Short(), err)
	}
	return encodeBundle(entity)
}

// ParseBundle reads a bundle of exactly the kind Sign writes, in exactly its
// encoding, at most MaxBundle bytes. Certificates, DSSE envelopes, log entries
// and timestamps are refused, not ignored: who sees them in a bundle we accept
// would believe that they were checked. Errors have CodeBadBundle.
func ParseBundle(raw []byte) (*Bundle, error) {
	if len(raw) > MaxBundle {
		return nil, tooLarge(CodeBadBundle, "the signature file", len(raw), MaxBundle)
	}
	if err := checkDepth(raw); err != nil {
		return nil, badBundle(err)
	}
	entity := new(sgbundle.Bundle)
	if err := entity.UnmarshalJSON(raw); err != nil {
		return nil, badBundle(err)
	}
	if err := checkShape(entity.Bundle); err != nil {
		return nil, badBundle(err)
	}
	want, err := encodeBundle(entity)
	if err != nil {
		return nil, badBundle(err)
	}
	if err := sameBytes(want, raw); err != nil {
		return nil, badBundle(err)
	}
	claims, err := parseHint(entity.GetVerificationMaterial().GetPublicKey().GetHint())
	if err != nil {
		return nil, badBundle(err)
	}
	return &Bundle{entity: entity, claims: claims}, nil
}

// Claims is the key that the bundle says it was made with: for display and for
// file names. Nothing has checked it, and Verify does not look at it.
func (b *Bundle) Claims() KeyID { return b.claims }

// Digest is the SHA-256 of the payload that the signature says it is over.
// Nothing is proven by it.
func (b *Bundle) Digest() (d [sha256.Size]byte) {
	copy(d[:], b.entity.GetMessageSignature().GetMessageDigest().GetDigest())
	return d
}

// Verify tells which of the keys made the signature over payload. The answer is
// computed from the key that verified. Keys of another algorithm than ECDSA
// never verify.
func (b *Bundle) Verify(payload []byte, keys ...PublicKey) (KeyID, error) {
	id, found, err := b.signer(sha256.Sum256(payload), keys)
	if err != nil || found {
		return id, err
	}
	return KeyID{}, newError(CodeNotGenuine, "the signature was made by none of the keys over these bytes", nil).
		with("claims: key "+b.claims.Short(), "tried:  "+counted(len(keys)))
}

func counted(keys int) string {
	if keys == 1 {
		return "1 key"
	}
	return fmt.Sprintf("%d keys", keys)
}

// signer is the one of keys that signed a digest, if one did.
func (b *Bundle) signer(digest [sha256.Size]byte, keys []PublicKey) (id KeyID, found bool, err error) {
	if b.entity == nil {
		return KeyID{}, false, nil
	}
	for _, key := range keys {
		found, err := b.verifies(digest, key)
		if err != nil {
			return KeyID{}, false, err
		}
		if found {
			return key.ID(), true, nil
		}
	}
	return KeyID{}, false, nil
}

// verifies asks sigstore-go with key as the only trusted material, whatever
// the hint says: a hint chooses nothing.
func (b *Bundle) verifies(digest [sha256.Size]byte, key PublicKey) (bool, error) {
	// sigstore's verifier also takes r and s without ASN.1 around them; here a
	// signature has one form.
	if !key.verifyDigest(digest, b.entity.GetMessageSignature().GetSignature()) {
		return false, nil
	}
	loaded, err := signature.LoadVerifier(key.Key(), crypto.SHA256)
	if err != nil {
		return false, fmt.Errorf("load key %s: %w", key.ID().Short(), err)
	}
	material := sgroot.NewTrustedPublicKeyMaterial(func(string) (sgroot.TimeConstrainedVerifier, error) {
		return onlyKey{loaded}, nil
	})
	verifier, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps())
	if err != nil {
		return false, fmt.Errorf("verify with key %s: %w", key.ID().Short(), err)
	}
	_, err = verifier.Verify(b.entity, verify.NewPolicy(verify.WithArtifactDigest("sha256", digest[:]), verify.WithKey()))
	return err == nil, nil
}

// onlyKey is valid at any time: Trust judges a key's window, against a time
// that sigstore-go cannot be given.
type onlyKey struct{ signature.Verifier }

func (onlyKey) ValidAtTime(time.Time) bool { return true }

// BundleFileName is the name of the file, or of the entry in signatures/, that
// holds the bundle of this key.
func BundleFileName(id KeyID) string { return id.Short() + ".sigstore.json" }

func encodeBundle(entity *sgbundle.Bundle) ([]byte, error) {
	raw, err := entity.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return canonical(raw)
}

func checkShape(b *protobundle.Bundle) error {
	material, message := b.GetVerificationMaterial(), b.GetMessageSignature()
	switch {
	case b.GetMediaType() != BundleMediaType:
		return fmt.Errorf("media type is %q, want %q", clip(b.GetMediaType()), BundleMediaType)
	case message == nil:
		return errors.New("it holds no message signature")
	case material.GetPublicKey() == nil:
		return errors.New("it is not signed with a bare public key")
	case len(material.GetTlogEntries()) > 0 || material.GetTimestampVerificationData() != nil:
		return errors.New("it holds log entries or timestamps, which are not judged here")
	case message.GetMessageDigest().GetAlgorithm() != protocommon.HashAlgorithm_SHA2_256:
		return errors.New("its digest is not SHA-256")
	case len(message.GetMessageDigest().GetDigest()) != sha256.Size || len(message.GetSignature()) == 0:
		return errors.New("its digest or its signature has the wrong length")
	}
	return nil
}

func hintOf(id KeyID) string { return base64.StdEncoding.EncodeToString(id[:]) }

func parseHint(hint string) (KeyID, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(hint)
	if err != nil || len(raw) != sha256.Size {
		return KeyID{}, fmt.Errorf("its key hint %q is not a SHA-256 in base64", clip(hint))
	}
	return KeyID(raw), nil
}

func badBundle(cause error) *Error {
	return newError(CodeBadBundle, "this is not a signature file of ours", cause)
}
