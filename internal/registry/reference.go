package registry

import (
	"regexp"
	"strings"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// Reference names an object in a registry. At least one of Tag and Digest is
// set; where both are, the digest decides.
type Reference struct {
	Host       string // lower case, with the port if there is one; Docker Hub is "docker.io"
	Repository string
	Tag        string
	Digest     cas.Digest
}

// The grammar of the distribution project's references, of which docker is
// the model.
var (
	hostForm       = regexp.MustCompile(`^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:]+\])(?::[0-9]{1,5})?$`)
	repositoryForm = regexp.MustCompile(`^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$`)
	tagForm        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

const (
	dockerHub     = "docker.io"
	dockerHubAPI  = "index.docker.io"
	maxReference  = 1024
	maxRepository = 255
)

// ParseReference reads "host[:port]/repository[:tag][@sha256:…]". A name
// without a host is one of Docker Hub, as docker has it: "nginx:1.27" is
// docker.io/library/nginx:1.27. Unlike docker it takes no missing tag for
// "latest": without tag and digest it is an error of code
// "reference/malformed".
func ParseReference(s string) (Reference, error) {
	if len(s) > maxReference {
		return Reference{}, malformed(s[:40]+"…", "it has more than %d bytes", maxReference)
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		return Reference{}, malformed(s, "an image reference has no %.20s://", scheme).Hint("write %s", display(rest))
	}
	var ref Reference
	rest, digest, ok := strings.Cut(s, "@")
	if ok {
		d, err := cas.ParseDigest(digest)
		if err != nil || d.IsZero() {
			return Reference{}, malformed(s, "what follows the @ is not sha256: and 64 lower-case hex digits")
		}
		ref.Digest = d
	}
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		rest, ref.Tag = rest[:i], rest[i+1:]
		if !tagForm.MatchString(ref.Tag) {
			return Reference{}, malformed(s, "%.40q cannot be a tag", ref.Tag)
		}
	}
	ref.Host, ref.Repository = splitHost(rest)
	switch {
	case !hostForm.MatchString(ref.Host):
		return Reference{}, malformed(s, "%.60q cannot be a host", ref.Host)
	case len(ref.Repository) > maxRepository || !repositoryForm.MatchString(ref.Repository):
		return Reference{}, malformed(s, "%.60q cannot be a repository", ref.Repository)
	case ref.Tag == "" && ref.Digest.IsZero():
		return Reference{}, malformed(s, "it has neither a tag nor a digest").Hint("write the tag or the digest, such as %s:1.27", s)
	}
	return ref, nil
}

func splitHost(s string) (host, repository string) {
	first, rest, ok := strings.Cut(s, "/")
	host = strings.ToLower(first)
	if !ok || !strings.ContainsAny(first, ".:") && host != "localhost" {
		host, rest = dockerHub, s
	}
	if host == dockerHubAPI {
		host = dockerHub
	}
	if host == dockerHub && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	return host, rest
}

// String is the full form, host included.
func (r Reference) String() string {
	s := r.Host + "/" + r.Repository
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if !r.Digest.IsZero() {
		s += "@" + r.Digest.String()
	}
	return s
}

// At is the object d in the same repository.
func (r Reference) At(d cas.Digest) Reference {
	return Reference{Host: r.Host, Repository: r.Repository, Digest: d}
}

// ByTag is r without its digest.
func (r Reference) ByTag() Reference {
	return Reference{Host: r.Host, Repository: r.Repository, Tag: r.Tag}
}

// identifier is the last part of a manifest's URL.
func (r Reference) identifier() string {
	if r.Digest.IsZero() {
		return r.Tag
	}
	return r.Digest.String()
}

func malformed(reference, format string, args ...any) *problem.Problem {
	return problem.New("reference/malformed", "%q is no image reference: "+format, append([]any{display(reference)}, args...)...)
}

// display hides what may be a password: people paste user:password@host.
func display(reference string) string {
	if i := strings.LastIndexByte(reference, '@'); i >= 0 && !strings.HasPrefix(reference[i+1:], "sha256:") {
		return "…" + reference[i:]
	}
	return reference
}
