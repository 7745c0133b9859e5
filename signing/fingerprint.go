package signing

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Fingerprint is the SHA-256 of a file that two people compare, aloud or on
// paper: the same number that sha256sum prints, in two forms that are easier
// to say.
type Fingerprint [sha256.Size]byte

// FingerprintOf is the fingerprint of a file's bytes.
func FingerprintOf(raw []byte) Fingerprint { return sha256.Sum256(raw) }

// String is 16 groups of four hexadecimal digits, separated by spaces.
func (f Fingerprint) String() string {
	groups := make([]string, 0, len(f)/2)
	for i := 0; i < len(f); i += 2 {
		groups = append(groups, hex.EncodeToString(f[i:i+2]))
	}
	return strings.Join(groups, " ")
}

// Words is 32 English words, one a byte, two for each group of String. They
// carry the whole digest; there is no checksum, every word is compared.
func (f Fingerprint) Words() []string {
	list := words()
	said := make([]string, len(f))
	for i, b := range f {
		said[i] = list[b]
	}
	return said
}

// ParseFingerprint reads what a person typed: 64 hexadecimal digits or 32
// words, with any white space, commas, colons or dashes between them, in any
// case, with or without "sha256:" in front. Errors have CodeFingerprint.
func ParseFingerprint(typed string) (Fingerprint, error) {
	const limit = 1 << 10
	if len(typed) > limit {
		return Fingerprint{}, tooLarge(CodeFingerprint, "the fingerprint", len(typed), limit)
	}
	typed = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(typed)), "sha256:")
	parts := strings.FieldsFunc(typed, func(r rune) bool { return strings.ContainsRune(" \t\r\n,:-", r) })
	if raw, err := hex.DecodeString(strings.Join(parts, "")); err == nil && len(raw) == sha256.Size {
		return Fingerprint(raw), nil
	}
	return fingerprintOfWords(parts)
}

func fingerprintOfWords(said []string) (Fingerprint, error) {
	var f Fingerprint
	if len(said) != len(f) {
		return f, newError(CodeFingerprint, "this is not a fingerprint", nil).
			with("want:  64 hexadecimal digits or 32 words")
	}
	bytes := map[string]byte{}
	for i, word := range words() {
		bytes[word] = byte(i)
	}
	for i, word := range said {
		b, ok := bytes[word]
		if !ok {
			return Fingerprint{}, newError(CodeFingerprint, "this is not a fingerprint", nil).
				with("word:  " + clip(word) + " is not in the list")
		}
		f[i] = b
	}
	return f, nil
}
