package gate

import (
	"context"
	"fmt"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// The index of the depot is wrong where it has other rows than the released
// artifacts give: Doctor says so, and MendDepot makes them anew.

// shownArtifact is an artifact of a case that the gate has published in its depot.
type shownArtifact struct {
	id        CaseID
	at        publishedRoot
	artifacts []bundle.Artifact // of that root
}

// shownCases are the cases of which something is published in the depot.
func shownCases(ctx context.Context, q queryer) ([]CaseID, error) {
	return rowsOf(ctx, q, scanNumber, `SELECT DISTINCT case_id FROM load WHERE destination = ? AND state <> 'put' ORDER BY case_id`, DepotName)
}

func (g *Gate) publishedOf(ctx context.Context, id CaseID) ([]shownArtifact, error) {
	c, unlock, err := g.caseShown(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var list []shownArtifact
	for at := range c.published {
		p := shownArtifact{id: id, at: at}
		for _, a := range c.artifacts {
			if a.Root.Digest == at.root {
				p.artifacts = append(p.artifacts, a)
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// checkDepot makes sure that the index of the depot has the rows that the
// released artifacts give, and no others.
func (g *Gate) checkDepot(ctx context.Context) error {
	if err := noStrayRows(ctx, g.db.read); err != nil {
		return err
	}
	ids, err := shownCases(ctx, g.db.read)
	if err != nil {
		return err
	}
	for _, id := range ids {
		list, err := g.publishedOf(ctx, id)
		for i := 0; i < len(list) && err == nil; i++ {
			err = g.checkIndexed(ctx, list[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkIndexed does so for one artifact.
func (g *Gate) checkIndexed(ctx context.Context, p shownArtifact) error {
	want, err := g.reachedBy(ctx, p)
	if err != nil {
		return err
	}
	rows := 0
	_, err = rowsOf(ctx, g.db.read, func(s scanner) (struct{}, error) {
		var digest, subject digestColumn
		var manifest bool
		if err := s.Scan(&digest, &manifest, &subject); err != nil {
			return struct{}{}, err
		}
		if b, ok := want[digest.value()]; !ok || b.manifest != manifest || b.subject != subject.value() {
			return struct{}{}, wrongIndex(p.at, "it says something else of "+digest.value().Short())
		}
		rows++
		return struct{}{}, nil
	}, `SELECT digest, manifest, subject FROM depot_blob WHERE repository = ? AND root = ? AND case_id = ?`, p.at.repository, p.at.root.String(), p.id)
	if err == nil && rows != len(want) {
		err = wrongIndex(p.at, fmt.Sprintf("it lacks %d of %d blobs", len(want)-rows, len(want)))
	}
	for i := 0; i < len(p.artifacts) && err == nil; i++ {
		err = g.checkTree(ctx, p, p.artifacts[i])
	}
	return err
}

func (g *Gate) checkTree(ctx context.Context, p shownArtifact, a bundle.Artifact) error {
	if !a.Kind.IsTree() {
		return nil
	}
	all, err := g.blocksOf(ctx, a)
	for from := 0; from < len(all) && err == nil; from += blocksAtOnce {
		_, err = filesOf(ctx, g.db.read, a.Root.Digest, all, from, min(len(all), from+blocksAtOnce))
	}
	if isContradiction(err) {
		return wrongIndex(p.at, "it has other files")
	}
	return err
}

func (g *Gate) reachedBy(ctx context.Context, p shownArtifact) (map[bundle.Digest]reachable, error) {
	c, unlock, err := g.caseShown(ctx, p.id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return g.reaches(c, p.at)
}

const codeIndex = "gate/depot-index"

func wrongIndex(at publishedRoot, what string) error {
	return problem.New(codeIndex, "the index of the depot is wrong about %s@%s: %s", at.repository, at.root.Short(), what).
		Hint("keep a copy of the data directory; then start packhof-gate serve anew, which makes the index anew")
}

// isWrongIndex tells rows that are to be made anew: those that say something
// else, and those that nobody can read.
func isWrongIndex(err error) bool {
	return problem.CodeOf(err) == codeIndex || isRowDamaged(err)
}

// Rows of what is not published in the depot, or is no more.
const (
	strayBlobs = ` FROM depot_blob AS b WHERE NOT EXISTS (SELECT 1 FROM load l WHERE l.case_id = b.case_id AND l.destination = ?
		AND l.repository = b.repository AND l.digest = b.root AND l.state <> 'put')`
	strayFiles = ` FROM depot_file AS f WHERE NOT EXISTS (SELECT 1 FROM load l WHERE l.destination = ? AND l.digest = f.digest AND l.state <> 'put')`
)

func noStrayRows(ctx context.Context, q queryer) error {
	stray, err := rowsOf(ctx, q, func(s scanner) (string, error) {
		var shows string
		return shows, s.Scan(&shows)
	}, `SELECT * FROM (SELECT b.digest`+strayBlobs+` LIMIT 1) UNION ALL SELECT * FROM (SELECT f.path`+strayFiles+` LIMIT 1)`, DepotName, DepotName)
	if err != nil || len(stray) == 0 {
		return err
	}
	return problem.New(codeIndex, "the index of the depot shows %.200q, which was not released", stray[0]).
		Hint("keep a copy of the data directory; then start packhof-gate serve anew, which makes the index anew")
}

// MendDepot makes the rows of the index anew that are not what the released
// artifacts give, and says so in the audit log. Of what cannot be read for
// another reason it leaves the rows alone: Doctor says why, and the depot does
// not serve it.
func (g *Gate) MendDepot(ctx context.Context) error {
	if err := noStrayRows(ctx, g.db.read); isWrongIndex(err) {
		if err := g.dropStrayRows(ctx, err); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	ids, err := shownCases(ctx, g.db.read)
	if err != nil {
		return err
	}
	for _, id := range ids {
		list, err := g.publishedOf(ctx, id)
		if err != nil && ctx.Err() != nil {
			return err
		}
		for _, p := range list { // none where the case cannot be read
			if wrong := g.checkIndexed(ctx, p); isWrongIndex(wrong) {
				if err := g.indexAnew(ctx, p, wrong); err != nil {
					return err
				}
			}
		}
	}
	return context.Cause(ctx)
}

func (g *Gate) dropStrayRows(ctx context.Context, why error) error {
	return g.step(ctx, "index", func(t *tx) error {
		if _, err := t.ExecContext(ctx, `DELETE`+strayBlobs, DepotName); err != nil {
			return err
		}
		if _, err := t.ExecContext(ctx, `DELETE`+strayFiles, DepotName); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: itself().Name(), Type: typeIndexed, Outcome: outcomeOK, Data: asProblem(why)})
	})
}

// typeIndexed is an entry of the audit log: rows of the index were wrong, in the
// way that it says, and were made anew.
const typeIndexed = "depot.indexed"

// indexAnew makes the rows of an artifact. Its manifests were just read, so that
// nothing but the database can fail.
func (g *Gate) indexAnew(ctx context.Context, p shownArtifact, why error) error {
	return g.step(ctx, "index", func(t *tx) error {
		if _, err := t.ExecContext(ctx, `DELETE FROM depot_blob WHERE repository = ? AND root = ? AND case_id = ?`, p.at.repository, p.at.root.String(), p.id); err != nil {
			return err
		}
		if _, err := t.ExecContext(ctx, `DELETE FROM depot_file WHERE digest = ?`, p.at.root.String()); err != nil {
			return err
		}
		for _, a := range p.artifacts {
			if err := t.showInDepot(ctx, p.id, p.at.repository, a, g.document); err != nil {
				return err
			}
		}
		return t.log(ctx, leaf{Actor: itself().Name(), Type: typeIndexed, Outcome: outcomeOK, Data: asProblem(why)})
	})
}
