package gate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
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
	Pack   bundle.Digest // that it lies in; zero for a blob of its own
	Offset int64         // within the pack
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
	// ReadPacked reads a file that File gave and that lies in a pack: it is
	// small, and proven.
	ReadPacked(ctx context.Context, f DepotFile) ([]byte, error)
}

var _ DepotStore = (*Depot)(nil)

// Repositories implements DepotStore.
func (d *Depot) Repositories(ctx context.Context, after string, limit int) ([]string, error) {
	names, err := d.gate.depotNames(ctx)
	if err != nil {
		return nil, err
	}
	var list []string
	for len(list) < limit {
		i, _ := slices.BinarySearchFunc(names, after, func(t DepotTag, after string) int {
			if t.Repository > after {
				return 1
			}
			return -1
		})
		if i == len(names) {
			break
		}
		after = names[i].Repository
		list = append(list, after)
	}
	return list, nil
}

// source is where something in the depot comes from.
type source struct {
	root          bundle.Digest // of the artifact
	manifest      bundle.Digest // of the bundle
	channel       string
	epoch, serial int64
}

// sourceOf is where a name comes from.
func (g *Gate) sourceOf(ctx context.Context, t DepotTag) (source, error) {
	c, unlock, err := g.caseShown(ctx, t.Case)
	if err != nil {
		return source{}, err
	}
	defer unlock()
	from := c.source
	from.root = t.Digest
	return from, nil
}

// Tags implements DepotStore. A tag whose case somebody edited is not listed: it
// takes no other one away, and Tag says what is wrong with it.
func (d *Depot) Tags(ctx context.Context, repository, after string, limit int) ([]DepotTag, error) {
	names, err := d.gate.depotNames(ctx)
	if err != nil {
		return nil, err
	}
	first, _ := placeOfName(names, repository, "")
	if first == len(names) || names[first].Repository != repository {
		return nil, &NotReleasedError{What: "the repository " + repository}
	}
	list, err := d.gate.revocations(ctx)
	if err != nil {
		return nil, err
	}
	tags := []DepotTag{}
	next, exact := placeOfName(names, repository, after)
	if exact {
		next++
	}
	for ; next < len(names) && names[next].Repository == repository && len(tags) < limit; next++ {
		from, err := d.gate.sourceOf(ctx, names[next])
		switch {
		case isContradiction(err), isRowDamaged(err):
		case err != nil:
			return nil, err
		case from.withdrawn(list, names[next].Digest) == nil:
			t, err := d.marked(ctx, names[next], from)
			if err != nil {
				return nil, err
			}
			tags = append(tags, t)
		}
	}
	return tags, nil
}

// Tag implements DepotStore.
func (d *Depot) Tag(ctx context.Context, repository, tag string) (DepotTag, error) {
	names, err := d.gate.depotNames(ctx)
	if err != nil {
		return DepotTag{}, err
	}
	i, ok := placeOfName(names, repository, tag)
	if !ok {
		return DepotTag{}, &NotReleasedError{What: repository + ":" + tag}
	}
	from, err := d.gate.sourceOf(ctx, names[i])
	if err != nil {
		return DepotTag{}, err
	}
	list, err := d.gate.revocations(ctx)
	if err != nil {
		return DepotTag{}, err
	}
	t, err := d.marked(ctx, names[i], from)
	return t, cmp.Or(err, from.withdrawn(list, names[i].Digest))
}

// marked is a name with what its channel says of it today.
func (d *Depot) marked(ctx context.Context, t DepotTag, from source) (_ DepotTag, err error) {
	t.Withdrawn, err = withdrawnReason(ctx, d.gate.db.read, from.channel, t.Digest)
	return t, err
}

const indexedBlobs = `SELECT repository, digest, root, case_id FROM depot_blob WHERE `

// Blob implements DepotStore. What several artifacts show is withdrawn when all
// of them are.
func (d *Depot) Blob(ctx context.Context, repository string, digest bundle.Digest) (DepotBlob, error) {
	b, err := d.shown(ctx, fmt.Sprintf("%s@%s", repository, digest), `repository = ? AND digest = ? ORDER BY manifest DESC, case_id`, repository, digest.String())
	return DepotBlob{Digest: digest, MediaType: b.mediaType, Size: b.size, Manifest: b.reachable.manifest}, err
}

