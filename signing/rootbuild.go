package signing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// RootParams is what the first root is made from.
type RootParams struct {
	// Signer becomes the one key of every role, each with threshold 1.
	Signer Signer
	// Owner is whose key it is.
	Owner string
	// Channels get the roles bundle:, control: and attest:. An epoch of 0
	// stands for 1.
	Channels []Channel
	// Now is when the key's validity begins, Expires when the root ends.
	Now, Expires time.Time
	// KeyNotAfter is when the key's validity ends. Zero: a year after Expires,
	// so that the key can still sign the bundle that renews a root which has
	// just expired.
	KeyNotAfter time.Time
}

// NewRoot makes and signs version 1. With the same key and parameters it gives
// the same bytes if the signer is deterministic. Errors in the parameters have
// CodeRootChange.
func NewRoot(ctx context.Context, p RootParams) ([]byte, error) {
	if p.Signer == nil {
		return nil, badChange(errors.New("there is no signing key"))
	}
	public := p.Signer.Public()
	if p.KeyNotAfter.IsZero() {
		p.KeyNotAfter = p.Expires.AddDate(1, 0, 0)
	}
	id := public.ID()
	only := rule{threshold: 1, ids: []KeyID{id}}
	c := rootContent{
		version: 1, expires: seconds(p.Expires), signers: only.clone(),
		keys:     map[KeyID]Key{id: {Public: public, Owner: p.Owner, NotBefore: seconds(p.Now), NotAfter: seconds(p.KeyNotAfter)}},
		roles:    map[Role]rule{RoleRevoke: only.clone()},
		channels: map[string]Channel{}, gates: map[string]Gate{},
	}
	d := &RootDraft{content: c}
	for _, channel := range p.Channels {
		if err := d.AddChannel(channel); err != nil {
			return nil, err
		}
		for _, role := range []Role{BundleRole(channel.Name), ControlRole(channel.Name), AttestRole(channel.Name)} {
			d.content.roles[role] = only.clone()
		}
	}
	return d.Sign(ctx, p.Signer)
}

// RootDraft is the next version of a root while it is being changed. Errors of
// its methods have CodeRootChange and leave it as it was. It judges no
// signatures: that is Root.Update's.
type RootDraft struct {
	content rootContent
}

// Next begins the version after r with the same contents. A zero expires keeps
// the expiry of r. A reset of the time floor is not carried over.
func (r *Root) Next(expires time.Time) *RootDraft {
	d := &RootDraft{content: r.content.clone()}
	d.content.version++
	d.content.floorReset = time.Time{}
	if !expires.IsZero() {
		d.content.expires = seconds(expires)
	}
	return d
}

// AddGate adds a gate and gives its keys (receipt key, audit-log key) the role
// receipt:<gate> with threshold 1. At least one must be ECDSA P-256.
func (d *RootDraft) AddGate(g Gate, notBefore, notAfter time.Time, keys ...PublicKey) error {
	if _, there := d.content.gates[g.ID]; there {
		return badChange(fmt.Errorf("gate %q is already there", clip(g.ID)))
	}
	receipt := Rule{Role: ReceiptRole(g.ID), Threshold: 1}
	for _, key := range keys {
		receipt.Keys = append(receipt.Keys, Key{Public: key, Owner: g.Owner, NotBefore: notBefore, NotAfter: notAfter})
	}
	return d.change(func(c *rootContent) error {
		c.gates[g.ID] = g
		return c.setRole(receipt)
	})
}

// SetRecipient says anew whom volumes for a gate are encrypted to.
func (d *RootDraft) SetRecipient(id, recipient string) error {
	gate, there := d.content.gates[id]
	if !there {
		return badChange(fmt.Errorf("there is no gate %q", clip(id)))
	}
	return d.change(func(c *rootContent) error {
		gate.Recipient = recipient
		c.gates[id] = gate
		return nil
	})
}

// RemoveGate takes a gate away, with every role about it.
func (d *RootDraft) RemoveGate(id string) error {
	if _, there := d.content.gates[id]; !there {
		return badChange(fmt.Errorf("there is no gate %q", clip(id)))
	}
	return d.change(func(c *rootContent) error {
		delete(c.gates, id)
		for _, role := range []Role{ReceiptRole(id), PolicyRole(id), ReviewRole(id)} {
			delete(c.roles, role)
		}
		return nil
	})
}

// AddChannel adds a channel, which nobody may sign for until SetRole.
func (d *RootDraft) AddChannel(channel Channel) error {
	if _, there := d.content.channels[channel.Name]; there {
		return badChange(fmt.Errorf("channel %q is already there", clip(channel.Name)))
	}
	return d.change(func(c *rootContent) error {
		added := channel.clone()
		added.Epoch = cmp.Or(added.Epoch, 1)
		slices.Sort(added.Prefixes)
		c.channels[added.Name] = added
		return nil
	})
}

