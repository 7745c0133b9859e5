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
	"github.com/packhof/packhof/signing"
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
	Withdrawn  string        `json:"withdrawn,omitempty"` // why its channel withdrew it; it can be pulled all the same
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
	// Files lists the files of a tree (model, dataset, files, packages), as
	// Tag gave it, in order of their paths, at most limit that sort after
	// after; a *NotReleasedError where it is no tree.
	Files(ctx context.Context, tree DepotTag, after string, limit int) ([]DepotFile, error)
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

const tagColumns = `n.repository, n.tag, n.kind, n.digest, n.media_type, n.size, n.case_id, n.since, c.manifest, c.channel, c.epoch, c.serial,
	coalesce((SELECT w.reason FROM withdrawn w WHERE w.channel = c.channel AND w.digest = n.digest), '')`

const fromNames = ` FROM name n JOIN cases c ON c.id = n.case_id WHERE n.destination = ? AND n.repository = ?`

// shownTag is a tag with what it stands and falls with.
type shownTag struct {
	DepotTag
	source
	broken bool // its row cannot be right; only its name is known
}

func scanTag(s scanner) (shownTag, error) {
	var t shownTag
	var digest, manifest digestColumn
	var since int64
	err := s.Scan(&t.Repository, &t.Tag, &t.Kind, &digest, &t.MediaType, &t.Size, &t.Case, &since, &manifest, &t.channel, &t.epoch, &t.serial, &t.Withdrawn)
	t.Digest, t.Since, t.root, t.manifest = digest.value(), fromSeconds(since), digest.value(), manifest.value()
	return t, err
}

func scanTagOrBroken(s scanner) (shownTag, error) {
	t, err := scanTag(s)
	if isRowDamaged(err) {
		t.broken, err = true, nil
	}
	return t, err
}

// source is where something in the depot comes from.
type source struct {
	root          bundle.Digest // of the artifact
	manifest      bundle.Digest // of the bundle
	channel       string
	epoch, serial int64
}

// Tags implements DepotStore. A tag whose row cannot be right is not listed: it
// takes no other one away, and Tag says what is wrong with it.
func (d *Depot) Tags(ctx context.Context, repository, after string, limit int) ([]DepotTag, error) {
	known, err := exists(ctx, d.gate.db.read, `SELECT 1 FROM name WHERE destination = ? AND repository = ? LIMIT 1`, DepotName, repository)
	if err == nil && !known {
		err = &NotReleasedError{What: "the repository " + repository}
	}
	if err != nil {
		return nil, err
	}
	list, err := d.gate.revocations(ctx)
	if err != nil {
		return nil, err
	}
	tags := []DepotTag{}
	for len(tags) < limit {
		page, err := rowsOf(ctx, d.gate.db.read, scanTagOrBroken, `SELECT `+tagColumns+fromNames+` AND n.tag > ? ORDER BY n.tag LIMIT ?`, DepotName, repository, after, limit)
		if err != nil {
			return nil, err
		}
		for _, t := range page {
			after = t.Tag
			if len(tags) < limit && !t.broken && t.withdrawn(list, t.Digest) == nil {
				tags = append(tags, t.DepotTag)
			}
		}
		if len(page) < limit {
			break
		}
	}
	return tags, nil
}

// Tag implements DepotStore.
func (d *Depot) Tag(ctx context.Context, repository, tag string) (DepotTag, error) {
	t, err := scanTag(d.gate.db.read.QueryRowContext(ctx, `SELECT `+tagColumns+fromNames+` AND n.tag = ?`, DepotName, repository, tag))
	if errors.Is(err, sql.ErrNoRows) {
		return DepotTag{}, &NotReleasedError{What: repository + ":" + tag}
	}
	if err != nil {
		return DepotTag{}, err
	}
	list, err := d.gate.revocations(ctx)
	if err != nil {
		return DepotTag{}, err
	}
	return t.DepotTag, t.withdrawn(list, t.Digest)
}

// shownBlob is a blob as one artifact shows it.
type shownBlob struct {
	DepotReferrer
	source
	manifest bool
}

const (
	blobColumns = `b.digest, b.media_type, b.size, b.manifest, b.artifact_type, b.annotations, b.root, c.manifest, c.channel, c.epoch, c.serial`
	fromBlobs   = ` FROM depot_blob b JOIN cases c ON c.id = b.case_id `
)

