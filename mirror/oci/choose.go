package oci

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// choice is the root that a selection of platforms leads to.
type choice struct {
	root     bundle.OCIDescriptor
	document []byte          // the root itself where it is of our making
	derived  *bundle.Derived // nil where the root is upstream's own
}

// attestedBy is the annotation by which BuildKit says which manifest of the
// same index an attestation belongs to.
const attestedBy = "vnd.docker.reference.digest"

// choose finds the root for these platforms, none meaning all, and stores it
// where it is of our making.
func (r reader) choose(ctx context.Context, upstream bundle.OCIDescriptor, platforms []platform) (choice, error) {
	if len(platforms) == 0 {
		return choice{root: upstream}, nil
	}
	b, doc, err := r.manifest(ctx, upstream)
	if err != nil {
		return choice{}, err
	}
	if !bundle.IsIndex(upstream.MediaType) {
		p, err := r.configPlatform(ctx, *doc.Config)
		if err != nil {
			return choice{}, err
		}
		return choice{root: upstream}, checkPresent(platforms, runnable([]platform{p}), r.ref.String())
	}
	c, err := chooseFrom(b, doc, upstream, platforms, r.ref.String())
	if err != nil || c.document == nil {
		return c, err
	}
	_, err = r.store.PutBytes(ctx, c.document)
	return c, err
}

func chooseFrom(index []byte, doc *bundle.OCI, upstream bundle.OCIDescriptor, wanted []platform, what string) (choice, error) {
	var there []platform
	for _, d := range doc.Manifests {
		there = append(there, platformOf(d))
	}
	running := runnable(there)
	if err := checkPresent(wanted, running, what); err != nil {
		return choice{}, err
	}
	picked := make([]bool, len(doc.Manifests))
	var chosen []bundle.OCIDescriptor
	for i, d := range doc.Manifests {
		if picked[i] = there[i].runs() && slices.Contains(wanted, there[i]); picked[i] {
			chosen = append(chosen, d)
		}
	}
	switch len(chosen) {
	case 1:
		return choice{root: bare(chosen[0]), derived: derivedFrom(upstream, chosen)}, nil
	case len(running):
		return choice{root: upstream}, nil
	}
	for i, d := range doc.Manifests {
		picked[i] = picked[i] || attests(d, chosen)
	}
	b, err := someOf(index, upstream.MediaType, picked)
	if err != nil {
		return choice{}, err
	}
	root := bundle.OCIDescriptor{MediaType: upstream.MediaType, Digest: cas.DigestOf(b), Size: int64(len(b))}
	return choice{root: root, document: b, derived: derivedFrom(upstream, chosen)}, nil
}

func runnable(platforms []platform) []platform {
	return slices.DeleteFunc(slices.Clone(platforms), func(p platform) bool { return !p.runs() })
}

func attests(d bundle.OCIDescriptor, chosen []bundle.OCIDescriptor) bool {
	return slices.ContainsFunc(chosen, func(c bundle.OCIDescriptor) bool { return d.Annotations[attestedBy] == c.Digest.String() })
}

func derivedFrom(upstream bundle.OCIDescriptor, chosen []bundle.OCIDescriptor) *bundle.Derived {
	var platforms []platform
	for _, d := range chosen {
		platforms = append(platforms, platformOf(d))
	}
	return &bundle.Derived{From: upstream.Digest, Platforms: names(platforms)}
}

// someOf makes the index of the picked manifests: their descriptors with all
// that upstream says in them, in upstream's order, written as RFC 8785 says,
// so that the same choice from the same index is always the same bytes.
func someOf(index []byte, mediaType string, picked []bool) ([]byte, error) {
	var all struct {
		Manifests []jsontext.Value `json:"manifests"`
	}
	if err := json.Unmarshal(index, &all); err != nil {
		return nil, fmt.Errorf("choose platforms: %w", err)
	}
	some := struct {
		SchemaVersion int              `json:"schemaVersion"`
		MediaType     string           `json:"mediaType"`
		Manifests     []jsontext.Value `json:"manifests"`
	}{SchemaVersion: 2, MediaType: mediaType}
	for i, descriptor := range all.Manifests {
		if picked[i] {
			some.Manifests = append(some.Manifests, descriptor)
		}
	}
	b, err := json.Marshal(some)
	if err != nil {
		return nil, fmt.Errorf("choose platforms: %w", err)
	}
	value := jsontext.Value(b)
	if err := value.Canonicalize(); err != nil {
		return nil, fmt.Errorf("choose platforms: %w", err)
	}
	return value, nil
}
