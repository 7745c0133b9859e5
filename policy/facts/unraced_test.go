//go:build !race

package facts_test

const manyFiles = 99_000 // a bundle names no more than 100,000 blobs

func tooLarge() map[string]listing {
	return map[string]listing{"artifacts that share one tree": sharedTree(), "one tree": {"data/", 300_000, 1}}
}
