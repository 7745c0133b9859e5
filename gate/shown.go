package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/packhof/packhof/bundle"
)

// The rows of the depot are an index: what it shows follows from cases, names
// and loads that the audit log vouches for, and from manifests that are those of
// their digests. Both are read once and kept, each with the leaf that it follows
// from: what somebody edits afterwards, in whatever table, is not served.

// shownNames are the names of the depot, as the log says they are.
type shownNames struct {
	mu   sync.Mutex
	read bool
	leaf int64
	list []DepotTag // by repository and tag
}

// depotNames gives all names of the depot. Nobody may change the list.
func (g *Gate) depotNames(ctx context.Context) ([]DepotTag, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	n := &g.depot.names
	s := namesSubject(DepotName)
	leaf := g.newest.leaf(s)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.read && n.leaf == leaf {
		return n.list, nil
	}
	err := g.snapshot(ctx, func(v *view) (err error) {
		if err := g.sealed(ctx, v, s); err != nil {
			return err
		}
		n.list, err = rowsOf(ctx, v, scanTag, `SELECT repository, tag, kind, digest, media_type, size, case_id, since FROM name WHERE destination = ? ORDER BY repository, tag`, DepotName)
		return err
	})
	n.read, n.leaf = err == nil, leaf
	return n.list, err
}

func scanTag(s scanner) (DepotTag, error) {
	var t DepotTag
	var digest digestColumn
	var since int64
	err := s.Scan(&t.Repository, &t.Tag, &t.Kind, &digest, &t.MediaType, &t.Size, &t.Case, &since)
	t.Digest, t.Since = digest.value(), fromSeconds(since)
	return t, err
}

// placeOfName is where a name is, or would be, among names in their order.
func placeOfName(names []DepotTag, repository, tag string) (int, bool) {
	return slices.BinarySearchFunc(names, 0, func(t DepotTag, _ int) int {
		if c := strings.Compare(t.Repository, repository); c != 0 {
			return c
		}
		return strings.Compare(t.Tag, tag)
	})
}

// shownDepot is what is kept of what the depot shows.
type shownDepot struct {
	names shownNames
	trees shownTrees

	mu    sync.Mutex
	cases map[CaseID]*shownCase
	blobs int // of all cases
}

// mostShownBlobs bounds what is kept; beyond it all is read anew. One takes
// about 200 bytes.
const mostShownBlobs = 300_000

// shownCase is what the depot may show of a case.
type shownCase struct {
	mu   sync.Mutex
	leaf int64 // 0: nothing was read yet
	source
	published map[publishedRoot]bool
	artifacts []bundle.Artifact
	blobs     map[bundle.Digest]map[bundle.Digest]reachable // by root, read when first asked for
}

type publishedRoot struct {
	repository string
	root       bundle.Digest
}

// reachable is a blob that an artifact reaches.
type reachable struct {
	mediaType string
	size      int64
	manifest  bool
	subject   bundle.Digest // to which a manifest refers, if it does
}

func (s *shownDepot) of(id CaseID) *shownCase {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cases == nil || s.blobs > mostShownBlobs {
		s.cases, s.blobs = map[CaseID]*shownCase{}, 0
	}
	c := s.cases[id]
	if c == nil {
		c = &shownCase{}
		s.cases[id] = c
	}
	return c
}

func (s *shownDepot) count(blobs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs += blobs
}

// caseShown gives what the depot may show of a case, locked, as the log says it
// is.
func (g *Gate) caseShown(ctx context.Context, id CaseID) (c *shownCase, unlock func(), err error) {
	leaf := g.newest.leaf(caseSubject(id))
	c = g.depot.of(id)
	c.mu.Lock()
	if c.leaf != leaf || leaf == noSeal {
		if err := g.readShown(ctx, c, id); err != nil {
			c.leaf = 0
			c.mu.Unlock()
			return nil, nil, err
		}
		c.leaf = leaf
	}
	return c, c.mu.Unlock, nil
}

