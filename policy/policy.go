// Package policy goes from facts to a verdict, with OPA. It owns the document
// that rules see, the contract that rules fulfil, the library of rules that
// ships, and the floor that no rule can lower.
//
// It never finds out a fact by itself: it has no network, no clock and no
// files. It never takes "no answer" for "allowed": whatever goes wrong while
// judging is an error, and an error blocks.
package policy
