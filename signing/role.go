package signing

import (
	"fmt"
	"strings"
)

// Role is what a key may vouch for. A key has no role of its own: the trust
// root gives it some, each with a threshold, and a signature counts only in
// the role that is asked for.
type Role string

const (
	// RoleRevoke signs the list of revocations.
	RoleRevoke Role = "revoke"
	// RoleWitness cosigns a gate's audit log (Ed25519 keys).
	RoleWitness Role = "witness"
)

const (
	bundlePrefix  = "bundle:"
	controlPrefix = "control:"
	attestPrefix  = "attest:"
	receiptPrefix = "receipt:"
	policyPrefix  = "policy:"
	reviewPrefix  = "review:"
)

// BundleRole signs manifests of kind content on a channel.
func BundleRole(channel string) Role { return Role(bundlePrefix + channel) }

// ControlRole signs manifests of kind control on a channel.
func ControlRole(channel string) Role { return Role(controlPrefix + channel) }

// AttestRole signs SBOMs, scans and provenance on a channel.
func AttestRole(channel string) Role { return Role(attestPrefix + channel) }

// ReceiptRole signs a gate's receipts and its audit log.
func ReceiptRole(gate string) Role { return Role(receiptPrefix + gate) }

// PolicyRole signs the policy a gate follows.
func PolicyRole(gate string) Role { return Role(policyPrefix + gate) }

// ReviewRole signs decisions of a gate's reviewers.
func ReviewRole(gate string) Role { return Role(reviewPrefix + gate) }

// maxName is the longest name of a channel or gate, in bytes.
const maxName = 64

// CheckName tells whether a channel or gate may have this name: 1 to 64 of
// a-z, 0-9, '.', '_' and '-', beginning and ending with a letter or digit, no
// two dots in a row. Names become parts of file names and of role names.
func CheckName(name string) error {
	if len(name) == 0 || len(name) > maxName {
		return fmt.Errorf("name %q is not 1 to %d characters long", clip(name), maxName)
	}
	for i := range len(name) {
		inside := i > 0 && i < len(name)-1
		if !isLetterOrDigit(name[i]) && !(inside && strings.IndexByte("._-", name[i]) >= 0) {
			return fmt.Errorf("name %q may hold a-z, 0-9 and, between those, '.', '_' and '-'", name)
		}
	}
	if strings.Contains(name, "..") {
		return fmt.Errorf("name %q holds two dots in a row", name)
	}
	return nil
}

func isLetterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
}

// about splits a role into its kind and the channel or gate it is about.
func (r Role) about() (prefix, name string) {
	i := strings.IndexByte(string(r), ':')
	if i < 0 {
		return string(r), ""
	}
	return string(r[:i+1]), string(r[i+1:])
}

// vouchesForManifests tells whether keys of r are asked in the first stage of
// acceptance.
func (r Role) vouchesForManifests() bool {
	prefix, _ := r.about()
	return prefix == bundlePrefix || prefix == controlPrefix
}

// mayName tells whether a key of this algorithm can be of use in r.
func (r Role) mayName(alg Algorithm) bool {
	prefix, _ := r.about()
	switch prefix {
	case string(RoleWitness):
		return alg == Ed25519
	case receiptPrefix:
		return alg == ECDSA || alg == Ed25519
	}
	return alg == ECDSA
}
