package gate

import (
	"context"
	"io"
	"slices"

	"github.com/packhof/packhof/bundle"
)

// Release is the proof that a bundle may be loaded to one destination: it was
// checked against the trust of this hour, judged, and approved as the policy
// demands. Only a gate makes one; the zero value lets nothing through.
type Release struct {
	bundle      *bundle.Bundle
	caseID      int64
	destination string
	artifacts   []bundle.Artifact
	names       []Name // one for each of artifacts
}

// Case is the number of the case.
func (r *Release) Case() int64 { return r.caseID }

// Artifacts are those that the destination accepts, in the manifest's order.
func (r *Release) Artifacts() []bundle.Artifact { return slices.Clone(r.artifacts) }

// Names are their names there, in the same order.
func (r *Release) Names() []Name { return slices.Clone(r.names) }

// Name is the name of one of Artifacts at the destination.
func (r *Release) Name(a bundle.Artifact) Name {
	for i, have := range r.artifacts {
		if have.Kind == a.Kind && have.Name == a.Name && have.Version == a.Version {
			return r.names[i]
		}
	}
	return Name{}
}

// Open reads a blob of the bundle. Reading to io.EOF proves it; wrong bytes
// end with a cas.CorruptError instead.
func (r *Release) Open(ctx context.Context, d bundle.Digest) (io.ReadCloser, error) {
	return r.bundle.Open(ctx, d)
}

// ReadAll reads a blob of at most limit bytes and verifies it.
func (r *Release) ReadAll(d bundle.Digest, limit int64) ([]byte, error) {
	return r.bundle.ReadAll(d, limit)
}

// Manifest is the signed statement of what the bundle is.
func (r *Release) Manifest() *bundle.Manifest { return r.bundle.Manifest() }
