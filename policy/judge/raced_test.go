//go:build race

package judge_test

// manyFiles is what the race detector leaves time for.
const manyFiles = 30_000
