package policy

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed library
var libraryFiles embed.FS

// Library is the policy that ships, with the defaults of its parameters.
func Library() (Source, error) {
	dir, err := fs.Sub(libraryFiles, "library")
	if err != nil {
		return Source{}, fmt.Errorf("rule library: %w", err)
	}
	return ReadSource(dir)
}