// shown gives the first blob of a query that is not withdrawn.
func (d *Depot) shown(ctx context.Context, what, where string, args ...any) (shownBlob, error) {
	index, err := rowsOf(ctx, d.gate.db.read, scanIndexed, indexedBlobs+where, args...)
	if err != nil {
		return shownBlob{}, err
	}
	list, err := d.gate.revocations(ctx)
	if err != nil {
		return shownBlob{}, err
	}
	err = &NotReleasedError{What: what}
	for _, i := range index {
		b, unproven := d.gate.prove(ctx, i)
		if unproven != nil {
			return shownBlob{}, unproven
		}
		withdrawn := b.withdrawn(list, b.digest)
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
	list, err := d.gate.revocations(ctx)
	if err != nil {
		return nil, err
	}
	referring, err := d.proven(ctx, `repository = ? AND subject = ? AND subject <> '' ORDER BY digest`, repository, subject.String())
	if err != nil || len(referring) == 0 {
		return []DepotReferrer{}, err
	}
	subjects, err := d.proven(ctx, `repository = ? AND digest = ?`, repository, subject.String())
	if err != nil {
		return nil, err
	}
	referrers := []DepotReferrer{}
	for _, b := range referring {
		again := len(referrers) > 0 && referrers[len(referrers)-1].Digest == b.digest
		own := slices.ContainsFunc(subjects, func(s shownBlob) bool { return s.channel == b.channel })
		if again || !own || b.subject != subject || b.withdrawn(list, b.digest) != nil {
			continue
		}
		r, err := d.referrer(b)
		if err != nil {
			return nil, err
		}
		referrers = append(referrers, r)
	}
	return referrers, nil
}

func (d *Depot) proven(ctx context.Context, where string, args ...any) ([]shownBlob, error) {
	index, err := rowsOf(ctx, d.gate.db.read, scanIndexed, indexedBlobs+where, args...)
	if err != nil {
		return nil, err
	}
	blobs := make([]shownBlob, len(index))
	for i := range index {
		if blobs[i], err = d.gate.prove(ctx, index[i]); err != nil {
			return nil, err
		}
	}
	return blobs, nil
}

// referrer reads what a manifest says of itself.
func (d *Depot) referrer(b shownBlob) (DepotReferrer, error) {
	r := DepotReferrer{Digest: b.digest, MediaType: b.mediaType, Size: b.size}
	text, err := d.gate.store.ReadAll(b.digest, bundle.MaxOCIManifestSize)
	if err != nil {
		return r, err
	}
	doc, err := bundle.ParseOCI(text, b.mediaType)
	if err != nil {
		return r, err
	}
	r.ArtifactType, r.Annotations = artifactTypeOf(doc), doc.Annotations
	return r, nil
}

// Files implements DepotStore.
func (d *Depot) Files(ctx context.Context, tree DepotTag, after string, limit int) ([]DepotFile, error) {
	all, ok, err := d.gate.treeShown(ctx, tree)
	if err != nil {
		return nil, err
	}
	if !ok || len(all) == 0 {
		return nil, &NotReleasedError{What: fmt.Sprintf("a tree of files %s:%s", tree.Repository, tree.Tag)}
	}
	from := all.from(after)
	to := min(len(all), from+limit/filesInBlock+2) // of the first block there may be nothing after it
	files, err := filesOf(ctx, d.gate.db.read, tree.Digest, all, from, to)
	if err != nil {
		return nil, err
	}
	first, exact := slices.BinarySearchFunc(files, after, pathOrder)
	if exact {
		first++
	}
	return files[first:min(len(files), first+limit)], nil
}

// pathOrder is where a file is among others, by its path.
func pathOrder(f DepotFile, path string) int { return cmp.Compare(f.Path, path) }

// File implements DepotStore.
func (d *Depot) File(ctx context.Context, repository, tag, path string) (DepotFile, error) {
	t, err := d.Tag(ctx, repository, tag)
	if err != nil {
		return DepotFile{}, err
	}
	missing := &NotReleasedError{What: fmt.Sprintf("the file %.200q of %s:%s", path, repository, tag)}
	all, ok, err := d.gate.treeShown(ctx, t)
	if err != nil {
		return DepotFile{}, err
	}
	if !ok || len(all) == 0 {
		return DepotFile{}, missing
	}
	from := all.from(path)
	files, err := filesOf(ctx, d.gate.db.read, t.Digest, all, from, from+1)
	if err != nil {
		return DepotFile{}, err
	}
	if i, ok := slices.BinarySearchFunc(files, path, pathOrder); ok {
		return files[i], nil
	}
	return DepotFile{}, missing
}

func scanFile(s scanner) (DepotFile, error) {
	var f DepotFile
	var digest digestColumn
	var pack string
	if err := s.Scan(&f.Path, &f.Size, &digest, &pack, &f.Offset); err != nil {
		return f, err
	}
	f.Digest = digest.value()
	if pack == "" {
		return f, nil
	}
	err := (&digest).Scan(pack)
	f.Pack = digest.value()
	return f, err
}

// Open implements DepotStore. It gives only what some repository shows.
func (d *Depot) Open(ctx context.Context, digest bundle.Digest) (io.ReadSeekCloser, error) {
	if _, err := d.shown(ctx, digest.String(), `digest = ?`, digest.String()); err != nil {
		return nil, err
	}
	return d.gate.store.OpenUnsafe(digest)
}

// ReadPacked implements DepotStore. It gives only what lies in a pack that some
// repository shows, and not if the file itself was revoked.
func (d *Depot) ReadPacked(ctx context.Context, f DepotFile) (content []byte, err error) {
	pack, err := d.shown(ctx, f.Pack.String(), `digest = ?`, f.Pack.String())
	if err != nil {
		return nil, err
	}
	list, err := d.gate.revocations(ctx)
	if err != nil {
		return nil, err
	}
	if err := pack.withdrawn(list, f.Digest); err != nil {
		return nil, err
	}
	one := bundle.TreeFile{File: bundle.File{Path: f.Path, Size: f.Size, Digest: f.Digest}, Pack: f.Pack, Offset: f.Offset}
	return bundle.ReadTreeFile(bundle.StoreContent(d.gate.store), one)
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
