package cli

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// Bounds of a configuration file. The parser needs time with the square of the
// keys of a mapping and of the nesting, and some KiB of memory for each token:
// a file of a megabyte would take minutes and a gigabyte.
const (
	maxConfig  = 1 << 20 // bytes
	maxNesting = 1000
	maxKeys    = 10_000
	maxTokens  = 100_000
)

// nestsTooDeep counts brackets, whatever they stand in.
func nestsTooDeep(b []byte) bool {
	depth := 0
	for _, c := range b {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		}
		if depth > maxNesting {
			return true
		}
	}
	return false
}

// tooMuch says what there is too much of for the parser; "" if nothing.
func tooMuch(tokens token.Tokens) string {
	if len(tokens) > maxTokens {
		return fmt.Sprintf("it has %d words and signs, and a configuration file at most %d", len(tokens), maxTokens)
	}
	keys := 0
	for _, t := range tokens {
		if t.Type == token.MappingValueType {
			keys++
		}
	}
	if keys > maxKeys {
		return fmt.Sprintf("it has %d keys, and a configuration file at most %d", keys, maxKeys)
	}
	return ""
}
