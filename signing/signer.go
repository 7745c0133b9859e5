package signing

import (
	"context"
	"crypto/sha256"
	"fmt"
)

// Signer is a private key, wherever it is: a key file, a token, a signing
// service.
//
// SignDigest signs a SHA-256 with ECDSA P-256 and answers with an ASN.1 DER
// signature. It may be called again with the same digest and need not give the
// same bytes (a FileKey does). An error says which key, and where it is kept.
// Callers in this package check every answer against Public before they use it.
type Signer interface {
	Public() PublicKey
	SignDigest(ctx context.Context, digest [sha256.Size]byte) ([]byte, error)
}

// signBytes signs the SHA-256 of payload and checks the answer: a signature
// that came from elsewhere is foreign bytes like any other.
func signBytes(ctx context.Context, signer Signer, payload []byte) ([]byte, error) {
	public := signer.Public()
	if public.Algorithm() != ECDSA {
		return nil, otherAlgorithm(public.Key())
	}
	digest := sha256.Sum256(payload)
	sig, err := signer.SignDigest(ctx, digest)
	if err != nil {
		return nil, newError(CodeSigner, fmt.Sprintf("key %s did not sign", public.ID().Short()), err)
	}
	if !public.verifyDigest(digest, sig) {
		return nil, newError(CodeSigner, fmt.Sprintf("key %s gave a signature that its own public key does not accept", public.ID().Short()), nil).
			with("key:    " + public.ID().String())
	}
	return sig, nil
}