func scanBlob(s scanner) (shownBlob, error) {
	var b shownBlob
	var digest, root, manifest digestColumn
	var annotations []byte
	err := s.Scan(&digest, &b.MediaType, &b.Size, &b.manifest, &b.ArtifactType, &annotations, &root, &manifest, &b.channel, &b.epoch, &b.serial)
	if err != nil {
		return b, err
	}
	b.Digest, b.root, b.source.manifest = digest.value(), root.value(), manifest.value()
	return b, json.Unmarshal(annotations, &b.Annotations)
}

// Blob implements DepotStore. What several artifacts show is withdrawn when all
// of them are.
func (d *Depot) Blob(ctx context.Context, repository string, digest bundle.Digest) (DepotBlob, error) {
	b, err := d.shown(ctx, fmt.Sprintf("%s@%s", repository, digest), `WHERE b.repository = ? AND b.digest = ? ORDER BY b.manifest DESC, b.case_id`, repository, digest.String())
	return DepotBlob{Digest: digest, MediaType: b.MediaType, Size: b.Size, Manifest: b.manifest}, err
}

// shown gives the first blob of a query that is not withdrawn.
func (d *Depot) shown(ctx context.Context, what, where string, args ...any) (shownBlob, error) {
	blobs, err := rowsOf(ctx, d.gate.db.read, scanBlob, `SELECT `+blobColumns+fromBlobs+where, args...)
	if err != nil {
		return shownBlob{}, err
	}
	list, err := d.gate.revocations(ctx)
	if err != nil {
		return shownBlob{}, err
	}
	err = &NotReleasedError{What: what}
	for _, b := range blobs {
		withdrawn := b.withdrawn(list, b.Digest)
		if withdrawn == nil {
			return b, nil
		}
		err = withdrawn
	}
	return shownBlob{}, err
}

// Referrers implements DepotStore. A channel's manifests refer to its own: none
// can attach something to what another has brought.
func (d *Depot) Referrers(ctx context.Context, repository string, subject bundle.Digest) ([]DepotReferrer, error) {
	blobs, err := rowsOf(ctx, d.gate.db.read, scanBlob, `SELECT `+blobColumns+fromBlobs+`WHERE b.repository = ? AND b.subject = ? AND b.subject <> ''
		AND EXISTS (SELECT 1 FROM depot_blob s JOIN cases sc ON sc.id = s.case_id WHERE s.repository = b.repository AND s.digest = b.subject AND sc.channel = c.channel)
		ORDER BY b.digest`, repository, subject.String())
	if err != nil {
		return nil, err
	}
	list, err := d.gate.revocations(ctx)
	if err != nil {
		return nil, err
	}
	referrers := []DepotReferrer{}
	for _, b := range blobs {
		again := len(referrers) > 0 && referrers[len(referrers)-1].Digest == b.Digest
		if !again && b.withdrawn(list, b.Digest) == nil {
			referrers = append(referrers, b.DepotReferrer)
		}
	}
	return referrers, nil
}

// Files implements DepotStore.
func (d *Depot) Files(ctx context.Context, tree DepotTag, after string, limit int) ([]DepotFile, error) {
	files, err := rowsOf(ctx, d.gate.db.read, scanFile, `SELECT path, size, blob FROM depot_file WHERE digest = ? AND path > ? ORDER BY path LIMIT ?`, tree.Digest.String(), after, limit)
	if err == nil && len(files) == 0 && after == "" {
		err = &NotReleasedError{What: fmt.Sprintf("a tree of files %s:%s", tree.Repository, tree.Tag)}
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
	return f, err
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
	if _, err := d.shown(ctx, digest.String(), `WHERE b.digest = ?`, digest.String()); err != nil {
		return nil, err
	}
	return d.gate.store.OpenUnsafe(digest)
}

// withdrawn tells whether something of this source was revoked after its
// release: the very digest, its artifact, or the bundle that brought it.
func (s source) withdrawn(list *signing.Revocations, digest bundle.Digest) error {
	for _, d := range []bundle.Digest{digest, s.root, s.manifest} {
		if reason, revoked := list.Artifact(d.String()); revoked {
			return &DeniedError{Digest: d, Reason: reason}
		}
	}
	if reason, revoked := list.Bundle(s.channel, int(s.epoch), int(s.serial)); revoked {
		return &DeniedError{Digest: s.manifest, Reason: reason}
	}
	return nil
}
