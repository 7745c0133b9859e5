//go:build !race

package gate_test

const raced = false
