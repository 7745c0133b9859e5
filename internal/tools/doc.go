// Package tools holds no code: its go.mod names the programs that tests and
// checks run (age, cosign, oras, versitygw, the conformance suite of the OCI distribution
// specification, staticcheck), each at one version, and make builds
// them from it. It is a module of its own, so that none of their dependencies
// ever decides a version of ours; see docs/decisions/0001-tools-module.md.
package tools
