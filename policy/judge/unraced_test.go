//go:build !race

package judge_test

const (
	judgeMemory = 0       // the default
	manyFiles   = 140_000 // about as many as facts can be stated of
)
