package signing

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// Genuine is the first stage of acceptance: was any one of these signatures
// made over payload by an unrevoked key of any role bundle: or control:? Only
// then is payload worth parsing. It gives the keys, sorted by id; which role,
// whether there are enough of them and whether they are in their time is for
// Vouch. Otherwise an *UntrustedError with CodeNotGenuine, or CodeRevokedKey
// if only revoked keys signed.
func (t *Trust) Genuine(payload []byte, bundles [][]byte) ([]Named, error) {
	keys := t.manifestKeys()
	refusal := &UntrustedError{Need: 1, code: CodeNotGenuine, what: "no trusted key signed it"}
	signed, err := t.readSignatures(payload, bundles, keys, refusal)
	if err != nil {
		return nil, err
	}
	for _, id := range signed {
		key := t.root.content.keys[id]
		if reason, revoked := t.revocations.Key(id); revoked {
			refusal.Refused = append(refusal.Refused, revokedKey(key, reason))
			refusal.code = CodeRevokedKey
		} else {
			refusal.Valid = append(refusal.Valid, key.Named())
		}
	}
	if len(refusal.Valid) > 0 {
		return refusal.Valid, nil
	}
	return nil, refusal
}

// Vouch is the second stage: do enough keys of one role vouch for payload at a
// time? A key counts once however often it signed, only in this role, only
// inside its window, and not once it is revoked; at is the caller's idea of
// time, its time floor. Signature files that cannot be read, are by unknown
// keys or do not fit count nothing and spoil nothing.
//
// Without enough an *UntrustedError: CodeThreshold, or CodeRevokedKey or
// CodeExpiredKey where those signatures would have sufficed, or CodeNotGenuine
// where no key of the root signed these bytes; CodeUnknownRole where the root
// gives the role to nobody; CodeRevoked where these very bytes are revoked.
func (t *Trust) Vouch(payload []byte, bundles [][]byte, role Role, at time.Time) (*Voucher, error) {
	if t.Root() == nil {
		return nil, noTrust()
	}
	rule, ok := t.root.Role(role)
	if !ok {
		return nil, unknownRole(role, t.root)
	}
	if err := t.refusesPayload(payload); err != nil {
		return nil, err
	}
	found := &UntrustedError{}
	signed, err := t.readSignatures(payload, bundles, t.root.Keys(), found)
	if err != nil {
		return nil, err
	}
	c := t.count(rule, signed, at)
	c.Mismatched, c.Unknown, c.Malformed = found.Mismatched, found.Unknown, found.Malformed
	if c.Have < c.Need {
		return nil, c
	}
	return &Voucher{
		role: role, threshold: rule.Threshold, signers: c.Valid, digest: sha256.Sum256(payload), at: at,
		rootVersion: t.root.Version(), revocationsVersion: t.revocations.Version(),
	}, nil
}

// refusesPayload tells whether the bytes themselves are revoked, whoever signed.
func (t *Trust) refusesPayload(payload []byte) error {
	digest := digestOf(payload)
	reason, revoked := t.revocations.Artifact(digest)
	if !revoked {
		return nil
	}
	return newError(CodeRevoked, "these bytes are revoked", nil).with("digest: "+digest, "reason: "+reason)
}

// readSignatures tells which keys signed payload, each once, sorted. What is
// wrong with the rest it notes in refusal.
func (t *Trust) readSignatures(payload []byte, bundles [][]byte, keys []Key, refusal *UntrustedError) ([]KeyID, error) {
	if t.Root() == nil {
		return nil, noTrust()
	}
	if len(bundles) > MaxSignatures {
		return nil, newError(CodeTooManySignatures, fmt.Sprintf("there are %d signature files, more than %d", len(bundles), MaxSignatures), nil)
	}
	publics := make([]PublicKey, len(keys))
	for i, key := range keys {
		publics[i] = key.Public
	}
	digest := sha256.Sum256(payload)
	signed := map[KeyID]bool{}
	var unmatched []KeyID
	for _, raw := range bundles {
		bundle, err := ParseBundle(raw)
		if err != nil {
			refusal.Malformed = append(refusal.Malformed, err)
			continue
		}
		id, found, err := bundle.signer(digest, publics)
		if err != nil {
			return nil, err
		}
		if found {
			signed[id] = true
		} else {
			unmatched = append(unmatched, bundle.Claims())
		}
	}
	t.noteUnmatched(unmatched, signed, refusal)
	return sortedIDs(signed), nil
}

// noteUnmatched sorts the hints of signatures that fit no key into keys the
// root knows and others. A hint is only ever evidence.
func (t *Trust) noteUnmatched(hints []KeyID, signed map[KeyID]bool, refusal *UntrustedError) {
	slices.SortFunc(hints, compareIDs)
	for _, id := range slices.Compact(hints) {
		key, known := t.root.Key(id)
		switch {
		case !known:
			refusal.Unknown = append(refusal.Unknown, id)
		case !signed[id]:
			refusal.Mismatched = append(refusal.Mismatched, key.Named())
		}
	}
}

