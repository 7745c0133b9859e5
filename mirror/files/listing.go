package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// A listing is text, a line a file, sorted by path:
//
//	<sha256, 64 hex> <size in bytes> <path>
//
// Paths hold no line breaks: bundle.CheckPath refuses control characters.
const maxListing = 512 << 20

func encodeListing(files []bundle.File) []byte {
	sorted := slices.SortedFunc(slices.Values(files), func(a, b bundle.File) int { return strings.Compare(a.Path, b.Path) })
	var b bytes.Buffer
	for _, f := range sorted {
		fmt.Fprintf(&b, "%s %d %s\n", f.Digest.Hex(), f.Size, f.Path)
	}
	return b.Bytes()
}

func decodeListing(b []byte) ([]bundle.File, error) {
	var files []bundle.File
	for line := range strings.Lines(string(b)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("the listing has the line %.100q", line)
		}
		digest, err := cas.ParseHex(fields[0])
		if err != nil {
			return nil, err
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || size < 0 {
			return nil, fmt.Errorf("the listing has the line %.100q", line)
		}
		files = append(files, bundle.File{Path: fields[2], Size: size, Digest: digest})
	}
	return files, nil
}

func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
