package gate

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/signing"
)

// Rows that decide nothing, and that people read nevertheless: which trust
// documents were believed, and what destinations said of what was put there.
// Doctor holds them against what is certain.

// putSaid is what the audit log says of content that was put.
type putSaid struct {
	Receipt
	Artifact   *int           `json:"artifact,omitzero"` // its place in the manifest; entries from before it was written have none
	Digest     *bundle.Digest `json:"digest,omitzero"`
	Repository string         `json:"repository,omitzero"`
	Tag        string         `json:"tag,omitzero"`
}

// putRow is a row of what was put.
type putRow struct {
	id          CaseID
	destination string
	artifact    int
	put         putSaid
}

// checkKept looks at both in one state of the database, since steps may go on
// meanwhile.
func (g *Gate) checkKept(ctx context.Context) error {
	return g.snapshot(ctx, func(q *view) error {
		return errors.Join(g.checkPuts(ctx, q), g.checkTrustDocuments(ctx, q))
	})
}

// checkPuts holds what was put, published or not, against what the audit log said
// of it last.
func (g *Gate) checkPuts(ctx context.Context, q queryer) error {
	ids, err := rowsOf(ctx, q, scanNumber, `SELECT DISTINCT case_id FROM load ORDER BY case_id`)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := g.checkPutsOf(ctx, q, id); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) checkPutsOf(ctx context.Context, q queryer, id CaseID) error {
	rows, err := putRows(ctx, q, id)
	if err != nil {
		return err
	}
	if err := g.fault("puts:between"); err != nil {
		return err
	}
	leaves, err := putLeaves(ctx, q, id)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := r.isSaid(leaves); err != nil {
			return err
		}
	}
	return nil
}

func putRows(ctx context.Context, q queryer, id CaseID) ([]putRow, error) {
	return rowsOf(ctx, q, func(s scanner) (r putRow, err error) {
		var digest digestColumn
		var text []byte
		if err := s.Scan(&r.id, &r.destination, &r.artifact, &digest, &r.put.Repository, &r.put.Tag, &text); err != nil {
			return r, err
		}
		d := digest.value()
		r.put.Digest = &d
		if json.Unmarshal(text, &r.put.Receipt) != nil {
			err = rowDamaged(r.id, "what was loaded of it cannot be read")
		}
		return r, err
	}, `SELECT case_id, destination, artifact, digest, repository, tag, receipt FROM load WHERE case_id = ? ORDER BY destination, artifact`, id)
}

// putLeaf is an entry about content that was put.
type putLeaf struct {
	Detail string  `json:"detail"` // destination and location
	Data   putSaid `json:"data"`
}

func (l putLeaf) destination() string {
	return strings.TrimSuffix(l.Detail, ": "+l.Data.Location)
}

// putLeaves are those of a case, the newest first.
func putLeaves(ctx context.Context, q queryer, id CaseID) ([]putLeaf, error) {
	return rowsOf(ctx, q, func(s scanner) (l putLeaf, err error) {
		var record []byte
		if err := s.Scan(&record); err != nil {
			return l, err
		}
		if err := json.Unmarshal(record, &l); err != nil {
			return l, errors.Join(errLogBroken, err)
		}
		return l, nil
	}, `SELECT bytes FROM leaf WHERE case_id = ? AND instr(bytes, ?) > 0 ORDER BY n DESC`, id, []byte(`"type":"load.put"`))
}

func (r putRow) isSaid(leaves []putLeaf) error {
	for _, l := range leaves {
		switch {
		case l.destination() != r.destination || l.Data.Artifact != nil && *l.Data.Artifact != r.artifact:
			continue
		case l.Data.Receipt == r.put.Receipt && (l.Data.Artifact == nil || r.put.sameName(l.Data)):
			return nil
		case l.Data.Artifact != nil:
			return contradiction(standing{Of: caseSubject(r.id), Says: l.Data.text()}, standing{Of: caseSubject(r.id), Says: r.put.text()})
		}
	}
	return contradiction(standing{Of: caseSubject(r.id)}, standing{Of: caseSubject(r.id), Says: r.put.text()})
}

func (p putSaid) sameName(other putSaid) bool {
	return p.Repository == other.Repository && p.Tag == other.Tag && other.Digest != nil && *p.Digest == *other.Digest
}

func (p putSaid) text() string {
	return fmt.Sprintf("%.100q put as %.100q, tag %.100q: %d moved (%d bytes), %d kept", p.Location, p.Repository, p.Tag, p.Blobs, p.Bytes, p.Kept)
}

// checkTrustDocuments holds the trust documents that were kept against what the
// gate believes, and each root against the one before it.
func (g *Gate) checkTrustDocuments(ctx context.Context, q queryer) error {
	trust, err := trustOf(ctx, q)
	if err != nil {
		return err
	}
	if err := g.fault("trust:between"); err != nil {
		return err
	}
	newest := map[string]int{"root": 0, "revocations": 0}
	want := map[string][]byte{}
	if trust != nil {
		newest["root"], want["root"] = trust.Root().Version(), trust.Root().Bytes()
		if list := trust.Revocations(); list != nil {
			newest["revocations"], want["revocations"] = list.Version(), list.Bytes()
		}
	}
	var last *signing.Root
	_, err = rowsOf(ctx, q, func(s scanner) (struct{}, error) {
		var kind string
		var version int
		var document []byte
		if err := s.Scan(&kind, &version, &document); err != nil {
			return struct{}{}, err
		}
		wrong := contradiction(standing{Of: trustSubject, Says: fmt.Sprintf("%s version %d", kind, newest[kind])},
			standing{Of: trustSubject, Says: fmt.Sprintf("another document as %.20s version %d", kind, version)})
		if version > newest[kind] || version == newest[kind] && !bytes.Equal(document, want[kind]) {
			return struct{}{}, wrong
		}
		if version == newest[kind] {
			delete(want, kind)
		}
		if kind != "root" {
			if list, err := signing.ParseRevocations(document); err != nil || list.Version() != version {
				return struct{}{}, wrong
			}
			return struct{}{}, nil
		}
		root, err := signing.ParseRoot(document)
		if err != nil || root.Version() != version {
			return struct{}{}, wrong
		}
		if last != nil && last.Version()+1 == version {
			if _, err := last.Update(document); err != nil {
				return struct{}{}, wrong
			}
		}
		last = root
		return struct{}{}, nil
	}, `SELECT kind, version, document FROM trust_document ORDER BY kind, version`)
	if err != nil || len(want) == 0 {
		return err
	}
	return contradiction(standing{Of: trustSubject, Says: fmt.Sprintf("root version %d, revocations version %d", newest["root"], newest["revocations"])},
		standing{Of: trustSubject, Says: "no document of that version"})
}
