package signing

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// MaxRevocations is the largest list of revocations that is read, in bytes.
	MaxRevocations = 4 << 20

	revocationsType = "revocations"
)

// RevokedKey is a key whose signatures count no more, whenever they were made.
type RevokedKey struct {
	Key    KeyID  `json:"key"`
	Reason string `json:"reason"`
}

// RevokedDigest is content, or a manifest, that must not be let in.
type RevokedDigest struct {
	// Digest is "sha256:" and 64 hexadecimal digits.
	Digest string `json:"digest"`
	Reason string `json:"reason"`
}

// RevokedBundle is one bundle by its place in a channel.
type RevokedBundle struct {
	Channel string `json:"channel"`
	Epoch   int    `json:"epoch"`
	Serial  int    `json:"serial"`
	Reason  string `json:"reason"`
}

// Revocations is one version of the cumulative list of what counts no more. It
// only takes trust away, and a later version holds everything an earlier one
// did. A nil list revokes nothing.
type Revocations struct {
	raw        []byte
	signed     []byte // the exact bytes the signatures are over
	signatures []fileSignature
	content    revocationsContent
}

// revocationsFile has the envelope of a root. What is signed is the member
// "signed" as it stands in the file, which is its RFC 8785 form; a signature's
// key id is the KeyID.
type revocationsFile struct {
	Signatures []fileSignature `json:"signatures"`
	Signed     jsontext.Value  `json:"signed"`
}

type revocationsContent struct {
	Type    string          `json:"_type"`
	Version int             `json:"version"`
	Issued  string          `json:"issued"`
	Keys    []RevokedKey    `json:"keys"`
	Digests []RevokedDigest `json:"digests"`
	Bundles []RevokedBundle `json:"bundles"`
}

// ParseRevocations reads a list, at most MaxRevocations bytes. It is only well
// formed then: Trust.UpdateRevocations is what looks at its signatures. Errors
// have CodeBadRevocations.
func ParseRevocations(raw []byte) (*Revocations, error) {
	if len(raw) > MaxRevocations {
		return nil, tooLarge(CodeBadRevocations, "the list of revocations", len(raw), MaxRevocations)
	}
	var file revocationsFile
	if err := decodeStrict(raw, &file); err != nil {
		return nil, badRevocations(err)
	}
	if err := checkSignatureList(file.Signatures); err != nil {
		return nil, badRevocations(err)
	}
	var content revocationsContent
	if err := decodeStrict(file.Signed, &content); err != nil {
		return nil, badRevocations(err)
	}
	if err := content.check(); err != nil {
		return nil, badRevocations(err)
	}
	return &Revocations{raw: bytes.Clone(raw), signed: bytes.Clone(file.Signed), signatures: file.Signatures, content: content}, nil
}

// Version is the list's number, from 1; 0 for a nil list.
func (r *Revocations) Version() int {
	if r == nil {
		return 0
	}
	return r.content.Version
}

// Issued is the time the signers state.
func (r *Revocations) Issued() time.Time {
	if r == nil {
		return time.Time{}
	}
	issued, err := parseTime("issued", r.content.Issued)
	if err != nil {
		return time.Time{} // not reached: check has read it
	}
	return issued
}

// Bytes is the file as it was read. The caller must not change it.
func (r *Revocations) Bytes() []byte {
	if r == nil {
		return nil
	}
	return r.raw
}

// Digest is "sha256:" and the digest of Bytes; empty for a nil list.
func (r *Revocations) Digest() string {
	if r == nil {
		return ""
	}
	return digestOf(r.raw)
}

// Keys lists the revoked keys, sorted by id.
func (r *Revocations) Keys() []RevokedKey {
	if r == nil {
		return nil
	}
	return slices.Clone(r.content.Keys)
}

// Digests lists the revoked digests, sorted.
func (r *Revocations) Digests() []RevokedDigest {
	if r == nil {
		return nil
	}
	return slices.Clone(r.content.Digests)
}

// Bundles lists the revoked bundles, sorted by channel, epoch and serial.
func (r *Revocations) Bundles() []RevokedBundle {
	if r == nil {
		return nil
	}
	return slices.Clone(r.content.Bundles)
}

// Key tells whether a key is revoked, and why.
func (r *Revocations) Key(id KeyID) (reason string, revoked bool) {
	if r == nil {
		return "", false
	}
	found, ok := find(r.content.Keys, RevokedKey{Key: id}, compareRevokedKeys)
	return found.Reason, ok
}

