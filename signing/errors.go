package signing

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"fmt"
	"strings"
	"unicode"
)

// The codes of the errors that a user of the programs can meet. They are
// stable: documents and scripts refer to them.
const (
	CodeNotKey          = "signing/not-a-key"
	CodeKeyTooLarge     = "signing/key-too-large"
	CodeWrongPassphrase = "signing/wrong-passphrase"
	CodeNoPassphrase    = "signing/no-passphrase"
	CodeUnencryptedKey  = "signing/unencrypted-key"
	CodeKeyAlgorithm    = "signing/key-algorithm"
	CodeSigner          = "signing/signer-failed"

	CodeBadBundle         = "signing/bad-signature-file"
	CodeTooManySignatures = "signing/too-many-signatures"

	CodeBadRoot        = "signing/bad-root"
	CodeRootVersion    = "signing/root-version"
	CodeRootConflict   = "signing/root-conflict"
	CodeRootSignatures = "signing/root-signatures"
	CodeRootChange     = "signing/root-change"

	CodeBadRevocations        = "signing/bad-revocations"
	CodeRevocationsShrunk     = "signing/revocations-shrunk"
	CodeRevocationsSignatures = "signing/revocations-signatures"
	CodeRevocationsChange     = "signing/revocations-change"

	CodeNoTrust     = "signing/no-trust-root"
	CodeNotGenuine  = "signing/not-genuine"
	CodeThreshold   = "signing/threshold"
	CodeUnknownRole = "signing/unknown-role"
	CodeExpiredKey  = "signing/expired-key"
	CodeRevokedKey  = "signing/revoked-key"
	CodeRevoked     = "signing/revoked"

	CodeFingerprint = "signing/bad-fingerprint"
)

// maxCause is how much of a cause's text is shown, in bytes.
const maxCause = 400

// Error is an error with a stable code. *UntrustedError is the other kind this
// package has: the one about who signed and who did not.
type Error struct {
	code     string
	message  string
	evidence []string
	cause    error
}

func (e *Error) Error() string {
	if e.cause == nil {
		return e.message
	}
	return e.message + ": " + oneLine(e.cause.Error(), maxCause)
}

// Unwrap gives the cause, if there is one.
func (e *Error) Unwrap() error { return e.cause }

// Code is one of the Code constants.
func (e *Error) Code() string { return e.code }

// Evidence is a list of lines such as "want:  3f9a…".
func (e *Error) Evidence() []string { return e.evidence }

// Remedy is the one thing to do next, or empty where there is none but to get
// the bytes again from who made them.
func (e *Error) Remedy() string { return remedy(e.code) }

func (e *Error) with(evidence ...string) *Error {
	e.evidence = append(e.evidence, evidence...)
	return e
}

func newError(code, message string, cause error) *Error {
	return &Error{code: code, message: message, cause: cause}
}

func tooLarge(code, what string, got, limit int) *Error {
	return newError(code, fmt.Sprintf("%s is too large", what), nil).
		with(fmt.Sprintf("limit: %d bytes", limit), fmt.Sprintf("got:   %d bytes", got))
}

func otherAlgorithm(key any) *Error {
	return newError(CodeKeyAlgorithm, fmt.Sprintf("a key of kind %s cannot be used here", keyKind(key)), nil).
		with("want:  " + string(ECDSA))
}

func remedy(code string) string {
	switch code {
	case CodeNotKey:
		return "name a key file made by  packhof key generate  or  cosign generate-key-pair"
	case CodeWrongPassphrase:
		return "type the passphrase again"
	case CodeNoPassphrase:
		return "set PACKHOF_PASSPHRASE or type a passphrase when asked"
	case CodeUnencryptedKey:
		return "encrypt it with  cosign import-key-pair --key FILE"
	case CodeKeyAlgorithm:
		return "make an ECDSA P-256 key with  packhof key generate"
	case CodeNoTrust:
		return "take in the trust root by hand: root-1.json, after comparing its fingerprint"
	case CodeRootConflict:
		return "take nothing in before both sides have compared their trust roots: packhof trust show, packhof-gate trust show"
	case CodeRootVersion:
		return "bring the root versions in between first, in order"
	case CodeThreshold:
		return "have the missing people sign it too"
	case CodeExpiredKey, CodeUnknownRole:
		return "bring a newer version of the trust root"
	case CodeRevokedKey:
		return "have the bundle signed again with a key that is not revoked"
	}
	return ""
}

// keyKind names a key's kind without naming a Go type.
func keyKind(key any) string {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		return curveName(key)
	case *ecdsa.PrivateKey:
		return curveName(&key.PublicKey)
	case ed25519.PublicKey, ed25519.PrivateKey:
		return "Ed25519"
	case *rsa.PublicKey, *rsa.PrivateKey:
		return "RSA"
	}
	return "unknown"
}

func curveName(key *ecdsa.PublicKey) string {
	if key == nil || key.Curve == nil {
		return "unknown"
	}
	return "ECDSA " + key.Curve.Params().Name
}

// clip makes foreign text fit into a message.
func clip(s string) string { return oneLine(s, 64) }

// oneLine cuts a text that may quote foreign bytes to a number of bytes, and
// takes out what would move a terminal's cursor or hide something.
func oneLine(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}
