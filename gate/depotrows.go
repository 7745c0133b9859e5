package gate

import (
	"context"
	"encoding/json/v2"

	"github.com/packhof/packhof/bundle"
)

// showInDepot makes rows of everything that is reachable from a released
// artifact, so that the depot's clients see that and nothing else.
func (t *tx) showInDepot(ctx context.Context, r *row, release *Release, name Name, a bundle.Artifact) error {
	s := shower{ctx: ctx, tx: t, caseID: r.ID, repository: name.Repository, root: a.Root.Digest, release: release}
	if err := s.manifest(bundle.OCIDescriptor{MediaType: a.Root.MediaType, Digest: a.Root.Digest, Size: a.Root.Size}, true); err != nil {
		return err
	}
	for _, ref := range a.Referrers {
		d := bundle.OCIDescriptor{MediaType: ref.Descriptor.MediaType, Digest: ref.Descriptor.Digest, Size: ref.Descriptor.Size}
		if err := s.manifest(d, false); err != nil {
			return err
		}
	}
	if !a.Kind.IsTree() {
		return nil
	}
	for _, f := range s.files {
		if _, err := t.ExecContext(ctx, `INSERT INTO depot_file (digest, path, size, blob) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			a.Root.Digest.String(), f.Path, f.Size, f.Digest.String()); err != nil {
			return err
		}
	}
	return nil
}

// shower walks one artifact.
type shower struct {
	ctx        context.Context
	tx         *tx
	caseID     CaseID
	repository string
	root       bundle.Digest
	release    *Release
	files      []DepotFile
}

func (s *shower) manifest(root bundle.OCIDescriptor, tree bool) error {
	read := func(d bundle.OCIDescriptor) ([]byte, error) {
		return s.release.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
	}
	return bundle.Walk(root, read, func(d bundle.OCIDescriptor, role bundle.Role) error {
		if !bundle.IsManifest(d.MediaType) || role != bundle.RoleMetadata {
			return s.put(d, nil)
		}
		b, err := read(d)
		if err != nil {
			return err
		}
		doc, err := bundle.ParseOCI(b, d.MediaType)
		if err != nil {
			return s.put(d, nil) // a config that only calls itself a manifest: Walk has parsed every real one
		}
		if tree {
			s.noteFiles(doc)
		}
		return s.put(d, doc)
	})
}

func (s *shower) noteFiles(doc *bundle.OCI) {
	for _, layer := range doc.Layers {
		if title := layer.Annotations[bundle.TitleAnnotation]; bundle.CheckPath(title) == nil {
			s.files = append(s.files, DepotFile{Path: title, Size: layer.Size, Digest: layer.Digest})
		}
	}
}

// put makes the row of one blob; doc is nil unless it is a manifest.
func (s *shower) put(d bundle.OCIDescriptor, doc *bundle.OCI) error {
	subject, artifactType, annotations := "", "", "{}"
	if doc != nil {
		artifactType = doc.ArtifactType
		if artifactType == "" && doc.Config != nil {
			artifactType = doc.Config.MediaType // as the distribution specification says
		}
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
	_, err := s.tx.ExecContext(s.ctx, `INSERT INTO depot_blob (repository, digest, root, media_type, size, manifest, subject, artifact_type, annotations, case_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET media_type = excluded.media_type, manifest = excluded.manifest,
		subject = excluded.subject, artifact_type = excluded.artifact_type, annotations = excluded.annotations WHERE excluded.manifest >= depot_blob.manifest`,
		s.repository, d.Digest.String(), s.root.String(), d.MediaType, d.Size, doc != nil, subject, artifactType, annotations, s.caseID)
	return err
}
