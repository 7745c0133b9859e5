package depot

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// maxPage is the most entries of one answer; a Link leads to the next.
const maxPage = 1000

// page is what a client asks for of a list.
type page struct {
	n     int
	after string
	asked bool // the client said n itself
}

// parsePage reads n and last.
func parsePage(query url.Values) (page, error) {
	p := page{n: maxPage, after: query.Get("last")}
	if len(p.after) > maxRepository {
		return p, &refusal{http.StatusBadRequest, "NAME_INVALID", "last is longer than any name"}
	}
	text := query.Get("n")
	if text == "" {
		return p, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return p, &refusal{http.StatusBadRequest, "PAGINATION_NUMBER_INVALID", "n is no number of entries"}
	}
	p.n, p.asked = min(n, maxPage), true
	return p, nil
}

// link says where the list goes on.
func (p page) link(w http.ResponseWriter, path, last string) {
	query := url.Values{"last": {last}}
	if p.asked {
		query.Set("n", strconv.Itoa(p.n))
	}
	w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, path, query.Encode()))
}

type catalogPage struct {
	Repositories []string `json:"repositories"`
}

func (s *server) catalog(w http.ResponseWriter, r *http.Request) error {
	p, err := parsePage(r.URL.Query())
	if err != nil {
		return err
	}
	// One more than asked for tells whether there is a next page.
	names, err := s.store.Repositories(r.Context(), p.after, p.n+1)
	if err != nil {
		return err
	}
	if len(names) > p.n {
		names = names[:p.n]
		if p.n > 0 {
			p.link(w, "/v2/_catalog", names[p.n-1])
		}
	}
	return writeJSON(w, "application/json", catalogPage{names})
}

type tagsPage struct {
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

func (s *server) tags(w http.ResponseWriter, r *http.Request, repository string) error {
	p, err := parsePage(r.URL.Query())
	if err != nil {
		return err
	}
	tags, err := s.store.Tags(r.Context(), repository, p.after, p.n+1)
	if err != nil {
		return err
	}
	answer := tagsPage{Name: repository, Tags: make([]string, 0, len(tags))}
	for _, tag := range tags {
		answer.Tags = append(answer.Tags, tag.Tag)
	}
	if len(answer.Tags) > p.n {
		answer.Tags = answer.Tags[:p.n]
		if p.n > 0 {
			p.link(w, "/v2/"+repository+"/tags/list", answer.Tags[p.n-1])
		}
	}
	return writeJSON(w, "application/json", answer)
}

// ociIndex is the answer to a question for referrers.
type ociIndex struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     string          `json:"mediaType"`
	Manifests     []ociDescriptor `json:"manifests"`
}

type ociDescriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       bundle.Digest     `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType,omitzero"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

// maxReferrers is how many bytes of descriptors an answer holds, so that it
// stays below the 4 MiB that clients read; a Link leads to the rest.
const maxReferrers = 2 << 20

func (s *server) referrers(w http.ResponseWriter, r *http.Request, p ociPath) error {
	d, ours, err := parseDigest(p.reference)
	if err != nil {
		return &refusal{http.StatusBadRequest, "DIGEST_INVALID", "that is no digest"}
	}
	var all []gate.DepotReferrer
	if ours {
		all, err = s.store.Referrers(r.Context(), p.repository, d)
		// A subject may come later than what refers to it: never a 404.
		var missing *gate.NotReleasedError
		if err != nil && !errors.As(err, &missing) {
			return err
		}
	}
	query := r.URL.Query()
	wanted := query.Get("artifactType")
	if wanted != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(e gate.DepotReferrer) bool { return e.ArtifactType != wanted })
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	after := query.Get("last")
	all = slices.DeleteFunc(slices.Clone(all), func(e gate.DepotReferrer) bool { return e.Digest.String() <= after })
	index, more, err := indexOf(all)
	if err != nil {
		return err
	}
	if more {
		rest := url.Values{"last": {index.Manifests[len(index.Manifests)-1].Digest.String()}}
		if wanted != "" {
			rest.Set("artifactType", wanted)
		}
		w.Header().Set("Link", fmt.Sprintf(`</v2/%s/referrers/%s?%s>; rel="next"`, p.repository, d, rest.Encode()))
	}
	return writeJSON(w, bundle.TypeOCIIndex, index)
}

// indexOf takes as many referrers as fit, at least one, and says whether any
// are left.
func indexOf(all []gate.DepotReferrer) (index ociIndex, more bool, err error) {
	index = ociIndex{SchemaVersion: 2, MediaType: bundle.TypeOCIIndex}
	size := 0
	for _, e := range all {
		entry := ociDescriptor{e.MediaType, e.Digest, e.Size, e.ArtifactType, e.Annotations}
		b, err := json.Marshal(entry)
		if err != nil {
			return index, false, err
		}
		if size += len(b); size > maxReferrers && len(index.Manifests) > 0 {
			return index, true, nil
		}
		index.Manifests = append(index.Manifests, entry)
	}
	return index, false, nil
}
