package registry

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/registry"
)

// link makes sure that the registry lists each referrer. Where it has the
// referrers API, the manifests' own subject does that; where it has none, the
// fallback schema of OCI 1.1 does: an index under the tag "sha256-<hex>".
func (s *Sink) link(ctx context.Context, to *registry.Writer, ref registry.Reference, referrers []attached) error {
	for _, subject := range subjects(referrers) {
		missing, api, err := unlisted(ctx, to, subject, referrers)
		if err != nil {
			return err
		}
		if api || len(missing) == 0 {
			continue // an API may be slow to list; Verify has the last word
		}
		if err := s.fallback(ctx, to, ref.At(subject).String(), subject, missing); err != nil {
			return err
		}
	}
	return nil
}

// subjects are the digests referred to, in order, each once.
func subjects(referrers []attached) []bundle.Digest {
	var all []bundle.Digest
	for _, r := range referrers {
		if !slices.Contains(all, r.subject) {
			all = append(all, r.subject)
		}
	}
	return all
}

// unlisted gives those referrers of subject that no list of the registry
// names: neither its API nor, without one, the fallback tag.
func unlisted(ctx context.Context, to *registry.Writer, subject bundle.Digest, referrers []attached) (missing []attached, api bool, err error) {
	listed, api, err := to.Referrers(ctx, subject)
	if err != nil {
		return nil, false, err
	}
	if !api {
		index, err := readFallback(ctx, to, subject)
		if err != nil {
			return nil, false, err
		}
		listed = index.digests()
	}
	for _, r := range referrers {
		if r.subject == subject && !slices.Contains(listed, r.Digest) {
			missing = append(missing, r)
		}
	}
	return missing, api, nil
}

const linkAttempts = 5

// fallback adds to the index of the fallback schema and reads it back, since
// somebody else may have written it at the same time and nothing in the
// protocol prevents that.
func (s *Sink) fallback(ctx context.Context, to *registry.Writer, what string, subject bundle.Digest, missing []attached) error {
	select {
	case s.links <- struct{}{}:
		defer func() { <-s.links }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for range linkAttempts {
		index, err := readFallback(ctx, to, subject)
		if err != nil {
			return err
		}
		changed, err := index.add(missing)
		if err != nil {
			return err
		}
		if !changed {
			return nil
		}
		b, err := json.Marshal(index, json.Deterministic(true))
		if err != nil {
			return err
		}
		if err := to.PutManifest(ctx, fallbackTag(subject), bundle.TypeOCIIndex, b); err != nil {
			return err
		}
	}
	return problem.New("destination/mismatch", "the referrers of %s are not listed although they were added %d times", what, linkAttempts).
		Hint("look for another program that writes the tag %s", fallbackTag(subject))
}

func fallbackTag(subject bundle.Digest) string { return "sha256-" + subject.Hex() }

// fallbackIndex is an index of referrers. What others wrote into it stays as
// they wrote it.
type fallbackIndex struct {
	SchemaVersion int              `json:"schemaVersion"`
	MediaType     string           `json:"mediaType"`
	Manifests     []jsontext.Value `json:"manifests"`
	Rest          jsontext.Value   `json:",embed"`
}

// maxReferrers bounds an index that we would add to.
const maxReferrers = 10_000

func readFallback(ctx context.Context, to *registry.Writer, subject bundle.Digest) (*fallbackIndex, error) {
	_, b, found, err := to.Manifest(ctx, fallbackTag(subject), bundle.MaxOCIManifestSize)
	if err != nil {
		return nil, err
	}
	if !found {
		return &fallbackIndex{SchemaVersion: 2, MediaType: bundle.TypeOCIIndex, Manifests: []jsontext.Value{}}, nil
	}
	index, err := parseFallback(b)
	if err != nil {
		return nil, problem.New("destination/refused", "the tag %s, which is to list referrers, holds something else: %w", fallbackTag(subject), err).
			Hint("have somebody look at that tag, and take it away if nothing needs it")
	}
	return index, nil
}

// parseFallback reads the index of a fallback tag, as anybody may have
// written it.
func parseFallback(b []byte) (*fallbackIndex, error) {
	if len(b) > bundle.MaxOCIManifestSize {
		return nil, fmt.Errorf("it has more than %d bytes", bundle.MaxOCIManifestSize)
	}
	var index fallbackIndex
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, problem.JSON(err)
	}
	if index.MediaType == "" {
		index.MediaType = bundle.TypeOCIIndex
	}
	if index.SchemaVersion != 2 || index.MediaType != bundle.TypeOCIIndex || len(index.Manifests) > maxReferrers {
		return nil, fmt.Errorf("schema version %d, type %.100q, %d entries", index.SchemaVersion, index.MediaType, len(index.Manifests))
	}
	if index.Manifests == nil {
		index.Manifests = []jsontext.Value{}
	}
	return &index, nil
}

// digests are those of its entries that we could have added.
func (x *fallbackIndex) digests() []bundle.Digest {
	var all []bundle.Digest
	for _, entry := range x.Manifests {
		var d struct {
			Digest bundle.Digest `json:"digest"`
		}
		if json.Unmarshal(entry, &d) == nil {
			all = append(all, d.Digest)
		}
	}
	return all
}

// add adds the referrers that it does not list, and reports whether there
// were any.
func (x *fallbackIndex) add(referrers []attached) (changed bool, err error) {
	listed := x.digests()
	for _, r := range referrers {
		if slices.Contains(listed, r.Digest) {
			continue
		}
		entry, err := json.Marshal(r.OCIDescriptor, json.Deterministic(true))
		if err != nil {
			return false, err
		}
		x.Manifests = append(x.Manifests, entry)
		changed = true
	}
	return changed, nil
}
