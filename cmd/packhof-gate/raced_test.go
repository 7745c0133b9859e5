//go:build race

package main

// raced says that the race detector is on, under which a program needs many
// times the memory: what measures it runs without.
const raced = true
