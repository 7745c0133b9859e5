//go:build !race

package bundle_test

const flipStep = 1
