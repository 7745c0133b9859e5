package signing

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// maxKeys bounds the keys of a root: each signature may be tried against all.
const maxKeys = 256

// Key is a public key as the trust root knows it.
type Key struct {
	Public PublicKey
	// Owner is the person or the machine, for people to read.
	Owner string
	// NotBefore and NotAfter bound when its signatures count: from NotBefore
	// on, until just before NotAfter. Whole seconds.
	NotBefore, NotAfter time.Time
}

// Named is the key's owner and id.
func (k Key) Named() Named { return Named{Owner: k.Owner, ID: k.Public.ID()} }

// ValidAt tells whether the key may be used at a time.
func (k Key) ValidAt(at time.Time) bool {
	return !at.Before(k.NotBefore) && at.Before(k.NotAfter)
}

// Rule is who may act in a role and how many of them it takes.
type Rule struct {
	Role Role
	// Threshold is how many different keys must sign; at least 1.
	Threshold int
	// Keys are sorted by id.
	Keys []Key
}

// Channel is an ordered stream of bundles.
type Channel struct {
	Name string
	// Epoch is where the serials begin anew; from 1, never falls.
	Epoch int
	// Prefixes are what names of artifacts on the channel may begin with,
	// compared byte by byte (end them with a slash). None: any name.
	Prefixes []string
}

