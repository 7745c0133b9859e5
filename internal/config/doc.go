// Package config reads a strict YAML document, such as a person writes it, into
// a Go value: within bounds, with every mistake at its line and column and with
// what was probably meant, and with the values that such documents have, spans
// of time and sizes. It never knows what a document is for, and never fills in
// or decides anything: defaults and what may stand in a field are its users'.
package config
