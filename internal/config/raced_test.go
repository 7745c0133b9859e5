//go:build race

package config

// raced says that the race detector is on, which makes time and memory mean
// nothing.
const raced = true