// RaiseEpoch begins the channel's serials anew.
func (d *RootDraft) RaiseEpoch(channel string) error {
	found, ok := d.content.channels[channel]
	if !ok {
		return badChange(fmt.Errorf("there is no channel %q", clip(channel)))
	}
	return d.change(func(c *rootContent) error {
		found.Epoch++
		c.channels[channel] = found
		return nil
	})
}

// SetRole says anew who may act in a role. A key that the root already has
// takes the owner and the validity given here.
func (d *RootDraft) SetRole(r Rule) error {
	return d.change(func(c *rootContent) error { return c.setRole(r) })
}

// SetSigners says anew who signs the root; the field Role is not looked at.
func (d *RootDraft) SetSigners(r Rule) error {
	return d.change(func(c *rootContent) (err error) {
		c.signers, err = c.take(r)
		return err
	})
}

// RemoveRole takes a role away from everyone.
func (d *RootDraft) RemoveRole(role Role) error {
	if _, there := d.content.roles[role]; !there {
		return badChange(fmt.Errorf("there is no role %q", clip(string(role))))
	}
	return d.change(func(c *rootContent) error {
		delete(c.roles, role)
		return nil
	})
}

// ResetFloor lets gates that take this version set their time floor back.
func (d *RootDraft) ResetFloor(to time.Time) error {
	return d.change(func(c *rootContent) error {
		c.floorReset = seconds(to)
		return checkWritable("floorReset", to)
	})
}

// Sign gives the version as a file with these signatures, in any order. It is
// for Root.Update to say whether they suffice; others add theirs with
// CosignRoot.
func (d *RootDraft) Sign(ctx context.Context, signers ...Signer) ([]byte, error) {
	if err := d.content.check(); err != nil {
		return nil, badChange(err)
	}
	signed, err := d.content.encode()
	if err != nil {
		return nil, badChange(err)
	}
	raw, err := encodeCanonical(rootFile{Signatures: []fileSignature{}, Signed: signed})
	if err != nil {
		return nil, badChange(err)
	}
	for _, signer := range signers {
		if raw, err = CosignRoot(ctx, raw, signer); err != nil {
			return nil, err
		}
	}
	// Read back even where nobody signed: what is written here can be read.
	if _, err := decodeRoot(raw); err != nil {
		return nil, err
	}
	return raw, nil
}

// CosignRoot adds one signature to a root file; one by the same key that is
// already there is replaced. The file is read strictly, its other signatures
// are kept and not judged.
func CosignRoot(ctx context.Context, raw []byte, signer Signer) ([]byte, error) {
	root, err := decodeRoot(raw)
	if err != nil {
		return nil, err
	}
	payload, err := tufPayload(root.meta)
	if err != nil {
		return nil, badRoot(err)
	}
	sig, err := signBytes(ctx, signer, payload)
	if err != nil {
		return nil, err
	}
	tufID, _, err := tufKeyOf(signer.Public())
	if err != nil {
		return nil, err
	}
	file := root.file
	file.Signatures = addSignature(file.Signatures, tufID, sig)
	return encodeCanonical(file)
}

// change applies one edit to a copy, drops keys that nobody uses any more, and
// keeps the copy if it obeys the rules.
func (d *RootDraft) change(edit func(*rootContent) error) error {
	c := d.content.clone()
	if err := edit(&c); err != nil {
		return badChange(err)
	}
	used := c.usedKeys()
	maps.DeleteFunc(c.keys, func(id KeyID, _ Key) bool { return !used[id] })
	if err := c.check(); err != nil {
		return badChange(err)
	}
	d.content = c
	return nil
}

func (c *rootContent) setRole(r Rule) (err error) {
	c.roles[r.Role], err = c.take(r)
	return err
}

// take puts a rule's keys among the keys.
func (c *rootContent) take(r Rule) (rule, error) {
	out := rule{threshold: r.Threshold}
	for _, key := range r.Keys {
		if key.Public.IsZero() {
			return rule{}, errors.New("there is no public key")
		}
		key.NotBefore, key.NotAfter = seconds(key.NotBefore), seconds(key.NotAfter)
		c.keys[key.Public.ID()] = key
		out.ids = append(out.ids, key.Public.ID())
	}
	slices.SortFunc(out.ids, compareIDs)
	return out, nil
}

func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

func badChange(cause error) *Error {
	return newError(CodeRootChange, "the trust root cannot be changed like this", cause)
}
