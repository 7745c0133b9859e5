package gate

import (
	"context"
	"database/sql"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/packhof/packhof/bundle"
)

// Depot is what the plant's clients may see: what is reachable from released
// artifacts, under the names that the gate published for the destination
// "depot". It is read-only and safe for use by several goroutines.
type Depot struct{ gate *Gate }

// Depot gives the view.
func (g *Gate) Depot() *Depot { return &Depot{gate: g} }

// DepotName is the name of the built-in destination.
const DepotName = "depot"

// DepotTag is a name that clients can pull.
type DepotTag struct {
	Repository string        `json:"repository"`
	Tag        string        `json:"tag"`
	Kind       bundle.Kind   `json:"kind"`
	Digest     bundle.Digest `json:"digest"`
	MediaType  string        `json:"mediaType"`
	Size       int64         `json:"size"` // bytes of the artifact
	Case       CaseID        `json:"case"`
	Since      time.Time     `json:"since"`
}

// DepotBlob is a blob that a repository has: a manifest, a config or a layer.
type DepotBlob struct {
	Digest    bundle.Digest
	MediaType string
	Size      int64
	Manifest  bool
}

// DepotReferrer is a manifest of a repository that refers to another.
type DepotReferrer struct {
	Digest       bundle.Digest
	MediaType    string
	Size         int64
	ArtifactType string
	Annotations  map[string]string
}

// DepotFile is one file of a tree.
type DepotFile struct {
	Path   string
	Size   int64
	Digest bundle.Digest
}

// NotReleasedError says that there is no such thing among what was released.
// It does not tell what else the gate holds.
type NotReleasedError struct{ What string }

func (e *NotReleasedError) Error() string { return e.What + " is not in the depot" }

// Code is the stable code of this error.
func (e *NotReleasedError) Code() string { return "depot/not-found" }

// DeniedError says that a digest was withdrawn after it had been released.
type DeniedError struct {
	Digest bundle.Digest
	Reason string
}

func (e *DeniedError) Error() string { return e.Digest.String() + " was withdrawn: " + e.Reason }

// Code is the stable code of this error.
func (e *DeniedError) Code() string { return "depot/withdrawn" }

// DepotStore is the part of a Depot that a server of plant clients needs.
type DepotStore interface {
	// Repositories lists repositories in order, at most limit that sort after
	// after.
	Repositories(ctx context.Context, after string, limit int) ([]string, error)
	// Tags lists the tags of a repository in order, likewise; a
	// *NotReleasedError for an unknown repository.
	Tags(ctx context.Context, repository, after string, limit int) ([]DepotTag, error)
	// Tag looks one up.
	Tag(ctx context.Context, repository, tag string) (DepotTag, error)
	// Blob looks up a blob or manifest that is reachable in the repository.
	Blob(ctx context.Context, repository string, d bundle.Digest) (DepotBlob, error)
	// Referrers lists the manifests that refer to d, sorted by digest. An
	// unknown subject has none.
	Referrers(ctx context.Context, repository string, d bundle.Digest) ([]DepotReferrer, error)
	// Files lists the files of a tree (model, dataset, files, packages) under
	// a tag, sorted by path; a *NotReleasedError where it is no tree.
	Files(ctx context.Context, repository, tag string) ([]DepotFile, error)
	// File looks one of them up by its exact path.
	File(ctx context.Context, repository, tag, path string) (DepotFile, error)
	// Open reads a blob that Blob or Files gave, unverified, for serving parts
	// of it; whoever serves all of it verifies with cas.Verify.
	Open(ctx context.Context, d bundle.Digest) (io.ReadSeekCloser, error)
}

var _ DepotStore = (*Depot)(nil)

// Repositories implements DepotStore.
func (d *Depot) Repositories(ctx context.Context, after string, limit int) ([]string, error) {
	return rowsOf(ctx, d.gate.db.read, func(s scanner) (string, error) {
		var name string
		return name, s.Scan(&name)
	}, `SELECT DISTINCT repository FROM name WHERE destination = ? AND repository > ? ORDER BY repository LIMIT ?`, DepotName, after, limit)
}

const tagColumns = `repository, tag, kind, digest, media_type, size, case_id, since`

func scanTag(s scanner) (DepotTag, error) {
	var t DepotTag
	var digest digestColumn
	var since int64
	err := s.Scan(&t.Repository, &t.Tag, &t.Kind, &digest, &t.MediaType, &t.Size, &t.Case, &since)
	t.Digest, t.Since = digest.value(), fromSeconds(since)
	return t, err
}

// Tags implements DepotStore.
func (d *Depot) Tags(ctx context.Context, repository, after string, limit int) ([]DepotTag, error) {
	known, err := exists(ctx, d.gate.db.read, `SELECT 1 FROM name WHERE destination = ? AND repository = ? LIMIT 1`, DepotName, repository)
	if err == nil && !known {
		err = &NotReleasedError{What: "the repository " + repository}
	}
	if err != nil {
		return nil, err
	}
	return rowsOf(ctx, d.gate.db.read, scanTag, `SELECT `+tagColumns+` FROM name WHERE destination = ? AND repository = ? AND tag > ? ORDER BY tag LIMIT ?`,
		DepotName, repository, after, limit)
}

