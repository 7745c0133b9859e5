//go:build race

package child

// shadow is how many bytes of private memory a program takes for each that it
// would take otherwise: the race detector keeps notes about all of it.
const shadow = 4
