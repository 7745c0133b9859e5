//go:build race

package sbom_test

// raced says that the race detector is on, under which much of anything takes
// too long.
const raced = true
