//go:build race

package facts_test

// What the race detector leaves time for.

const manyFiles = 5_000 // of a bundle that can be judged

func tooLarge() map[string]listing {
	return map[string]listing{"artifacts that share one tree": sharedTree()}
}
