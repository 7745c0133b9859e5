package gate

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/policy/facts"
)

func digestOf(b []byte) bundle.Digest { return cas.DigestOf(b) }

// ReviewPage is a review as somebody is about to decide on it.
type ReviewPage struct {
	Review    Review     `json:"review"`
	Digest    string     `json:"digest"` // of JSON: what a decision is bound to
	JSON      []byte     `json:"-"`      // the canonical document
	Decisions []Decision `json:"decisions"`
}

const maxReviewFiles = 1000

// buildReview writes down what people decide on. It must depend on nothing but
// the bundle, the decision, what the plant holds and the configuration: two
// times with the same of these give the same document.
func (g *Gate) buildReview(ctx context.Context, q queryer, r *row, s *statement, decision *policy.Decision) (*Review, error) {
	m := s.bundle.Manifest()
	findings, err := decision.FindingsDigest()
	if err != nil {
		return nil, err
	}
	v := &Review{
		Case: r.ID, Manifest: r.Manifest, Kind: string(m.Kind), Channel: m.Channel, Epoch: m.Epoch, Serial: m.Serial, Previous: m.Previous,
		Created: m.Created, Expires: m.Expires, Note: m.Note, Submitter: r.Submitter,
		BlobsChecked: m.Totals.Files, BytesChecked: m.Totals.Bytes, OmittedByTheSender: append([]bundle.Omission{}, m.Incomplete...),
		Verdict: decision.Verdict, PolicyDigest: decision.PolicyDigest, FindingsDigest: findings,
		Findings: append([]policy.Finding{}, decision.Findings...), Errors: append([]policy.Failure{}, decision.Errors...),
		Artifacts: []ReviewArtifact{}, Waivers: []string{},
		Documents: reviewDocuments(m), Answers: m.Answers, Ignored: m.Unknown(),
	}
	for i, a := range m.Artifacts {
		v.Artifacts = append(v.Artifacts, reviewArtifact(a, s.input.Artifacts[i]))
	}
	return v, g.writePresent(ctx, q, r, s.vouched, surroundings{s.held, s.gap}, v)
}

// surroundings is what the channel of a bundle holds and lacks.
type surroundings struct {
	held []facts.Held
	gap  []int64
}

func surroundingsOf(ctx context.Context, q queryer, id CaseID, m *bundle.Manifest) (s surroundings, err error) {
	if s.held, err = heldBy(ctx, q, m.Channel); err != nil {
		return s, err
	}
	s.gap, err = gapBefore(ctx, q, m, id)
	return s, err
}

// writePresent writes into a review what neither the bundle nor the judge says:
// who vouches, what the plant holds, and what this gate is set to.
func (g *Gate) writePresent(ctx context.Context, q queryer, r *row, b vouched, around surroundings, v *Review) (err error) {
	m, voucher := b.bundle.Manifest(), b.bundle.Voucher()
	v.Missing, v.Needed = append([]int64{}, around.gap...), g.needed(v.Verdict)
	v.Signers, v.Threshold, v.RootVersion, v.RevocationsVersion = []ReviewSigner{}, voucher.Threshold(), voucher.RootVersion(), voucher.RevocationsVersion()
	for _, signer := range voucher.Signers() {
		v.Signers = append(v.Signers, ReviewSigner{Owner: signer.Owner, Key: signer.ID.String()})
	}
	changes := facts.Changes(around.held, m)
	for i, a := range m.Artifacts {
		reviewed := &v.Artifacts[i]
		reviewed.Change, reviewed.FromVersion = changes[i].State, changes[i].FromVersion
		if reviewed.Plan, err = g.planned(ctx, q, r, m, a); err != nil {
			return err
		}
		if reviewed.Withdrawn, err = withdrawnReason(ctx, q, m.Channel, a.Root.Digest); err != nil {
			return err
		}
	}
	if v.Withdraws, err = reviewWithdrawals(ctx, q, m); err != nil {
		return err
	}
	if v.Abandoned, err = abandonedBefore(ctx, q, m); err != nil {
		return err
	}
	if v.Unfinished, err = unfinishedBefore(ctx, q, m.Channel, m.Epoch, m.Serial); err != nil {
		return err
	}
	v.Removed = []ReviewRemoved{}
	if m.Kind == bundle.KindControl {
		return nil // it takes the place of nothing
	}
	v.Removed = removed(m, around.held)
	v.Later, err = laterThan(ctx, q, m)
	return err
}

// laterThan finds what the channel holds, if that is a later delivery than a
// bundle; otherwise nil.
func laterThan(ctx context.Context, q queryer, m *bundle.Manifest) (*ReviewLater, error) {
	var later ReviewLater
	err := q.QueryRowContext(ctx, `SELECT c.id, c.epoch, c.serial FROM holding h JOIN cases c ON c.id = h.case_id
		WHERE h.channel = ? AND (c.epoch > ? OR c.epoch = ? AND c.serial > ?) LIMIT 1`, m.Channel, m.Epoch, m.Epoch, m.Serial).
		Scan(&later.Case, &later.Epoch, &later.Serial)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &later, err
}

// channelsHold finds, for every channel, the delivery that it holds.
func channelsHold(ctx context.Context, q queryer) (map[string]*ReviewLater, error) {
	held := map[string]*ReviewLater{}
	_, err := rowsOf(ctx, q, func(s scanner) (string, error) {
		var channel string
		var later ReviewLater
		err := s.Scan(&channel, &later.Case, &later.Epoch, &later.Serial)
		held[channel] = &later
		return channel, err
	}, `SELECT h.channel, c.id, c.epoch, c.serial FROM (SELECT DISTINCT channel, case_id FROM holding) h JOIN cases c ON c.id = h.case_id`)
	return held, err
}