// Allows tells whether the channel may carry an artifact of this name.
func (c Channel) Allows(name string) bool {
	return len(c.Prefixes) == 0 || slices.ContainsFunc(c.Prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Gate is one air-gapped gate.
type Gate struct {
	ID string
	// Owner is who answers for it, for people to read.
	Owner string
	// Recipient is whom volumes for it are encrypted to: an age recipient as
	// text, of which only the form is looked at here. Empty for none.
	Recipient string
}

// recipientForm is that of an age recipient for X25519.
var recipientForm = regexp.MustCompile(`^age1[02-9ac-hj-np-z]{58}$`)

func (g Gate) check() error {
	if err := cmp.Or(CheckName(g.ID), checkText("the owner", g.Owner)); err != nil {
		return err
	}
	if g.Recipient != "" && !recipientForm.MatchString(g.Recipient) {
		return errors.New("its recipient is no age recipient")
	}
	return nil
}

// rule is a Rule that names its keys by id.
type rule struct {
	threshold int
	ids       []KeyID
}

// rootContent is what a root says, apart from who signed it.
type rootContent struct {
	version    int
	expires    time.Time
	signers    rule
	keys       map[KeyID]Key
	roles      map[Role]rule
	channels   map[string]Channel
	gates      map[string]Gate
	floorReset time.Time // zero: none
}

func (c *rootContent) clone() rootContent {
	d := *c
	d.signers = c.signers.clone()
	d.keys = maps.Clone(c.keys)
	d.roles = maps.Clone(c.roles)
	for name, r := range d.roles {
		d.roles[name] = r.clone()
	}
	d.channels = maps.Clone(c.channels)
	for name, ch := range d.channels {
		d.channels[name] = ch.clone()
	}
	d.gates = maps.Clone(c.gates)
	return d
}

func (r rule) clone() rule { return rule{r.threshold, slices.Clone(r.ids)} }

func (c Channel) clone() Channel {
	c.Prefixes = slices.Clone(c.Prefixes)
	return c
}

// check is every rule that a root must keep, on reading and on writing alike.
func (c *rootContent) check() error {
	if err := checkNumber("the version", int64(c.version)); err != nil {
		return err
	}
	if err := checkWritable("the expiry", c.expires); err != nil {
		return err
	}
	return cmp.Or(c.checkKeys(), c.checkNames(), c.checkRoles(), c.checkUse())
}

func (c *rootContent) checkKeys() error {
	if len(c.keys) > maxKeys {
		return fmt.Errorf("it names %d keys, more than %d", len(c.keys), maxKeys)
	}
	for _, id := range sortedIDs(c.keys) {
		if err := c.keys[id].check(); err != nil {
			return fmt.Errorf("key %s: %w", id.Short(), err)
		}
	}
	return nil
}

func (k Key) check() error {
	if k.Public.IsZero() {
		return errors.New("there is no public key")
	}
	if err := checkText("the owner", k.Owner); err != nil {
		return err
	}
	if err := checkWritable("the beginning of its validity", k.NotBefore); err != nil {
		return err
	}
	if err := checkWritable("the end of its validity", k.NotAfter); err != nil {
		return err
	}
	if !k.NotBefore.Before(k.NotAfter) {
		return errors.New("its validity ends before it begins")
	}
	return nil
}

func (c *rootContent) checkNames() error {
	for _, name := range slices.Sorted(maps.Keys(c.channels)) {
		if err := c.channels[name].check(); err != nil {
			return fmt.Errorf("channel %q: %w", clip(name), err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.gates)) {
		if err := c.gates[id].check(); err != nil {
			return fmt.Errorf("gate %q: %w", clip(id), err)
		}
	}
	return nil
}

func (c Channel) check() error {
	if err := CheckName(c.Name); err != nil {
		return err
	}
	if err := checkNumber("the epoch", int64(c.Epoch)); err != nil {
		return err
	}
	for _, p := range c.Prefixes {
		if err := checkText("a prefix", p); err != nil {
			return err
		}
	}
	if !ascending(c.Prefixes, strings.Compare) {
		return errors.New("its prefixes are not sorted, or one is there twice")
	}
	return nil
}

func (c *rootContent) checkRoles() error {
	if err := c.checkRule(c.signers, func(alg Algorithm) bool { return alg == ECDSA }); err != nil {
		return fmt.Errorf("the signers of the root: %w", err)
	}
	for _, role := range slices.Sorted(maps.Keys(c.roles)) {
		if err := c.checkRoleName(role); err != nil {
			return fmt.Errorf("role %q: %w", clip(string(role)), err)
		}
		if err := c.checkRule(c.roles[role], role.mayName); err != nil {
			return fmt.Errorf("role %q: %w", clip(string(role)), err)
		}
	}
	return nil
}

// checkRoleName wants a role of a known kind about a channel or gate that the
// same root describes.
func (c *rootContent) checkRoleName(role Role) error {
	prefix, name := role.about()
	known := false
	switch prefix {
	case string(RoleRevoke), string(RoleWitness):
		return nil
	case bundlePrefix, controlPrefix, attestPrefix:
		_, known = c.channels[name]
	case receiptPrefix, policyPrefix, reviewPrefix:
		_, known = c.gates[name]
	default:
		return errors.New("there is no such role")
	}
	if !known {
		return fmt.Errorf("the root does not describe %q", clip(name))
	}
	return nil
}

func (c *rootContent) checkRule(r rule, may func(Algorithm) bool) error {
	if !ascending(r.ids, compareIDs) {
		return errors.New("its key ids are not sorted, or one is there twice")
	}
	counting := map[Algorithm]int{}
	for _, id := range r.ids {
		key, ok := c.keys[id]
		if !ok {
			return fmt.Errorf("key %s is not among the keys", id.Short())
		}
		if !may(key.Public.Algorithm()) {
			return fmt.Errorf("key %s of kind %s has no use here", id.Short(), key.Public.Algorithm())
		}
		counting[key.Public.Algorithm()]++
	}
	// Where both kinds may stand (a gate's receipt and audit-log keys) only
	// ECDSA signatures are counted.
	most := counting[ECDSA]
	if most == 0 && !may(ECDSA) {
		most = counting[Ed25519]
	}
	if r.threshold < 1 || r.threshold > most {
		return fmt.Errorf("threshold %d with %d keys that can sign", r.threshold, most)
	}
	return nil
}

// checkUse refuses keys that nobody asks: they would look trusted in a listing.
func (c *rootContent) checkUse() error {
	used := c.usedKeys()
	for _, id := range sortedIDs(c.keys) {
		if !used[id] {
			return fmt.Errorf("key %s is used in no role", id.Short())
		}
	}
	return nil
}

func (c *rootContent) usedKeys() map[KeyID]bool {
	used := map[KeyID]bool{}
	for _, id := range c.signers.ids {
		used[id] = true
	}
	for _, r := range c.roles {
		for _, id := range r.ids {
			used[id] = true
		}
	}
	return used
}

func (c *rootContent) export(role Role, r rule) Rule {
	out := Rule{Role: role, Threshold: r.threshold}
	for _, id := range r.ids {
		out.Keys = append(out.Keys, c.keys[id])
	}
	return out
}

func compareIDs(a, b KeyID) int { return bytes.Compare(a[:], b[:]) }

func sortedIDs[V any](m map[KeyID]V) []KeyID {
	return slices.SortedFunc(maps.Keys(m), compareIDs)
}

// ascending tells whether every element is greater than the one before it.
func ascending[E any](s []E, compare func(a, b E) int) bool {
	for i := 1; i < len(s); i++ {
		if compare(s[i-1], s[i]) >= 0 {
			return false
		}
	}
	return true
}