func (g *Gate) readShown(ctx context.Context, c *shownCase, id CaseID) error {
	c.published, c.artifacts, c.blobs = map[publishedRoot]bool{}, nil, map[bundle.Digest]map[bundle.Digest]reachable{}
	return g.snapshot(ctx, func(v *view) error {
		if err := g.sealed(ctx, v, caseSubject(id)); err != nil {
			return err
		}
		var manifest digestColumn
		if err := v.QueryRowContext(ctx, `SELECT manifest, channel, epoch, serial FROM cases WHERE id = ?`, id).Scan(&manifest, &c.channel, &c.epoch, &c.serial); err != nil {
			return fmt.Errorf("case %d: %w", id, err)
		}
		c.manifest = manifest.value()
		roots, err := rowsOf(ctx, v, func(s scanner) (publishedRoot, error) {
			var r publishedRoot
			var root digestColumn
			err := s.Scan(&r.repository, &root)
			r.root = root.value()
			return r, err
		}, `SELECT repository, digest FROM load WHERE case_id = ? AND destination = ? AND state <> 'put'`, id, DepotName)
		if err != nil {
			return err
		}
		for _, r := range roots {
			c.published[r] = true
		}
		head, err := headOf(ctx, v, id)
		if err != nil {
			return err
		}
		if head.Digest() != c.manifest {
			return contradiction(standing{Of: caseSubject(id), Says: "manifest " + c.manifest.Short()}, standing{Of: caseSubject(id), Says: "manifest " + head.Digest().Short()})
		}
		m, err := bundle.ParseManifestUnsafe(head.Manifest) // its digest is that of a case which was genuine
		if err != nil {
			return err
		}
		c.artifacts = m.Artifacts
		return nil
	})
}

// reaches gives what an artifact of the case reaches, if it was published in the
// repository; nil if it was not.
func (g *Gate) reaches(c *shownCase, at publishedRoot) (map[bundle.Digest]reachable, error) {
	if !c.published[at] {
		return nil, nil
	}
	if blobs, ok := c.blobs[at.root]; ok {
		return blobs, nil
	}
	blobs := map[bundle.Digest]reachable{}
	w := artifactWalk{
		read: g.document,
		put: func(d bundle.OCIDescriptor, doc *bundle.OCI) error {
			b := reachable{mediaType: d.MediaType, size: d.Size, manifest: doc != nil}
			if doc != nil && doc.Subject != nil {
				b.subject = doc.Subject.Digest
			}
			if b.manifest || !blobs[d.Digest].manifest {
				blobs[d.Digest] = b
			}
			return nil
		},
	}
	for _, a := range c.artifacts {
		if a.Root.Digest != at.root {
			continue
		}
		if err := w.artifact(a); err != nil {
			return nil, err
		}
	}
	c.blobs[at.root] = blobs
	g.depot.count(len(blobs))
	return blobs, nil
}

// indexed is a row of the index: where a blob is said to be.
type indexed struct {
	digest bundle.Digest
	at     publishedRoot
	caseID CaseID
}

func scanIndexed(s scanner) (indexed, error) {
	var i indexed
	var digest, root digestColumn
	err := s.Scan(&i.at.repository, &digest, &root, &i.caseID)
	i.digest, i.at.root = digest.value(), root.value()
	return i, err
}

// shownBlob is a blob as one artifact shows it.
type shownBlob struct {
	reachable
	source
	digest bundle.Digest
}

// prove makes sure that the depot may show what a row of the index says, and
// gives what it is.
func (g *Gate) prove(ctx context.Context, i indexed) (b shownBlob, err error) {
	c, unlock, err := g.caseShown(ctx, i.caseID)
	if err != nil {
		return b, err
	}
	defer unlock()
	blobs, err := g.reaches(c, i.at)
	if err != nil {
		return b, err
	}
	r, ok := blobs[i.digest]
	if !ok {
		return b, contradiction(standing{Of: "depot"}, standing{Of: "depot", Says: fmt.Sprintf("it shows %s in %.200q", i.digest, i.at.repository)})
	}
	b = shownBlob{r, c.source, i.digest}
	b.root = i.at.root
	return b, nil
}
