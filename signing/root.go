package signing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
)

const (
	// MaxRoot is the largest root that is read, in bytes.
	MaxRoot = 256 << 10
	// MaxRoots is how many root versions are taken in one go.
	MaxRoots = 64
)

// Root is one version of the trust root, verified: by itself as an anchor
// (ParseRoot) or by the version before it (Update). It never changes.
//
// A root that has expired is a root all the same; what that means is for the
// caller, who asks Expired.
type Root struct {
	raw     []byte
	meta    *metadata.Metadata[metadata.RootType]
	file    rootFile
	content rootContent
}

// ParseRoot reads a root that was brought in by hand, as an anchor of trust: it
// must carry a threshold of its own signers, which shows that it is whole, and
// nothing more. Whether it is the right one is for the people who compare its
// Fingerprint. Any version may be an anchor. At most MaxRoot bytes.
func ParseRoot(raw []byte) (*Root, error) {
	root, err := decodeRoot(raw)
	if err != nil {
		return nil, err
	}
	if err := root.accepts(root); err != nil {
		return nil, err
	}
	return root, nil
}

// Update reads the next version: exactly one higher, signed by a threshold of
// this root's signers and a threshold of its own (TUF specification, 5.3.4 and
// 5.3.5). No channel's epoch may fall. r stays as it is.
func (r *Root) Update(next []byte) (*Root, error) {
	root, err := decodeRoot(next)
	if err != nil {
		return nil, err
	}
	if root.Version() != r.Version()+1 {
		return nil, newError(CodeRootVersion, "this trust root is not the next version", nil).
			with(fmt.Sprintf("want:  version %d", r.Version()+1), fmt.Sprintf("got:   version %d", root.Version()))
	}
	if err := r.accepts(root); err != nil {
		return nil, err
	}
	if err := root.accepts(root); err != nil {
		return nil, err
	}
	for name, channel := range r.content.channels {
		if after, ok := root.content.channels[name]; ok && after.Epoch < channel.Epoch {
			return nil, badRoot(fmt.Errorf("the epoch of channel %q falls from %d to %d", name, channel.Epoch, after.Epoch))
		}
	}
	return root, nil
}

// accepts tells whether a threshold of r's signers signed other. go-tuf decides;
// the error says who did and who did not.
func (r *Root) accepts(other *Root) error {
	if r.meta == nil {
		return noTrust()
	}
	err := r.meta.VerifyDelegate(metadata.ROOT, other.meta)
	if err == nil {
		return nil
	}
	payload, perr := tufPayload(other.meta)
	if perr != nil {
		return badRoot(perr)
	}
	signers := r.Signers()
	refusal := &UntrustedError{
		Role: signers.Role, Need: signers.Threshold, code: CodeRootSignatures, cause: err,
		what: fmt.Sprintf("trust root version %d is not signed by enough of the signers of version %d", other.Version(), r.Version()),
	}
	digest := sha256.Sum256(payload)
	for _, key := range signers.Keys {
		tufID, _, terr := tufKeyOf(key.Public)
		if terr == nil && verifyEnvelope(other.file.Signatures, tufID, key.Public, digest) {
			refusal.Valid = append(refusal.Valid, key.Named())
		} else {
			refusal.Missing = append(refusal.Missing, key.Named())
		}
	}
	refusal.Have = len(refusal.Valid)
	return refusal
}

// Version is the root's number, from 1.
func (r *Root) Version() int { return r.content.version }

// Expires is when the root should have been followed by another.
func (r *Root) Expires() time.Time { return r.content.expires }

// Expired tells whether the root is out of date at a time.
func (r *Root) Expired(at time.Time) bool { return !at.Before(r.content.expires) }

// Bytes is the file as it was read. The caller must not change it.
func (r *Root) Bytes() []byte { return r.raw }

// Digest is "sha256:" and the digest of Bytes.
func (r *Root) Digest() string { return digestOf(r.raw) }

// Fingerprint is the digest of Bytes for people to compare.
func (r *Root) Fingerprint() Fingerprint { return FingerprintOf(r.raw) }

// Signers is who signs the root itself. Its role "root" is TUF's; it is asked
// for nothing else. A key's window and revocation do not touch it: a root key
// is taken away by the next root.
func (r *Root) Signers() Rule { return r.content.export(metadata.ROOT, r.content.signers) }

// Roles lists the roles, sorted.
func (r *Root) Roles() []Role { return slices.Sorted(maps.Keys(r.content.roles)) }

// Role is who may act in a role; false if the root does not give it to anyone.
func (r *Root) Role(role Role) (Rule, bool) {
	found, ok := r.content.roles[role]
	if !ok {
		return Rule{}, false
	}
	return r.content.export(role, found), true
}

// Keys lists every key, sorted by id.
func (r *Root) Keys() []Key {
	var keys []Key
	for _, id := range sortedIDs(r.content.keys) {
		keys = append(keys, r.content.keys[id])
	}
	return keys
}

// Key finds a key by its id.
func (r *Root) Key(id KeyID) (Key, bool) {
	key, ok := r.content.keys[id]
	return key, ok
}

// Channels lists the channels, sorted by name.
func (r *Root) Channels() []Channel {
	var channels []Channel
	for _, name := range slices.Sorted(maps.Keys(r.content.channels)) {
		channels = append(channels, r.content.channels[name].clone())
	}
	return channels
}

// Channel finds a channel by its name.
func (r *Root) Channel(name string) (Channel, bool) {
	channel, ok := r.content.channels[name]
	return channel.clone(), ok
}

// Gates lists the gates, sorted by id.
func (r *Root) Gates() []Gate {
	var gates []Gate
	for _, id := range slices.Sorted(maps.Keys(r.content.gates)) {
		gates = append(gates, r.content.gates[id])
	}
	return gates
}

// Gate finds a gate by its id.
func (r *Root) Gate(id string) (Gate, bool) {
	gate, ok := r.content.gates[id]
	return gate, ok
}

// FloorReset is the time that a gate's time floor goes back to when it takes
// this root; zero for none.
func (r *Root) FloorReset() time.Time { return r.content.floorReset }

func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}
