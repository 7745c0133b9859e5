//go:build race

package cli

// raced says that the race detector is on, which makes time and memory mean
// nothing.
const raced = true
