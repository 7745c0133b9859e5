package gate

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/signing"
)

// row is a case as the database has it.
type row struct {
	Summary
	file         string
	problem      *Problem
	decision     *policy.Decision
	review       []byte
	reviewDigest string
	unread       bool // only Summary is set: it cannot be right
	ended        bool // it says that somebody rejected it, whatever else it says
}

const (
	summaryColumns = `id, manifest, state, verdict, channel, epoch, serial, size, artifacts, submitter, arrived, changed, deny, review_findings, warn, needed, review_digest`
	rowColumns     = summaryColumns + `, file, problem, decision, review`
)

// scanSummary reads summaryColumns, and what follows them into rest. Of a row
// that cannot be right it gives the number of the case beside the error.
func scanSummary(s scanner, rest ...any) (*row, error) {
	var r row
	var raw rawSummary
	columns := []any{&r.ID, &raw.manifest, &raw.state, &raw.verdict, &r.Channel, &r.Epoch, &r.Serial, &r.Size, &r.Artifacts, &r.Submitter,
		&raw.arrived, &raw.changed, &r.Deny, &r.Review, &r.Warn, &r.Needed, &r.reviewDigest}
	if err := s.Scan(append(columns, rest...)...); err != nil {
		return nil, err
	}
	return &r, r.parse(raw)
}

// scanRow reads rowColumns; likewise.
func scanRow(s scanner) (*row, error) {
	var file string
	var why, decision, review sql.NullString
	r, err := scanSummary(s, &file, &why, &decision, &review)
	if err != nil {
		return r, err
	}
	if !utf8.ValidString(file) {
		return r, rowDamaged(r.ID, "the name of its file is no text")
	}
	r.file, r.review = file, []byte(review.String)
	for _, column := range []struct {
		name, text string
		into       any
	}{{"problem", why.String, &r.problem}, {"decision", decision.String, &r.decision}} {
		if column.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(column.text), column.into); err != nil {
			return r, rowDamaged(r.ID, "its %s cannot be read: %w", column.name, err)
		}
	}
	return r, r.contradicted()
}