// overtaking is Summary.Later of a case.
func overtaking(ctx context.Context, q queryer, s *Summary) (*ReviewLater, error) {
	held, err := channelsHold(ctx, q)
	return s.overtakenBy(held[s.Channel]), err
}

// overtakenBy gives what a channel holds if that is later than a case which can
// still be loaded. A control bundle, which has no artifacts, takes nobody's
// place.
func (s *Summary) overtakenBy(held *ReviewLater) *ReviewLater {
	if held == nil || s.State.Final() || s.Artifacts == 0 {
		return nil
	}
	if held.Epoch > s.Epoch || held.Epoch == s.Epoch && held.Serial > s.Serial {
		return held
	}
	return nil
}

func reviewArtifact(a bundle.Artifact, in policy.Artifact) ReviewArtifact {
	r := ReviewArtifact{
		Kind: a.Kind, Name: a.Name, Version: a.Version, Digest: a.Root.Digest, From: a.Origin.From, Transport: a.Origin.Transport,
		Verified: a.Origin.Verified, Platforms: append([]string{}, a.Platforms...), Size: a.Size, SBOM: []ReviewSBOM{}, Files: []ReviewFile{}, Referrers: []ReviewReferrer{},
		FilesTotal: len(in.Inspection.Files),
	}
	for _, c := range in.Inspection.Counted {
		r.FilesTotal += int(c.Files)
	}
	for i, s := range a.SBOM {
		line := ReviewSBOM{Subject: s.Subject, Status: s.Status, Format: s.Format, Tool: s.Tool, Reason: s.Reason}
		if i < len(in.SBOM) {
			line.Components = int(in.SBOM[i].Components)
		}
		r.SBOM = append(r.SBOM, line)
	}
	for _, f := range in.Referrers {
		digest, err := cas.ParseDigest(f.Digest)
		subject, subjectErr := cas.ParseDigest(f.Subject)
		if err == nil && subjectErr == nil {
			r.Referrers = append(r.Referrers, ReviewReferrer{Digest: digest, Subject: subject, Kind: f.Kind, Type: f.Untrusted.ArtifactType})
		}
	}
	for _, f := range in.Inspection.Files[:min(len(in.Inspection.Files), maxReviewFiles)] {
		d, err := cas.ParseDigest(f.Digest)
		if err != nil {
			continue // not reached: facts state digests that they parsed
		}
		r.Files = append(r.Files, ReviewFile{Path: f.Path, Size: f.Size, Digest: d, Format: f.Format})
	}
	return r
}

// planned says what an artifact will be called at each destination, and what it
// would replace there. What the case itself has published meanwhile is no
// change.
func (g *Gate) planned(ctx context.Context, q queryer, r *row, m *bundle.Manifest, a bundle.Artifact) ([]ReviewPlan, error) {
	plans := []ReviewPlan{}
	for _, d := range g.destinations {
		if !d.accepts(a.Kind) {
			continue
		}
		name := d.Naming.Name(a)
		held, err := publishedAs(ctx, q, d.Name, name)
		if err != nil {
			return nil, err
		}
		plan := ReviewPlan{Destination: d.Name, Location: d.Location, Name: name.String()}
		switch {
		case held == nil:
		case held.caseID == r.ID && held.replaced != nil && *held.replaced == a.Root.Digest:
			plan.Same = true
		case held.caseID == r.ID:
			plan.Replaces = held.replaced
		case held.by(m.Channel).newerThan(m):
			plan.Kept = true
		case held.digest != a.Root.Digest:
			plan.Replaces = &held.digest
			if held.channel != m.Channel {
				plan.Owner = held.channel
			}
		default:
			plan.Same = true
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

func (d *Destination) accepts(k bundle.Kind) bool { return slices.Contains(d.Accepts, k) }

// published is a name that the gate set.
type published struct {
	digest        bundle.Digest
	replaced      *bundle.Digest
	caseID        CaseID
	channel       string
	epoch, serial int64
}

// by is p if it is of a channel; otherwise nothing.
func (p *published) by(channel string) *published {
	if p == nil || p.channel != channel {
		return nil
	}
	return p
}

// newerThan tells whether a later serial has set the name.
func (p *published) newerThan(m *bundle.Manifest) bool {
	return p != nil && (p.epoch > m.Epoch || p.epoch == m.Epoch && p.serial > m.Serial)
}

func publishedAs(ctx context.Context, q queryer, destination string, n Name) (*published, error) {
	var p published
	var digest, replaced digestColumn
	err := q.QueryRowContext(ctx, `SELECT n.digest, n.replaced, n.case_id, c.channel, c.epoch, c.serial FROM name n JOIN cases c ON c.id = n.case_id
		WHERE n.destination = ? AND n.repository = ? AND n.tag = ?`, destination, n.Repository, n.Tag).Scan(&digest, &replaced, &p.caseID, &p.channel, &p.epoch, &p.serial)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	p.digest, p.replaced = digest.value(), replaced.digest
	return &p, err
}

// removed lists what the channel carried last, in no version now.
func removed(m *bundle.Manifest, held []facts.Held) []ReviewRemoved {
	list := []ReviewRemoved{}
	for _, h := range held {
		still := slices.ContainsFunc(m.Artifacts, func(a bundle.Artifact) bool { return a.Kind == h.Kind && a.Name == h.Name })
		if !still {
			list = append(list, ReviewRemoved{Kind: h.Kind, Name: h.Name, Version: h.Version, Digest: h.Digest})
		}
	}
	return list
}
