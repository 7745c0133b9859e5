package signing

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Trust is what one gate, or one exporter, believes: a root and what was
// revoked since. It never changes; updates give a new one. The zero value and
// nil trust nobody.
type Trust struct {
	root        *Root
	revocations *Revocations
}

// NewTrust puts together a root and a list that the caller already believes:
// from its own store, or brought in by hand on the first day. The list is not
// verified, since its signer may have left the root after it was accepted, and
// a list can only take trust away. It may be nil: nothing is revoked.
func NewTrust(root *Root, revocations *Revocations) *Trust {
	return &Trust{root: root, revocations: revocations}
}

// Root is the current root; nil if there is none.
func (t *Trust) Root() *Root {
	if t == nil {
		return nil
	}
	return t.root
}

// Revocations is the current list; nil if there is none.
func (t *Trust) Revocations() *Revocations {
	if t == nil {
		return nil
	}
	return t.revocations
}

// UpdateRoots takes the root versions that came with a bundle, in any order, at
// most MaxRoots. Those above the current one are applied one by one; the
// current one, if it is there, must be the same (CodeRootConflict: two roots
// with one number); older ones are skipped unread beyond their form. With
// nothing new it gives t.
func (t *Trust) UpdateRoots(raws [][]byte) (*Trust, error) {
	if t.Root() == nil {
		return nil, noTrust()
	}
	if len(raws) > MaxRoots {
		return nil, badRoot(fmt.Errorf("%d versions at once, more than %d", len(raws), MaxRoots))
	}
	roots := make([]*Root, len(raws))
	for i, raw := range raws {
		root, err := decodeRoot(raw)
		if err != nil {
			return nil, err
		}
		roots[i] = root
	}
	slices.SortStableFunc(roots, func(a, b *Root) int { return cmp.Compare(a.Version(), b.Version()) })
	current := t.root
	for _, root := range roots {
		switch {
		case root.Version() < current.Version():
			continue
		case root.Version() == current.Version():
			if err := current.sameSigned(root); err != nil {
				return nil, err
			}
		default:
			next, err := current.Update(root.raw)
			if err != nil {
				return nil, err
			}
			current = next
		}
	}
	if current == t.root {
		return t, nil
	}
	return &Trust{root: current, revocations: t.revocations}, nil
}

// sameSigned compares what two roots of one version say; who else signed them
// may differ.
func (r *Root) sameSigned(other *Root) error {
	mine, err := tufPayload(r.meta)
	if err != nil {
		return badRoot(err)
	}
	theirs, err := tufPayload(other.meta)
	if err != nil {
		return badRoot(err)
	}
	if bytes.Equal(mine, theirs) {
		return nil
	}
	return newError(CodeRootConflict, fmt.Sprintf("there are two different trust roots of version %d", r.Version()), nil).
		with("known: "+r.Digest(), "got:   "+other.Digest())
}

// UpdateRevocations takes a list. A newer one must be signed by a threshold of
// the role revoke, by keys that are valid at that time and not revoked so far,
// and must hold all that the current one holds. One that is not newer changes
// nothing and gives t, unless it revokes something that the current one does
// not know: that is CodeRevocationsShrunk.
func (t *Trust) UpdateRevocations(raw []byte, at time.Time) (*Trust, error) {
	if t.Root() == nil {
		return nil, noTrust()
	}
	next, err := ParseRevocations(raw)
	if err != nil {
		return nil, err
	}
	if next.Version() <= t.revocations.Version() {
		return t, t.revocations.Contains(next)
	}
	if err := t.acceptsRevocations(next, at); err != nil {
		return nil, err
	}
	if err := next.Contains(t.revocations); err != nil {
		return nil, err
	}
	return &Trust{root: t.root, revocations: next}, nil
}

func (t *Trust) acceptsRevocations(next *Revocations, at time.Time) error {
	rule, ok := t.root.Role(RoleRevoke)
	if !ok {
		return unknownRole(RoleRevoke, t.root)
	}
	var signed []KeyID
	for _, key := range rule.Keys {
		if next.signedBy(key.Public) {
			signed = append(signed, key.Public.ID())
		}
	}
	c := t.count(rule, signed, at)
	if c.Have >= c.Need {
		return nil
	}
	c.code = CodeRevocationsSignatures
	c.what = fmt.Sprintf("revocations version %d are not signed by enough of the keys of role %q", next.Version(), RoleRevoke)
	return c
}

func noTrust() error {
	return newError(CodeNoTrust, "there is no trust root: nobody is trusted", nil)
}

func unknownRole(role Role, root *Root) error {
	return newError(CodeUnknownRole, fmt.Sprintf("trust root version %d gives the role %q to nobody", root.Version(), clip(string(role))), nil)
}
