package oci

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json/v2"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/mirror"
)

// deriveRoot makes the chosen platforms' root again from upstream's index, so
// that what the lock says of its origin is true and not only claimed. It
// stores the root where it is of our making and the store lost it.
func (r reader) deriveRoot(ctx context.Context, p mirror.Pinned) error {
	if p.Derived == nil {
		return nil
	}
	platforms, err := parsePlatforms(p.Derived.Platforms)
	if err != nil {
		return err
	}
	index, err := r.upstreamIndex(ctx, p.Derived.From)
	if err != nil {
		return err
	}
	upstream := bundle.OCIDescriptor{MediaType: indexType(index, p.Root), Digest: p.Derived.From, Size: int64(len(index))}
	doc, err := r.parse(index, upstream.MediaType)
	if err != nil {
		return err
	}
	chosen, err := chooseFrom(index, doc, upstream, platforms, r.ref.String())
	if err != nil {
		return err
	}
	if chosen.root.Digest != p.Root.Digest {
		return problem.New("source/derived-differs", "the chosen platforms of %s make another root than the locked one", r.ref).
			With("locked: "+p.Root.Digest.String(), "made:   "+chosen.root.Digest.String()).Hint("run  packhof plan  to write the lock anew")
	}
	if chosen.document == nil {
		return nil // upstream's own: it is fetched like any other
	}
	return r.restore(ctx, chosen)
}

// restore stores a root of our making unless a sound copy is there.
func (r reader) restore(ctx context.Context, c choice) error {
	if _, err := r.store.ReadAll(c.root.Digest, bundle.MaxOCIManifestSize); !isLost(err) {
		return err
	}
	return r.store.Put(ctx, bytes.NewReader(c.document), c.root.Digest, c.root.Size, r.ref.String())
}

// upstreamIndex is the document of that digest: from the store, or from
// upstream into the store. The lock does not say how long it is.
func (r reader) upstreamIndex(ctx context.Context, from cas.Digest) ([]byte, error) {
	b, err := r.store.ReadAll(from, bundle.MaxOCIManifestSize)
	if !isLost(err) {
		return b, err
	}
	client, err := r.client()
	if err != nil {
		return nil, err
	}
	at := r.ref.At(from)
	err = r.source.persist(ctx, func() (err error) {
		_, b, err = client.Read(ctx, at, bundle.MaxOCIManifestSize)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b, r.store.Put(ctx, bytes.NewReader(b), from, int64(len(b)), at.String())
}

// indexType is the media type of upstream's index: what it says of itself, or
// else what the index that was made of it says.
func indexType(index []byte, root bundle.Descriptor) string {
	var says struct {
		MediaType string `json:"mediaType"`
	}
	// What is no JSON at all is refused with all other hostile documents.
	_ = json.Unmarshal(index, &says)
	if says.MediaType == "" && bundle.IsIndex(root.MediaType) {
		return root.MediaType
	}
	return cmp.Or(says.MediaType, bundle.TypeOCIIndex)
}
