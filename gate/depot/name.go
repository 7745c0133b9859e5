package depot

import (
	"regexp"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// Limits of names in the OCI distribution specification.
const (
	maxRepository = 255
	maxTag        = 128
)

// The grammars of the specification. RE2 takes time linear in the text.
var (
	repositoryGrammar = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagGrammar        = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`)
	digestGrammar     = regexp.MustCompile(`^[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$`)
)

func validRepository(s string) bool {
	return len(s) <= maxRepository && repositoryGrammar.MatchString(s)
}

func validTag(s string) bool { return len(s) <= maxTag && tagGrammar.MatchString(s) }

const maxForeignDigest = 256

// parseDigest reads a digest of a request. ours is false for a well-formed one
// of another algorithm: it is no mistake, but nothing here has that name.
func parseDigest(s string) (d bundle.Digest, ours bool, err error) {
	if d, err = cas.ParseDigest(s); err == nil {
		return d, true, nil
	}
	if strings.HasPrefix(s, "sha256:") || len(s) > maxForeignDigest || !digestGrammar.MatchString(s) {
		return bundle.Digest{}, false, err
	}
	return bundle.Digest{}, false, nil
}