// count holds the keys that signed against a rule. It is the one place where a
// threshold is judged, apart from go-tuf's for the root itself.
func (t *Trust) count(rule Rule, signed []KeyID, at time.Time) *UntrustedError {
	c := &UntrustedError{Role: rule.Role, Need: rule.Threshold}
	for _, key := range rule.Keys {
		did := slices.Contains(signed, key.Public.ID())
		refused, no := t.refuses(key, at)
		switch {
		case did && no:
			c.Refused = append(c.Refused, refused)
		case did:
			c.Valid = append(c.Valid, key.Named())
		case !no && key.Public.Algorithm() == ECDSA:
			c.Missing = append(c.Missing, key.Named())
		}
	}
	for _, id := range signed {
		if !slices.ContainsFunc(rule.Keys, func(k Key) bool { return k.Public.ID() == id }) {
			c.Refused = append(c.Refused, Refused{
				Named: t.root.content.keys[id].Named(), Code: CodeThreshold,
				Reason: fmt.Sprintf("the key has not the role %s", rule.Role),
			})
		}
	}
	c.Have = len(c.Valid)
	c.code = c.judge(len(signed))
	c.what = fmt.Sprintf("role %s does not vouch for these bytes", rule.Role)
	return c
}

// refuses tells why a key of the root cannot count at a time.
func (t *Trust) refuses(key Key, at time.Time) (Refused, bool) {
	if reason, revoked := t.revocations.Key(key.Public.ID()); revoked {
		return revokedKey(key, reason), true
	}
	if !key.ValidAt(at) {
		return Refused{Named: key.Named(), Code: CodeExpiredKey, Reason: fmt.Sprintf(
			"the key is valid from %s until %s, not at %s", formatTime(key.NotBefore), formatTime(key.NotAfter), formatTime(at))}, true
	}
	return Refused{}, false
}

// judge picks the code for a count that is too low: what is wrong with the
// signatures that would have made it enough.
func (e *UntrustedError) judge(signed int) string {
	refused := map[string]int{}
	for _, r := range e.Refused {
		refused[r.Code]++
	}
	switch {
	case signed == 0:
		return CodeNotGenuine
	case refused[CodeRevokedKey] > 0 && e.Have+refused[CodeRevokedKey]+refused[CodeExpiredKey] >= e.Need:
		return CodeRevokedKey
	case e.Have+refused[CodeExpiredKey] >= e.Need:
		return CodeExpiredKey
	}
	return CodeThreshold
}

// manifestKeys are the keys of every role bundle: and control:.
func (t *Trust) manifestKeys() []Key {
	if t.Root() == nil {
		return nil
	}
	found := map[KeyID]Key{}
	for role, r := range t.root.content.roles {
		if role.vouchesForManifests() {
			for _, id := range r.ids {
				found[id] = t.root.content.keys[id]
			}
		}
	}
	var keys []Key
	for _, id := range sortedIDs(found) {
		keys = append(keys, found[id])
	}
	return keys
}

func revokedKey(key Key, reason string) Refused {
	return Refused{Named: key.Named(), Code: CodeRevokedKey, Reason: "the key is revoked: " + reason}
}

// Voucher says that enough keys of one role vouched for some bytes. Only
// Trust.Vouch makes one; the zero value vouches for nothing.
type Voucher struct {
	role               Role
	threshold          int
	signers            []Named
	digest             [sha256.Size]byte
	at                 time.Time
	rootVersion        int
	revocationsVersion int
}

// Role is the role that vouched.
func (v *Voucher) Role() Role { return v.role }

// Threshold is how many had to.
func (v *Voucher) Threshold() int { return v.threshold }

// Signers are those who did, sorted by id; at least Threshold.
func (v *Voucher) Signers() []Named { return slices.Clone(v.signers) }

// PayloadDigest is "sha256:" and the digest of the bytes.
func (v *Voucher) PayloadDigest() string { return "sha256:" + hex.EncodeToString(v.digest[:]) }

// Covers tells whether these are the bytes that were vouched for.
func (v *Voucher) Covers(payload []byte) bool {
	return v != nil && v.threshold > 0 && v.digest == sha256.Sum256(payload)
}

// At is the time that key windows were held against.
func (v *Voucher) At() time.Time { return v.at }

// RootVersion is the root that named the signers.
func (v *Voucher) RootVersion() int { return v.rootVersion }

// RevocationsVersion is the list they were not on; 0 for none.
func (v *Voucher) RevocationsVersion() int { return v.revocationsVersion }
