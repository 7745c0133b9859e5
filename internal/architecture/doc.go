// Package architecture holds no code but tests: the rules about who may import
// whom, each with its reason, and the oldest versions of libraries that we
// accept. They are the enforced half of the design; a new package gets a line
// in floors_test.go and, if it needs protection, a rule in rules_test.go.
package architecture
