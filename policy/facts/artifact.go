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
	meter    *meter
	parts    []part // of an image
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
	if err := a.meter.add(stated); err != nil {
		return stated, err
	}
	var err error
	if a.Kind == bundle.Image {
		if a.parts, err = manifestsOf(ctx, a.Bundle, a.Artifact.Root); err != nil {
			return stated, err
		}
	}
	if a.attached, err = referrersOf(ctx, a.Bundle, a.Artifact); err != nil {
		return stated, err
	}
	if stated.Signatures, err = a.signatures(); err != nil {
		return stated, err
	}
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

// part is what is kept of one manifest of an artifact, the root or one below
// an index. Its layers are not: a tree has a layer for each file.
type part struct {
	bundle.OCIDescriptor
	why      string                // it could not be read; "" if it was
	typ      string                // of the artifact, as OCI 1.1 has it
	config   *bundle.OCIDescriptor // nil for an index
	runnable bool                  // it is, or could be, an image for some platform
}

// manifestsOf reads a manifest and those below it, parents first, each once.
func manifestsOf(ctx context.Context, b *bundle.Bundle, d bundle.Descriptor) ([]part, error) {
	var parts []part
	err := eachManifest(ctx, b, d, func(d bundle.OCIDescriptor, doc *bundle.OCI, why string) error {
		p := part{OCIDescriptor: d, why: why, runnable: runnable(d, doc)}
		if doc != nil {
			p.typ, p.config = typeOf(doc), doc.Config
		}
		parts = append(parts, p)
		return nil
	})
	return parts, err
}

// eachManifest visits a manifest and those below it, parents first, each once;
// doc is nil for one that could not be read, and why says so. It holds one
// manifest at a time, and of an index what is to come. The bundle bounds their
// number by the number of its blobs.
func eachManifest(ctx context.Context, b *bundle.Bundle, d bundle.Descriptor, visit func(d bundle.OCIDescriptor, doc *bundle.OCI, why string) error) error {
	const deepest = 8
	type step struct {
		bundle.OCIDescriptor
		depth int
	}
	root := bundle.OCIDescriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
	seen := map[bundle.Digest]bool{d.Digest: true}
	for todo := []step{{root, 0}}; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		if err := ctx.Err(); err != nil {
			return err
		}
		doc, why := readManifest(b, next.OCIDescriptor)
		if doc != nil && len(doc.Manifests) > 0 && next.depth == deepest {
			doc, why = nil, fmt.Sprintf("the index is nested deeper than %d", deepest)
		}
		if err := visit(next.OCIDescriptor, doc, why); err != nil {
			return err
		}
		if doc == nil {
			continue
		}
		for _, child := range doc.Manifests {
			if !seen[child.Digest] {
				seen[child.Digest] = true
				todo = append(todo, step{child, next.depth + 1})
			}
		}
	}
	return nil
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