// Tag implements DepotStore.
func (d *Depot) Tag(ctx context.Context, repository, tag string) (DepotTag, error) {
	t, err := scanTag(d.gate.db.read.QueryRowContext(ctx, `SELECT `+tagColumns+` FROM name WHERE destination = ? AND repository = ? AND tag = ?`, DepotName, repository, tag))
	if errors.Is(err, sql.ErrNoRows) {
		return t, &NotReleasedError{What: repository + ":" + tag}
	}
	if err != nil {
		return t, err
	}
	return t, d.withdrawn(ctx, t.Digest)
}

// Blob implements DepotStore.
func (d *Depot) Blob(ctx context.Context, repository string, digest bundle.Digest) (DepotBlob, error) {
	b := DepotBlob{Digest: digest}
	err := d.gate.db.read.QueryRowContext(ctx, `SELECT media_type, size, manifest FROM depot_blob WHERE repository = ? AND digest = ?`, repository, digest.String()).
		Scan(&b.MediaType, &b.Size, &b.Manifest)
	if errors.Is(err, sql.ErrNoRows) {
		return b, &NotReleasedError{What: fmt.Sprintf("%s@%s", repository, digest)}
	}
	if err != nil {
		return b, err
	}
	return b, d.withdrawn(ctx, digest)
}

// Referrers implements DepotStore.
func (d *Depot) Referrers(ctx context.Context, repository string, subject bundle.Digest) ([]DepotReferrer, error) {
	return rowsOf(ctx, d.gate.db.read, func(s scanner) (DepotReferrer, error) {
		var r DepotReferrer
		var digest digestColumn
		var annotations []byte
		if err := s.Scan(&digest, &r.MediaType, &r.Size, &r.ArtifactType, &annotations); err != nil {
			return r, err
		}
		r.Digest = digest.value()
		return r, json.Unmarshal(annotations, &r.Annotations)
	}, `SELECT digest, media_type, size, artifact_type, annotations FROM depot_blob WHERE repository = ? AND subject = ? AND subject <> '' ORDER BY digest`, repository, subject.String())
}

// Files implements DepotStore.
func (d *Depot) Files(ctx context.Context, repository, tag string) ([]DepotFile, error) {
	t, err := d.Tag(ctx, repository, tag)
	if err != nil {
		return nil, err
	}
	files, err := rowsOf(ctx, d.gate.db.read, scanFile, `SELECT path, size, blob FROM depot_file WHERE digest = ? ORDER BY path`, t.Digest.String())
	if err == nil && len(files) == 0 {
		err = &NotReleasedError{What: fmt.Sprintf("a tree of files %s:%s", repository, tag)}
	}
	return files, err
}

// File implements DepotStore.
func (d *Depot) File(ctx context.Context, repository, tag, path string) (DepotFile, error) {
	t, err := d.Tag(ctx, repository, tag)
	if err != nil {
		return DepotFile{}, err
	}
	f, err := scanFile(d.gate.db.read.QueryRowContext(ctx, `SELECT path, size, blob FROM depot_file WHERE digest = ? AND path = ?`, t.Digest.String(), path))
	if errors.Is(err, sql.ErrNoRows) {
		return f, &NotReleasedError{What: fmt.Sprintf("the file %.200q of %s:%s", path, repository, tag)}
	}
	if err != nil {
		return f, err
	}
	return f, d.withdrawn(ctx, f.Digest)
}

func scanFile(s scanner) (DepotFile, error) {
	var f DepotFile
	var digest digestColumn
	err := s.Scan(&f.Path, &f.Size, &digest)
	f.Digest = digest.value()
	return f, err
}

// Open implements DepotStore. It gives only what some repository shows.
func (d *Depot) Open(ctx context.Context, digest bundle.Digest) (io.ReadSeekCloser, error) {
	shown, err := exists(ctx, d.gate.db.read, `SELECT 1 FROM depot_blob WHERE digest = ? LIMIT 1`, digest.String())
	if err == nil && !shown {
		err = &NotReleasedError{What: digest.String()}
	}
	if err != nil {
		return nil, err
	}
	if err := d.withdrawn(ctx, digest); err != nil {
		return nil, err
	}
	return d.gate.store.OpenUnsafe(digest)
}

// withdrawn refuses what was revoked after its release.
func (d *Depot) withdrawn(ctx context.Context, digest bundle.Digest) error {
	list, err := d.gate.revocations(ctx)
	if err != nil {
		return err
	}
	if reason, revoked := list.Artifact(digest.String()); revoked {
		return &DeniedError{Digest: digest, Reason: reason}
	}
	return nil
}
