package mirror

import (
	"context"
	"fmt"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// assembly gathers the blobs of a bundle. A digest that is used as metadata
// anywhere is metadata.
type assembly struct {
	store *cas.Store
	blobs map[cas.Digest]bundle.Blob
}

func newAssembly(store *cas.Store) *assembly {
	return &assembly{store: store, blobs: map[cas.Digest]bundle.Blob{}}
}

func (a *assembly) add(d cas.Digest, size int64, role bundle.Role) error {
	if known, ok := a.blobs[d]; ok {
		if known.Size != size {
			return fmt.Errorf("%s is named with %d bytes and with %d bytes", d, known.Size, size)
		}
		if known.Role == bundle.RoleMetadata {
			return nil
		}
	}
	a.blobs[d] = bundle.Blob{Digest: d, Size: size, Role: role}
	return nil
}

// artifact walks one artifact in the store and returns its entry, without
// SBOMs, and its manifests by digest.
func (a *assembly) artifact(p Pinned, at bundle.Instant) (*bundle.Artifact, map[cas.Digest]bundle.OCIDescriptor, error) {
	entry := &bundle.Artifact{
		Kind: p.Kind, Name: p.Name, Version: p.Version, Labels: p.Labels, Root: p.Root, Referrers: []bundle.Referrer{},
		Origin: bundle.Origin{From: p.From, At: at, Transport: p.Transport, Verified: p.Verified, Derived: p.Derived},
	}
	for _, s := range p.Subjects {
		if s.Platform != "" {
			entry.Platforms = append(entry.Platforms, s.Platform)
		}
	}
	manifests := map[cas.Digest]bundle.OCIDescriptor{}
	err := bundle.Walk(descriptor(p.Root), a.readManifest, func(d bundle.OCIDescriptor, role bundle.Role) error {
		if bundle.IsManifest(d.MediaType) {
			manifests[d.Digest] = d
		}
		entry.Size += d.Size
		return a.add(d.Digest, d.Size, role)
	})
	return entry, manifests, err
}

func descriptor(d bundle.Descriptor) bundle.OCIDescriptor {
	return bundle.OCIDescriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size, ArtifactType: d.ArtifactType}
}

func (a *assembly) readManifest(d bundle.OCIDescriptor) ([]byte, error) {
	return a.store.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
}

// attach adds referrers to the artifact. All of a referrer is metadata. Blobs
// that the artifact has already (the empty config, say) count once.
func (a *assembly) attach(entry *bundle.Artifact, referrers []bundle.Referrer) error {
	own := map[cas.Digest]bool{}
	remember := func(d bundle.OCIDescriptor, _ bundle.Role) error {
		own[d.Digest] = true
		return nil
	}
	if err := bundle.Walk(descriptor(entry.Root), a.readManifest, remember); err != nil {
		return err
	}
	for _, r := range referrers {
		err := bundle.Walk(descriptor(r.Descriptor), a.readManifest, func(d bundle.OCIDescriptor, _ bundle.Role) error {
			if !own[d.Digest] {
				entry.Size += d.Size
				own[d.Digest] = true
			}
			return a.add(d.Digest, d.Size, bundle.RoleMetadata)
		})
		if err != nil {
			return err
		}
	}
	entry.Referrers = append(entry.Referrers, referrers...)
	return nil
}

// finish adds the chunk lists and gives the list of blobs as the manifest
// wants it.
func (a *assembly) finish(ctx context.Context) ([]bundle.Blob, bundle.Totals, error) {
	for _, b := range a.sorted() {
		if b.Role != bundle.RoleContent || b.Size <= bundle.ChunkSize {
			continue
		}
		list, err := chunkList(ctx, a.store, b.Digest, b.Size)
		if err != nil {
			return nil, bundle.Totals{}, err
		}
		name, err := a.store.PutBytes(ctx, list)
		if err != nil {
			return nil, bundle.Totals{}, err
		}
		b.Chunks = &name
		a.blobs[b.Digest] = b
		if err := a.add(name, int64(len(list)), bundle.RoleMetadata); err != nil {
			return nil, bundle.Totals{}, err
		}
	}
	blobs := a.sorted()
	totals := bundle.Totals{Files: int64(len(blobs))}
	for _, b := range blobs {
		totals.Bytes += b.Size
	}
	return blobs, totals, nil
}

func (a *assembly) sorted() []bundle.Blob {
	blobs := make([]bundle.Blob, 0, len(a.blobs))
	for _, b := range a.blobs {
		blobs = append(blobs, b)
	}
	slices.SortFunc(blobs, func(a, b bundle.Blob) int { return a.Digest.Compare(b.Digest) })
	return blobs
}
