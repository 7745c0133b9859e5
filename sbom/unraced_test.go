//go:build !race

package sbom_test

const raced = false
