package gate

import (
	"context"
	"encoding/json/v2"

	"github.com/packhof/packhof/bundle"
)

// reader brings manifests and the indices of packs, verified and within
// bundle.ReadLimit.
type reader func(bundle.OCIDescriptor) ([]byte, error)

// showInDepot makes rows of everything that is reachable from a released
// artifact, by which the depot finds it.
func (t *tx) showInDepot(ctx context.Context, id CaseID, repository string, a bundle.Artifact, read reader) error {
	w := artifactWalk{
		read: read,
		put: func(d bundle.OCIDescriptor, doc *bundle.OCI) error {
			return t.putShown(ctx, id, publishedRoot{repository, a.Root.Digest}, d, doc)
		},
	}
	if err := w.artifact(a); err != nil {
		return err
	}
	if !a.Kind.IsTree() {
		return nil
	}
	_, err := bundle.EachTreeFile(a.Root, read, func(f bundle.TreeFile) error { return t.showFile(ctx, a.Root.Digest, f) })
	return err
}

// showFile makes the row of a file of a tree. What has no path that could be one
// is a blob only.
func (t *tx) showFile(ctx context.Context, root bundle.Digest, f bundle.TreeFile) error {
	if bundle.CheckPath(f.Path) != nil {
		return nil
	}
	pack := ""
	if f.Packed() {
		pack = f.Pack.String()
	}
	_, err := t.ExecContext(ctx, `INSERT INTO depot_file (digest, path, size, blob, pack, at) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		root.String(), f.Path, f.Size, f.Digest.String(), pack, f.Offset)
	return err
}

// artifactWalk goes through everything that is reachable from an artifact, its
// referrers included.
type artifactWalk struct {
	read reader
	put  func(bundle.OCIDescriptor, *bundle.OCI) error // nil unless it is a manifest
}

func (w *artifactWalk) artifact(a bundle.Artifact) error {
	if err := w.manifest(bundle.OCIDescriptor{MediaType: a.Root.MediaType, Digest: a.Root.Digest, Size: a.Root.Size}); err != nil {
		return err
	}
	for _, ref := range a.Referrers {
		d := bundle.OCIDescriptor{MediaType: ref.Descriptor.MediaType, Digest: ref.Descriptor.Digest, Size: ref.Descriptor.Size}
		if err := w.manifest(d); err != nil {
			return err
		}
	}
	return nil
}

func (w *artifactWalk) manifest(root bundle.OCIDescriptor) error {
	return bundle.Walk(root, w.read, func(d bundle.OCIDescriptor, role bundle.Role) error {
		if !bundle.IsManifest(d.MediaType) || role != bundle.RoleMetadata {
			return w.put(d, nil)
		}
		b, err := w.read(d)
		if err != nil {
			return err
		}
		doc, err := bundle.ParseOCI(b, d.MediaType)
		if err != nil {
			return w.put(d, nil) // a config that only calls itself a manifest: Walk has parsed every real one
		}
		return w.put(d, doc)
	})
}

// artifactTypeOf is what the distribution specification says.
func artifactTypeOf(doc *bundle.OCI) string {
	if doc.ArtifactType == "" && doc.Config != nil {
		return doc.Config.MediaType
	}
	return doc.ArtifactType
}

// putShown makes the row of one blob; doc is nil unless it is a manifest.
func (t *tx) putShown(ctx context.Context, id CaseID, at publishedRoot, d bundle.OCIDescriptor, doc *bundle.OCI) error {
	subject, artifactType, annotations := "", "", "{}"
	if doc != nil {
		artifactType = artifactTypeOf(doc)
		if doc.Subject != nil {
			subject = doc.Subject.Digest.String()
		}
		if doc.Annotations != nil {
			b, err := json.Marshal(doc.Annotations, json.Deterministic(true))
			if err != nil {
				return err
			}
			annotations = string(b)
		}
	}
	_, err := t.ExecContext(ctx, `INSERT INTO depot_blob (repository, digest, root, media_type, size, manifest, subject, artifact_type, annotations, case_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET media_type = excluded.media_type, manifest = excluded.manifest,
		subject = excluded.subject, artifact_type = excluded.artifact_type, annotations = excluded.annotations WHERE excluded.manifest >= depot_blob.manifest`,
		at.repository, d.Digest.String(), at.root.String(), d.MediaType, d.Size, doc != nil, subject, artifactType, annotations, id)
	return err
}
