package testkit

import (
	"crypto/sha256"
	"io"
	"math/rand/v2"
)

// Random returns an endless stream of incompressible bytes that depends on
// nothing but the seed. It never returns an error. Not for secrets.
func Random(seed string) io.Reader {
	return rand.NewChaCha8(sha256.Sum256([]byte(seed)))
}

// Bytes returns the first n bytes of Random(seed).
func Bytes(seed string, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(b) // documented never to fail
	return b
}
