package cas

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Digest is a SHA-256, the name of a blob. The zero value is no digest.
//
// A digest from outside is parsed once, by ParseDigest, and travels as bytes
// from then on, so that nothing that was not checked ever becomes part of a
// path or a URL.
type Digest [sha256.Size]byte

const digestPrefix = "sha256:"

// DigestError says that a string is no digest in the one accepted form,
// "sha256:" and 64 lower-case hexadecimal digits.
type DigestError struct{ Got string }

func (e *DigestError) Error() string {
	return fmt.Sprintf("%.100q is not a digest of the form sha256:<64 lower-case hex digits>", e.Got)
}

// Code is the stable code of this error.
func (e *DigestError) Code() string { return "digest/malformed" }

// ParseDigest accepts exactly "sha256:" and 64 lower-case hex digits.
func ParseDigest(s string) (Digest, error) {
	hexDigits, ok := strings.CutPrefix(s, digestPrefix)
	if !ok {
		return Digest{}, &DigestError{Got: s}
	}
	d, err := ParseHex(hexDigits)
	if err != nil {
		return Digest{}, &DigestError{Got: s}
	}
	return d, nil
}

// ParseHex accepts exactly 64 lower-case hex digits.
func ParseHex(s string) (Digest, error) {
	var d Digest
	if len(s) != hex.EncodedLen(len(d)) || strings.ToLower(s) != s {
		return Digest{}, &DigestError{Got: s}
	}
	if _, err := hex.Decode(d[:], []byte(s)); err != nil {
		return Digest{}, &DigestError{Got: s}
	}
	return d, nil
}

// DigestOf hashes bytes in memory.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// String is the "sha256:<hex>" form.
func (d Digest) String() string { return digestPrefix + d.Hex() }

// Hex is the 64 hex digits alone, the form of file names.
func (d Digest) Hex() string { return hex.EncodeToString(d[:]) }

// Short is for people: the first twelve hex digits.
func (d Digest) Short() string { return d.Hex()[:12] }

// IsZero reports whether d is no digest at all.
func (d Digest) IsZero() bool { return d == Digest{} }

// Compare orders digests as their hex forms are ordered.
func (d Digest) Compare(other Digest) int { return strings.Compare(string(d[:]), string(other[:])) }

// MarshalText gives the "sha256:<hex>" form; the zero digest has none.
func (d Digest) MarshalText() ([]byte, error) {
	if d.IsZero() {
		return nil, &DigestError{}
	}
	return []byte(d.String()), nil
}

// UnmarshalText is ParseDigest.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}
