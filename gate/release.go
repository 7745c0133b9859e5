package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/packhof/packhof/bundle"
)

// Release is the proof that a bundle may be loaded to one destination: it was
// checked against the trust of this hour, judged, and approved as the policy
// demands. Only a gate makes one; the zero value lets nothing through.
//
// For Sink.Plan the gate makes one that is no such proof yet: with it names and
// metadata can be read, content cannot.
type Release struct {
	bundle      *bundle.Bundle
	caseID      int64
	destination string
	planning    bool
	artifacts   []bundle.Artifact
	places      []int  // of artifacts, in the manifest
	names       []Name // one for each of artifacts
	proven      *provenBlobs
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

var errNoRelease = errors.New("nothing was released, so nothing can be read")

// Open reads a blob of the bundle. Reading to io.EOF proves it; wrong bytes
// end with a cas.CorruptError instead.
func (r *Release) Open(ctx context.Context, d bundle.Digest) (io.ReadCloser, error) {
	if err := r.allows(d); err != nil {
		return nil, err
	}
	content, err := r.bundle.Open(ctx, d)
	if err != nil || r.proven == nil {
		return content, err
	}
	return r.proven.watch(content, d)
}

// Prove makes sure that the store holds a blob, every byte of it. A file that
// this release has read to its end already, to whatever destination, and that
// nobody has touched since, it does not read again.
func (r *Release) Prove(ctx context.Context, d bundle.Digest) (err error) {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if r.proven != nil && r.proven.still(d) {
		return nil
	}
	content, err := r.Open(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	buffer := make([]byte, 256<<10)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := content.Read(buffer); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// ReadAll reads a blob of at most limit bytes and verifies it.
func (r *Release) ReadAll(d bundle.Digest, limit int64) ([]byte, error) {
	if err := r.allows(d); err != nil {
		return nil, err
	}
	return r.bundle.ReadAll(d, limit)
}

// Document reads a manifest or the index of a pack, for bundle.EachTreeFile.
func (r *Release) Document(d bundle.OCIDescriptor) ([]byte, error) {
	return r.ReadAll(d.Digest, bundle.ReadLimit(d))
}

// OpenFile reads a file of a tree, wherever it lies. Reading to io.EOF proves
// it, as with Open.
func (r *Release) OpenFile(ctx context.Context, f bundle.TreeFile) (io.ReadCloser, error) {
	if !f.Packed() {
		return r.Open(ctx, f.Digest)
	}
	if err := r.allows(f.Pack); err != nil {
		return nil, err
	}
	return r.bundle.OpenTreeFile(f)
}

func (r *Release) allows(d bundle.Digest) error {
	if r.bundle == nil {
		return errNoRelease
	}
	if blob, ok := r.bundle.Manifest().Blob(d); ok && r.planning && blob.Role != bundle.RoleMetadata {
		return fmt.Errorf("content %s in a plan: %w", d, errNoRelease)
	}
	return nil
}

// Manifest is the signed statement of what the bundle is; nil for the zero
// value.
func (r *Release) Manifest() *bundle.Manifest {
	if r.bundle == nil {
		return nil
	}
	return r.bundle.Manifest()
}
