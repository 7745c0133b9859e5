//go:build race

package judge_test

// What the race detector leaves room and time for.
const (
	judgeMemory = 8 << 30 // bytes; it takes several times what the program does
	manyFiles   = 30_000
)
