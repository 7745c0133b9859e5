package signing

import (
	"context"
	"slices"
	"time"
)

// NewRevocations makes and signs version 1, which revokes nothing. Later
// versions begin with Next.
func NewRevocations(ctx context.Context, signer Signer, issued time.Time) ([]byte, error) {
	return (*Revocations)(nil).Next(issued).Sign(ctx, signer)
}

// RevocationsDraft is the next version of the list while entries are added.
// Nothing takes an entry away. Errors of its methods have
// CodeRevocationsChange and leave it as it was.
type RevocationsDraft struct {
	content revocationsContent
}

// Next begins the version after r with the same entries; after a nil list,
// version 1.
func (r *Revocations) Next(issued time.Time) *RevocationsDraft {
	return &RevocationsDraft{revocationsContent{
		Type: revocationsType, Version: r.Version() + 1, Issued: formatTime(issued),
		Keys: r.Keys(), Digests: r.Digests(), Bundles: r.Bundles(),
	}}
}

// RevokeKey adds a key. One that is there keeps its first reason.
func (d *RevocationsDraft) RevokeKey(id KeyID, reason string) error {
	c := d.content
	c.Keys = insert(c.Keys, RevokedKey{id, reason}, compareRevokedKeys)
	return d.take(c)
}

// RevokeDigest adds "sha256:…". One that is there keeps its first reason.
func (d *RevocationsDraft) RevokeDigest(digest, reason string) error {
	c := d.content
	c.Digests = insert(c.Digests, RevokedDigest{digest, reason}, compareRevokedDigests)
	return d.take(c)
}

// RevokeBundle adds a bundle. One that is there keeps its first reason.
func (d *RevocationsDraft) RevokeBundle(channel string, epoch, serial int, reason string) error {
	c := d.content
	c.Bundles = insert(c.Bundles, RevokedBundle{channel, epoch, serial, reason}, compareRevokedBundles)
	return d.take(c)
}

// Sign gives the version as a file with these signatures. It is for
// Trust.UpdateRevocations to say whether they suffice; others add theirs with
// CosignRevocations.
func (d *RevocationsDraft) Sign(ctx context.Context, signers ...Signer) ([]byte, error) {
	if err := d.content.check(); err != nil {
		return nil, badRevocationsChange(err)
	}
	signed, err := encodeCanonical(d.content)
	if err != nil {
		return nil, badRevocationsChange(err)
	}
	raw, err := encodeCanonical(revocationsFile{Signatures: []fileSignature{}, Signed: signed})
	if err != nil {
		return nil, badRevocationsChange(err)
	}
	if len(raw) > MaxRevocations {
		return nil, tooLarge(CodeRevocationsChange, "the list of revocations", len(raw), MaxRevocations)
	}
	for _, signer := range signers {
		if raw, err = CosignRevocations(ctx, raw, signer); err != nil {
			return nil, err
		}
	}
	return raw, nil
}

// CosignRevocations adds one signature to a list; one by the same key that is
// already there is replaced.
func CosignRevocations(ctx context.Context, raw []byte, signer Signer) ([]byte, error) {
	r, err := ParseRevocations(raw)
	if err != nil {
		return nil, err
	}
	sig, err := signBytes(ctx, signer, r.signed)
	if err != nil {
		return nil, err
	}
	return encodeCanonical(revocationsFile{
		Signatures: addSignature(r.signatures, signer.Public().ID().String(), sig),
		Signed:     r.signed,
	})
}

func (d *RevocationsDraft) take(c revocationsContent) error {
	if err := c.check(); err != nil {
		return badRevocationsChange(err)
	}
	d.content = c
	return nil
}

// insert adds e to a copy of a sorted list, unless its like is there.
func insert[E any](sorted []E, e E, compare func(a, b E) int) []E {
	i, ok := slices.BinarySearchFunc(sorted, e, compare)
	if ok {
		return sorted
	}
	return slices.Insert(slices.Clone(sorted), i, e)
}

func badRevocationsChange(cause error) error {
	return newError(CodeRevocationsChange, "this cannot be revoked", cause)
}
