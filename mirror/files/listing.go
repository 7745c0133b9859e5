package files

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// digestOfListing is the digest of the files of a tree as text, a line a file,
// sorted by path:
//
//	<sha256, 64 hex> <size in bytes> <path>
//
// Paths hold no line breaks: bundle.CheckPath refuses control characters.
func digestOfListing(files []bundle.File) (d cas.Digest) {
	sorted := slices.SortedFunc(slices.Values(files), func(a, b bundle.File) int { return strings.Compare(a.Path, b.Path) })
	h := sha256.New()
	for _, f := range sorted {
		_, _ = fmt.Fprintf(h, "%s %d %s\n", f.Digest.Hex(), f.Size, f.Path) // a hash never fails
	}
	h.Sum(d[:0])
	return d
}

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
