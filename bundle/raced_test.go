//go:build race

package bundle_test

// flipStep is how far apart the bytes are that are flipped. The race detector
// makes each several times as slow, and sees nothing in them that it has not
// seen in the ones before: make test runs them all without it.
const flipStep = 11
