//go:build !race

package judge_test

// manyFiles is about how many facts can be stated of.
const manyFiles = 140_000
