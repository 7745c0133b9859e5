//go:build !race

package child

// shadow is how many bytes of private memory a program takes for each that
// Spec.MaxData counts; more than one only under the race detector.
const shadow = 1