func rowOf(ctx context.Context, q queryer, id CaseID) (*row, error) {
	r, err := scanRow(q.QueryRowContext(ctx, `SELECT `+rowColumns+` FROM cases WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, problem.New("case/unknown", "there is no case %d", id).Hint("packhof-gate list")
	}
	return r, err
}

// liveRow finds the case of a manifest, those apart that were not genuine.
func liveRow(ctx context.Context, q queryer, manifest bundle.Digest) (*row, error) {
	r, err := scanRow(q.QueryRowContext(ctx, `SELECT `+rowColumns+` FROM cases WHERE manifest = ? AND state <> 'not genuine'`, manifest.String()))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return r, err
}

// label says which bundle a leaf is about.
func (r *row) label() *leafBundle {
	return &leafBundle{Manifest: r.Manifest, Channel: r.Channel, Epoch: r.Epoch, Serial: r.Serial}
}

// move sets the state of a case, which must not have changed since it was
// read, and the problem it stands with (nil: none).
func (t *tx) move(ctx context.Context, r *row, to State, why *Problem) error {
	text, err := jsonText(why)
	if err != nil {
		return err
	}
	if err := t.change(ctx, caseSubject(r.ID)); err != nil {
		return err
	}
	result, err := t.ExecContext(ctx, `UPDATE cases SET state = ?, problem = ?, changed = ? WHERE id = ? AND state = ?`, to, text, seconds(t.now), r.ID, r.State)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, caseBusy(r.ID))
	}
	r.State, r.problem = to, why
	return nil
}

func caseBusy(id CaseID) error {
	return problem.New("case/busy", "somebody else works on case %d", id).Hint("try again in a moment")
}

// jsonText is JSON for a text column; nil pointers are NULL.
func jsonText[T any](v *T) (any, error) {
	if v == nil {
		return nil, nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// asProblem keeps an error as people met it.
func asProblem(err error) *Problem {
	if err == nil {
		return nil
	}
	return &Problem{
		Code: cmp.Or(problem.CodeOf(err), "failed"), What: err.Error(),
		Evidence: append([]string{}, problem.EvidenceOf(err)...), Remedy: problem.RemedyOf(err),
	}
}

// Err gives the problem back as an error with the same code, evidence and
// remedy.
func (p *Problem) Err() error {
	return problem.New(p.Code, "%s", p.What).With(p.Evidence...).Hint("%s", p.Remedy)
}

// keepHead writes the head of a case, as it arrived. One that comes later with
// the same manifest may bring signatures by newer keys: what was there stays
// beside them.
func (t *tx) keepHead(ctx context.Context, id CaseID, h bundle.Head) error {
	put := func(kind, name string, b []byte) error {
		_, err := t.ExecContext(ctx, `INSERT INTO head (case_id, kind, name, bytes) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET bytes = excluded.bytes`, id, kind, name, b)
		return err
	}
	if err := put("manifest", "", h.Manifest); err != nil {
		return err
	}
	for _, r := range h.Roots {
		if err := put("root", fmt.Sprint(r.Version), r.Bytes); err != nil {
			return err
		}
	}
	if err := put("revocations", fmt.Sprint(h.Revocations.Version), h.Revocations.Bytes); err != nil {
		return err
	}
	for _, s := range h.Signatures {
		if err := put("signature", s.Key, s.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// headOf reads the head of a case.
func headOf(ctx context.Context, q queryer, id CaseID) (bundle.Head, error) {
	type part struct {
		kind, name string
		bytes      []byte
	}
	var h bundle.Head
	parts, err := rowsOf(ctx, q, func(s scanner) (part, error) {
		var p part
		return p, s.Scan(&p.kind, &p.name, &p.bytes)
	}, `SELECT kind, name, bytes FROM head WHERE case_id = ?`, id)
	if err != nil {
		return h, err
	}
	for _, p := range parts {
		var version int64
		switch p.kind {
		case "manifest":
			h.Manifest = p.bytes
		case "signature":
			h.Signatures = append(h.Signatures, bundle.Signature{Key: p.name, Bytes: p.bytes})
		default:
			if _, err := fmt.Sscan(p.name, &version); err != nil {
				return h, fmt.Errorf("case %d: version %q: %w", id, p.name, err)
			}
			doc := bundle.TrustDocument{Version: version, Bytes: p.bytes}
			if p.kind == "root" {
				h.Roots = append(h.Roots, doc)
			} else {
				h.Revocations = doc
			}
		}
	}
	return h, checkHead(ctx, q, id, h)
}

// checkHead makes sure that what was kept of a head is that of the case. A case
// that was accepted has one.
func checkHead(ctx context.Context, q queryer, id CaseID, h bundle.Head) error {
	var manifest digestColumn
	err := q.QueryRowContext(ctx, `SELECT manifest FROM cases WHERE id = ?`, id).Scan(&manifest)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if h.Manifest != nil {
		if h.Digest() != manifest.value() {
			return headDamaged(id, errors.New("the manifest is another one"))
		}
		return nil
	}
	accepted, err := exists(ctx, q, `SELECT 1 FROM serial JOIN cases ON serial.manifest = cases.manifest WHERE cases.id = ? AND cases.state <> ?`, id, NotGenuine)
	if err != nil {
		return err
	}
	if accepted {
		return headDamaged(id, errors.New("the manifest is missing"))
	}
	return notAccepted(id)
}

// headDamaged says that what was kept of the head of a case is not what came.
// Receiving writes it anew.
func headDamaged(id CaseID, what error) error {
	return problem.New(codeRowDamaged, "what was kept of the head of case %d cannot be right: %w", id, what).
		Hint("receive the bundle of case %d again: that brings its head back", id)
}

// spoiltHead tells whether a head was refused for what cannot be about one that
// was accepted once: it lacks a signature or a trust document, or has another.
// What was revoked since, or has run out, is no such thing.
func spoiltHead(h bundle.Head, failure error) bool {
	var untrusted *signing.UntrustedError
	switch {
	case failure == nil:
		return false
	case errors.As(failure, &untrusted) && len(untrusted.Refused) == 0 && len(untrusted.Mismatched)+len(untrusted.Malformed) > 0:
		return true
	case len(h.Signatures) == 0, slices.ContainsFunc(h.Signatures, isNoSignature):
		return true
	}
	m, err := bundle.ParseManifestUnsafe(h.Manifest) // its digest is that of the case
	if err != nil {
		return false
	}
	root := slices.ContainsFunc(h.Roots, func(d bundle.TrustDocument) bool { return cas.DigestOf(d.Bytes) == m.TrustRoot.Digest })
	return !root || cas.DigestOf(h.Revocations.Bytes) != m.Revocations.Digest
}

func isNoSignature(s bundle.Signature) bool {
	parsed, err := signing.ParseBundle(s.Bytes)
	return err != nil || parsed.Claims().Short() != s.Key
}

// notAccepted says that the gate keeps nothing of what a file brought: it was
// refused before it had become a delivery.
func notAccepted(id CaseID) error {
	return problem.New("case/not-accepted", "the bundle of case %d was not accepted, so nothing of it is kept", id).
		Hint("packhof-gate show %d  says why", id)
}

// vouched is the bundle of a case with what it was just held against.
type vouched struct {
	bundle *bundle.Bundle
	trust  *signing.Trust
	floor  time.Time
}

// bundleOf opens the bundle of a case from rows and store alone, and judges
// its signatures by the trust of this hour.
func (g *Gate) bundleOf(ctx context.Context, q queryer, id CaseID) (v vouched, err error) {
	head, err := headOf(ctx, q, id)
	if err != nil {
		return v, err
	}
	if v.trust, err = g.needTrust(ctx, q); err != nil {
		return v, err
	}
	if v.floor, err = floorOf(ctx, q); err != nil {
		return v, err
	}
	sealed := bundle.OpenSealed(fmt.Sprintf("case %d", id), head, bundle.StoreContent(g.store))
	v.bundle, err = sealed.Verify(v.trust, judgingTime(g.clock(), v.floor))
	if spoiltHead(head, err) {
		err = headDamaged(id, err)
	}
	return v, err
}
