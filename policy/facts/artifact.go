package facts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
)

// artifact is one artifact whose facts are being stated.
type artifact struct {
	Subject
	*bundle.Artifact
	parts    []part
	attached []referrer
}

func (a *artifact) state(ctx context.Context, changes map[identity]policy.Change) (policy.Artifact, error) {
	stated := policy.Artifact{
		Kind: string(a.Kind), Name: a.Name, Version: a.Version, Digest: a.Artifact.Root.Digest.String(),
		Origin: stateOrigin(a.Origin), Platforms: list(a.Platforms), Size: a.Size,
		Destinations: []string{}, Change: changes[identity{a.Kind, a.Name, a.Version}],
		Untrusted: policy.ArtifactUntrusted{Labels: labels(a.Labels)},
	}
	if a.Destinations != nil {
		stated.Destinations = list(a.Destinations(*a.Artifact))
		slices.Sort(stated.Destinations)
	}
	var err error
	if a.parts, err = manifestsOf(ctx, a.Bundle, a.Artifact.Root); err != nil {
		return stated, err
	}
	if a.attached, err = referrersOf(ctx, a.Bundle, a.Artifact); err != nil {
		return stated, err
	}
	stated.Signatures = signatures(a.attached)
	if stated.Image, err = a.image(ctx); err != nil {
		return stated, err
	}
	if stated.Inspection, err = a.inspection(ctx); err != nil {
		return stated, err
	}
	if stated.Referrers, err = a.referrers(ctx); err != nil {
		return stated, err
	}
	stated.SBOM, stated.Licences, err = a.sboms(ctx)
	return stated, err
}

// part is one manifest of an artifact, the root or one below an index.
type part struct {
	bundle.OCIDescriptor
	doc *bundle.OCI // nil if it could not be read
	why string      // it could not
}

// manifestsOf reads a manifest and those below it, parents first, each once.
// The bundle bounds their number by the number of its blobs.
func manifestsOf(ctx context.Context, b *bundle.Bundle, d bundle.Descriptor) ([]part, error) {
	const deepest = 8
	type step struct {
		bundle.OCIDescriptor
		depth int
	}
	root := bundle.OCIDescriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
	seen := map[bundle.Digest]bool{d.Digest: true}
	var parts []part
	for todo := []step{{root, 0}}; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := part{OCIDescriptor: next.OCIDescriptor}
		p.doc, p.why = readManifest(b, next.OCIDescriptor)
		if p.doc != nil && len(p.doc.Manifests) > 0 && next.depth == deepest {
			p.doc, p.why = nil, fmt.Sprintf("the index is nested deeper than %d", deepest)
		}
		parts = append(parts, p)
		if p.doc == nil {
			continue
		}
		for _, child := range p.doc.Manifests {
			if !seen[child.Digest] {
				seen[child.Digest] = true
				todo = append(todo, step{child, next.depth + 1})
			}
		}
	}
	return parts, nil
}

func readManifest(b *bundle.Bundle, d bundle.OCIDescriptor) (doc *bundle.OCI, why string) {
	raw, err := b.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
	if err != nil {
		return nil, missing("the manifest", d.Digest, err)
	}
	if doc, err = bundle.ParseOCI(raw, d.MediaType); err != nil {
		return nil, fmt.Sprintf("the manifest %s is malformed", d.Digest.Short())
	}
	return doc, ""
}

// missing says why a blob could not be read, in words that have nothing of
// the blob's own text in them.
func missing(what string, d bundle.Digest, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("%s %s is not there", what, d.Short())
	}
	return fmt.Sprintf("%s %s cannot be read: it is damaged or too large", what, d.Short())
}
