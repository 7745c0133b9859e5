package depot

import (
	"net/http"
	"strings"
)

// endpoint is what a request below /v2/ is about.
type endpoint string

const (
	endBase      endpoint = "base"
	endCatalog   endpoint = "catalog"
	endTags      endpoint = "tags"
	endManifests endpoint = "manifests"
	endBlobs     endpoint = "blobs"
	endReferrers endpoint = "referrers"
)

// ociPath is a path below /v2/, taken apart. Reference is a tag or digest that
// was not looked at yet.
type ociPath struct {
	end        endpoint
	repository string
	reference  string
}

// parseOCIPath takes a decoded path apart. The last two parts decide what it
// is, so that no repository name, whatever it contains, makes two readings
// possible. The error is a *refusal.
func parseOCIPath(path string) (ociPath, error) {
	rest, ok := strings.CutPrefix(path, "/v2/")
	switch {
	case path == "/v2" || ok && rest == "":
		return ociPath{end: endBase}, nil
	case !ok:
		return ociPath{}, noEndpoint()
	case rest == "_catalog":
		return ociPath{end: endCatalog}, nil
	}
	before, last, ok := cutLast(rest)
	if !ok {
		return ociPath{}, noEndpoint()
	}
	repository, what, ok := cutLast(before)
	if !ok {
		return ociPath{}, noEndpoint()
	}
	p := ociPath{end: endpoint(what), repository: repository, reference: last}
	switch {
	case what == "tags" && last == "list":
		p.reference = ""
	case p.end == endManifests || p.end == endBlobs || p.end == endReferrers:
	default:
		return ociPath{}, noEndpoint()
	}
	if !validRepository(repository) {
		return ociPath{}, &refusal{http.StatusBadRequest, "NAME_INVALID", "that cannot be the name of a repository"}
	}
	return p, nil
}

func noEndpoint() *refusal {
	return &refusal{http.StatusNotFound, "UNSUPPORTED", "there is no such endpoint"}
}

// cutLast cuts at the last slash.
func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
