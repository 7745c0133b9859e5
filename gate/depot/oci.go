package depot

import (
	"context"
	"encoding/json/v2"
	"errors"
	"net/http"
	"strconv"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

const typeBytes = "application/octet-stream"

// serveOCI answers below /v2/.
func (s *server) serveOCI(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	unknown, err := s.answerOCI(w, r)
	if err != nil {
		s.tellOCI(w, s.refusalOf(r, err, unknown))
	}
}

// answerOCI answers, or gives an error when nothing was sent yet, together
// with the specification's code for what is not there.
func (s *server) answerOCI(w http.ResponseWriter, r *http.Request) (unknown string, err error) {
	if err := errors.Join(readOnly(w, r), plainSlashes(r)); err != nil {
		return "", err
	}
	p, err := parseOCIPath(r.URL.Path)
	if err != nil {
		return "", err
	}
	switch p.end {
	case endCatalog:
		return "NAME_UNKNOWN", s.catalog(w, r)
	case endTags:
		return "NAME_UNKNOWN", s.tags(w, r, p.repository)
	case endReferrers:
		return "MANIFEST_UNKNOWN", s.referrers(w, r, p)
	case endManifests:
		err := s.manifest(w, r, p)
		return s.unknownManifest(r.Context(), p.repository, err), err
	case endBlobs:
		return "BLOB_UNKNOWN", s.blob(w, r, p)
	}
	return "", writeJSON(w, "application/json", struct{}{}) // the base: this is a registry
}

// manifest gives a manifest by tag or digest. Accept is not looked at: there
// is one form of each manifest, the one that was signed.
func (s *server) manifest(w http.ResponseWriter, r *http.Request, p ociPath) error {
	var d bundle.Digest
	caching := cacheByName
	if validTag(p.reference) {
		tag, err := s.store.Tag(r.Context(), p.repository, p.reference)
		if err != nil {
			return err
		}
		d = tag.Digest
	} else {
		var err error
		if d, err = ownDigest(p.reference); err != nil {
			return err
		}
		caching = cacheByDigest
	}
	b, err := s.store.Blob(r.Context(), p.repository, d)
	if err != nil {
		return err
	}
	if !b.Manifest || !bundle.IsManifest(b.MediaType) {
		return &gate.NotReleasedError{What: "the manifest " + d.String()}
	}
	w.Header().Set("Docker-Content-Digest", d.String())
	return s.content(w, r, item{digest: d, size: b.Size, mediaType: b.MediaType, caching: caching})
}

// unknownManifest tells apart what a client should look at: the name of the
// repository, or what it asked for in it.
func (s *server) unknownManifest(ctx context.Context, repository string, err error) string {
	var missing *gate.NotReleasedError
	if !errors.As(err, &missing) {
		return ""
	}
	if _, err := s.store.Tags(ctx, repository, "", 1); errors.As(err, &missing) {
		return "NAME_UNKNOWN"
	}
	return "MANIFEST_UNKNOWN"
}

// blob gives a config, a layer or, as registries do, a manifest as bytes.
func (s *server) blob(w http.ResponseWriter, r *http.Request, p ociPath) error {
	d, err := ownDigest(p.reference)
	if err != nil {
		return err
	}
	b, err := s.store.Blob(r.Context(), p.repository, d)
	if err != nil {
		return err
	}
	w.Header().Set("Docker-Content-Digest", d.String())
	return s.content(w, r, item{digest: d, size: b.Size, mediaType: typeBytes, caching: cacheByDigest})
}

// ownDigest parses the digest of something that should be here.
func ownDigest(s string) (bundle.Digest, error) {
	d, ours, err := parseDigest(s)
	switch {
	case err != nil:
		return d, &refusal{http.StatusBadRequest, "DIGEST_INVALID", "that is no digest: sha256: and 64 lower-case hex digits are one"}
	case !ours:
		return d, &gate.NotReleasedError{What: "content named by another algorithm than sha256"}
	}
	return d, nil
}

// ociErrors is the specification's form of an error.
type ociErrors struct {
	Errors []ociError `json:"errors"`
}

type ociError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// tellOCI answers with an error. A client that is gone is not missed.
func (s *server) tellOCI(w http.ResponseWriter, e *refusal) {
	body, err := json.Marshal(ociErrors{[]ociError{{e.code, e.message}}})
	if err != nil {
		panic(http.ErrAbortHandler) // a message that is no UTF-8 says nothing
	}
	forgetContent(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(e.status)
	if _, err := w.Write(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// forgetContent takes away what was said about content that does not come.
func forgetContent(h http.Header) {
	for _, name := range []string{"Docker-Content-Digest", "ETag", "Content-Disposition", "Accept-Ranges", "Content-Range", "Link", "OCI-Filters-Applied"} {
		h.Del(name)
	}
	h.Set("Cache-Control", "no-store")
}

// writeJSON answers with a document.
func writeJSON(w http.ResponseWriter, mediaType string, v any) error {
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := w.Write(body); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}
