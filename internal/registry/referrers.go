package registry

import (
	"context"
	"encoding/json/v2"
	"net/http"
	"net/url"
	"strings"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

const (
	maxReferrerPages = 100
	maxReferrerPage  = 4 << 20 // bytes
)

// Referrers lists the manifests of the repository that refer to subject, as
// the registry's referrers API tells. api is false where it has none: then
// the tag of the fallback schema lists them. Digests that are no SHA-256 are
// left out.
func (w *Writer) Referrers(ctx context.Context, subject cas.Digest) (list []cas.Digest, api bool, err error) {
	doing := "list the referrers of " + w.ref.At(subject).String()
	path := "referrers/" + subject.String()
	query := ""
	for range maxReferrerPages {
		resp, err := w.ask(ctx, doing, http.MethodGet, path+query, http.StatusOK, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented)
		if err != nil {
			return nil, false, err
		}
		if resp.StatusCode != http.StatusOK {
			discard(resp)
			return nil, false, nil
		}
		b, err := readWhole(body{ReadCloser: resp.Body, what: "the list of referrers of " + w.ref.At(subject).String()}, maxReferrerPage)
		if err != nil {
			return nil, false, err
		}
		page, err := parseReferrers(b)
		if err != nil {
			return nil, false, w.protocol("its list of referrers cannot be read: %w", err)
		}
		list = append(list, page...)
		if query = nextPage(resp.Header.Get("Link")); query == "" {
			return list, true, nil
		}
	}
	return nil, false, w.protocol("its list of referrers of %s has more than %d pages", subject, maxReferrerPages)
}

// parseReferrers gives the digests of an OCI index that lists referrers.
func parseReferrers(b []byte) ([]cas.Digest, error) {
	var index struct {
		Manifests []struct {
			Digest string `json:"digest"`
		} `json:"manifests"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, problem.JSON(err)
	}
	var list []cas.Digest
	for _, m := range index.Manifests {
		if d, err := cas.ParseDigest(m.Digest); err == nil {
			list = append(list, d)
		}
	}
	return list, nil
}

// nextPage gives the query of the next page, "?" included, from a Link header,
// such as <url>; rel="next"; "" when there is none. Host and path stay what
// they are, whatever the header says.
func nextPage(link string) string {
	for {
		_, rest, opened := strings.Cut(link, "<")
		target, rest, closed := strings.Cut(rest, ">")
		if !opened || !closed {
			return ""
		}
		link = rest
		parameters, _, _ := strings.Cut(rest, "<")
		if !strings.Contains(strings.ReplaceAll(parameters, " ", ""), `rel="next"`) {
			continue
		}
		u, err := url.Parse(target)
		if err != nil || u.RawQuery == "" {
			return ""
		}
		return "?" + u.RawQuery
	}
}
