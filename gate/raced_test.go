//go:build race

package gate_test

// raced says that the race detector is on, which makes a process start many
// times as slow and sees nothing of one that is killed: few are killed then, and
// all of them in the run without it.
const raced = true
