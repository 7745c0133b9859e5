package signing

import (
	"fmt"
	"strings"
)

// Named is a key with its owner, as the trust root knows it.
type Named struct {
	Owner string
	ID    KeyID
}

// String is "release@example (3f9a…)", with 16 digits of the id.
func (n Named) String() string { return fmt.Sprintf("%s (%s)", n.Owner, n.ID.Short()) }

// Refused is a signature that is right, by a key that the root knows, and does
// not count all the same.
type Refused struct {
	Named
	// Code says why: CodeRevokedKey, CodeExpiredKey, or CodeThreshold for a
	// key that has not this role.
	Code string
	// Reason says why to a person.
	Reason string
}

// UntrustedError says that too few of the right people signed, and who did.
// Each key appears in at most one of Valid, Missing and Refused.
type UntrustedError struct {
	// Role is the role that was asked, empty where any role for manifests was.
	Role Role
	// Need is the threshold; Have is how many different keys count.
	Need, Have int
	// Valid are the keys that count.
	Valid []Named
	// Missing are the keys that could still sign and count.
	Missing []Named
	// Refused are keys that signed and do not count.
	Refused []Refused
	// Mismatched are keys that a signature names as its own, without being
	// made by any known key over these bytes: the bytes or the signature were
	// changed.
	Mismatched []Named
	// Unknown are key ids that a signature names and the root does not know.
	Unknown []KeyID
	// Malformed are the signature files that could not be read.
	Malformed []error

	code  string
	what  string
	cause error
}

func (e *UntrustedError) Error() string {
	what := e.what
	if what == "" {
		what = "these bytes are not vouched for"
	}
	if e.Need == 0 {
		return what
	}
	return fmt.Sprintf("%s: %d of %d required signatures %s valid", what, e.Have, e.Need, isAre(e.Have))
}

// Unwrap gives what the library said, if it was asked.
func (e *UntrustedError) Unwrap() error { return e.cause }

// Code is one of the Code constants.
func (e *UntrustedError) Code() string { return e.code }

// Evidence names who signed, who is missing, and what does not count and why.
func (e *UntrustedError) Evidence() []string {
	var lines []string
	if len(e.Valid) > 0 {
		lines = append(lines, "valid:    "+joinNamed(e.Valid))
	}
	if need := e.Need - e.Have; need > 0 && len(e.Missing) > 0 {
		lines = append(lines, fmt.Sprintf("missing:  %s%s", outOf(need, len(e.Missing)), joinNamed(e.Missing)))
	}
	for _, r := range e.Refused {
		lines = append(lines, fmt.Sprintf("refused:  %s: %s", r.Named, r.Reason))
	}
	for _, n := range e.Mismatched {
		lines = append(lines, fmt.Sprintf("mismatch: %s is named, but did not sign these bytes", n))
	}
	for _, id := range e.Unknown {
		lines = append(lines, "unknown:  key "+id.String())
	}
	for _, err := range e.Malformed {
		lines = append(lines, "broken:   "+err.Error())
	}
	return lines
}

// Remedy is the one thing to do next, or empty.
func (e *UntrustedError) Remedy() string { return remedy(e.code) }

// outOf is "one of " where not all that are listed must sign.
func outOf(need, listed int) string {
	switch {
	case need == listed:
		return ""
	case need == 1:
		return "one of "
	}
	return fmt.Sprintf("%d of ", need)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func joinNamed(list []Named) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = n.String()
	}
	return strings.Join(words, ", ")
}