// Artifact tells whether a digest ("sha256:…") is revoked, and why.
func (r *Revocations) Artifact(digest string) (reason string, revoked bool) {
	if r == nil {
		return "", false
	}
	found, ok := find(r.content.Digests, RevokedDigest{Digest: digest}, compareRevokedDigests)
	return found.Reason, ok
}

// Bundle tells whether the bundle at a place in a channel is revoked, and why.
func (r *Revocations) Bundle(channel string, epoch, serial int) (reason string, revoked bool) {
	if r == nil {
		return "", false
	}
	found, ok := find(r.content.Bundles, RevokedBundle{Channel: channel, Epoch: epoch, Serial: serial}, compareRevokedBundles)
	return found.Reason, ok
}

// Contains tells whether r holds everything that older holds; reasons may
// differ. The error has CodeRevocationsShrunk and says what is gone.
func (r *Revocations) Contains(older *Revocations) error {
	var gone []string
	for _, k := range older.Keys() {
		if _, ok := r.Key(k.Key); !ok {
			gone = append(gone, "gone:  key "+k.Key.String())
		}
	}
	for _, d := range older.Digests() {
		if _, ok := r.Artifact(d.Digest); !ok {
			gone = append(gone, "gone:  "+d.Digest)
		}
	}
	for _, b := range older.Bundles() {
		if _, ok := r.Bundle(b.Channel, b.Epoch, b.Serial); !ok {
			gone = append(gone, fmt.Sprintf("gone:  bundle %s, epoch %d, serial %d", b.Channel, b.Epoch, b.Serial))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return newError(CodeRevocationsShrunk, fmt.Sprintf(
		"revocations version %d leave out what version %d revoked", r.Version(), older.Version()), nil).with(gone...)
}

// signedBy tells whether the signature under key's id is by key.
func (r *Revocations) signedBy(key PublicKey) bool {
	return verifyEnvelope(r.signatures, key.ID().String(), key, sha256.Sum256(r.signed))
}

func (c *revocationsContent) check() error {
	if c.Type != revocationsType {
		return fmt.Errorf("its type is %q, want %q", clip(c.Type), revocationsType)
	}
	if err := checkNumber("the version", int64(c.Version)); err != nil {
		return err
	}
	if _, err := parseTime("issued", c.Issued); err != nil {
		return err
	}
	for _, k := range c.Keys {
		if err := checkText("a reason", k.Reason); err != nil {
			return fmt.Errorf("key %s: %w", k.Key.Short(), err)
		}
	}
	for _, d := range c.Digests {
		if err := cmp.Or(checkDigest(d.Digest), checkText("a reason", d.Reason)); err != nil {
			return err
		}
	}
	for _, b := range c.Bundles {
		if err := b.check(); err != nil {
			return err
		}
	}
	if !ascending(c.Keys, compareRevokedKeys) || !ascending(c.Digests, compareRevokedDigests) || !ascending(c.Bundles, compareRevokedBundles) {
		return errors.New("a list is not sorted, or holds an entry twice")
	}
	return nil
}

func (b RevokedBundle) check() error {
	return cmp.Or(CheckName(b.Channel), checkNumber("an epoch", int64(b.Epoch)),
		checkNumber("a serial", int64(b.Serial)), checkText("a reason", b.Reason))
}

func checkDigest(digest string) error {
	digits, ok := strings.CutPrefix(digest, "sha256:")
	if raw, err := hex.DecodeString(digits); !ok || err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != digits {
		return fmt.Errorf("%q is not a digest like sha256:…", clip(digest))
	}
	return nil
}

func compareRevokedKeys(a, b RevokedKey) int { return compareIDs(a.Key, b.Key) }

func compareRevokedDigests(a, b RevokedDigest) int { return strings.Compare(a.Digest, b.Digest) }

func compareRevokedBundles(a, b RevokedBundle) int {
	return cmp.Or(strings.Compare(a.Channel, b.Channel), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Serial, b.Serial))
}

func find[E any](sorted []E, want E, compare func(a, b E) int) (E, bool) {
	i, ok := slices.BinarySearchFunc(sorted, want, compare)
	if !ok {
		var none E
		return none, false
	}
	return sorted[i], true
}

func badRevocations(cause error) *Error {
	return newError(CodeBadRevocations, "this is not a list of revocations of ours", cause)
}
