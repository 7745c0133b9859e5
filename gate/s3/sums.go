package s3

import (
	"errors"
	"fmt"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// maxSums is how large a SHA256SUMS may be, in bytes: enough for 100,000 blobs
// with long names.
const maxSums = 64 << 20

// sums is a parsed SHA256SUMS: the digests by path.
type sums map[string]bundle.Digest

// formatSums writes objects, sorted by path, as sha256sum -c reads them. Paths
// have neither a backslash nor a line break, so no line needs its escapes.
func formatSums(objects []object) []byte {
	size := 0
	for _, o := range objects {
		size += lineCost + len(o.path)
	}
	b := make([]byte, 0, size)
	for _, o := range objects {
		b = append(b, o.digest.Hex()...)
		b = append(b, "  "...)
		b = append(b, o.path...)
		b = append(b, '\n')
	}
	return b
}

const lineCost = 64 + len("  \n") // without the path

// parseSums reads what formatSums writes, and nothing else.
func parseSums(b []byte) (sums, error) {
	if len(b) > maxSums {
		return nil, fmt.Errorf("it has more than %d bytes", maxSums)
	}
	list := sums{}
	last := ""
	for text := range strings.Lines(string(b)) {
		line, ended := strings.CutSuffix(text, "\n")
		if !ended || len(line) < lineCost {
			return nil, fmt.Errorf("line %d ends too early", len(list)+1)
		}
		digest, err := cas.ParseHex(line[:64])
		path := line[66:]
		switch {
		case err != nil || line[64:66] != "  ":
			err = errors.New("does not begin with a digest and two spaces")
		case path <= last:
			err = errors.New("is out of order")
		default:
			err = bundle.CheckPath(path)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(list)+1, err)
		}
		list[path], last = digest, path
	}
	return list, nil
}
