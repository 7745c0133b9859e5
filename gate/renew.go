package gate

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"fmt"
	"sync"

	"github.com/packhof/packhof/policy"
)

// bindsPeople tells whether a decision can still follow on the review of a
// case, or a release on it. While one is under way, nothing is judged beside.
func (r *row) bindsPeople() bool {
	switch r.State {
	case Awaiting, Approved, PartlyLoaded:
		return len(r.review) > 0
	}
	return false
}

// upToDate reads a case for people who look at it. Where its review is not
// what it would be now, it is made again. A case that trust has turned against
// stays as it was judged: its release says what stands against it.
func (g *Gate) upToDate(ctx context.Context, by Actor, id CaseID) (*row, error) {
	r, err := rowOf(ctx, g.db.read, id)
	if err != nil || !r.bindsPeople() {
		return r, err
	}
	basis, err := g.basisOf(ctx, g.db.read, r)
	if err != nil || g.seen.has(id, basis) {
		return r, err
	}
	same, err := g.saysWhatHolds(ctx, g.db.read, r)
	if nobodyVouches(err) {
		return r, nil
	}
	if err == nil && !same {
		err = g.judgeAgain(ctx, by, r)
	}
	if err != nil {
		return nil, err
	}
	g.seen.keep(id, basis)
	if same {
		return r, nil
	}
	return rowOf(ctx, g.db.read, id)
}

// basisOf names what a review is made from, but for what stays the same while
// a process has the gate: the entries of the audit log that say how it stands,
// and which cases before it are still to come.
func (g *Gate) basisOf(ctx context.Context, q queryer, r *row) (string, error) {
	subjects := []subject{trustSubject, channelSubject(r.Channel)}
	for _, d := range g.destinations {
		subjects = append(subjects, namesSubject(d.Name))
	}
	var basis []byte
	for _, s := range subjects {
		leaf, err := sealOf(ctx, q, s)
		if err != nil {
			return "", err
		}
		basis = fmt.Append(basis, leaf, " ")
	}
	unfinished, err := unfinishedBefore(ctx, q, r.Channel, r.Epoch, r.Serial) // of other cases, so no entry of these says it
	return string(fmt.Append(basis, unfinished)), err
}

// seenReviews keeps on what basis reviews were compared last, so that those of
// many artifacts are not compared each time that somebody looks.
type seenReviews struct {
	mu sync.Mutex
	of map[CaseID]string
}

const mostSeen = 1000

func (s *seenReviews) has(id CaseID, basis string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.of[id]
	return ok && found == basis
}

func (s *seenReviews) keep(id CaseID, basis string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil || len(s.of) >= mostSeen {
		s.of = map[CaseID]string{}
	}
	s.of[id] = basis
}

// stillSays judges a case again before an approval of this review, if that is
// the one it has. Where another one comes of it, the approval finds that.
func (g *Gate) stillSays(ctx context.Context, by Actor, id CaseID, review string) error {
	r, err := rowOf(ctx, g.db.read, id)
	if err != nil || !r.bindsPeople() || r.reviewDigest != review {
		return err
	}
	return g.judgeAgain(ctx, by, r)
}

// saysWhatHolds compares a review with what it would say now, without the
// judge and without reading any content.
func (g *Gate) saysWhatHolds(ctx context.Context, q queryer, r *row) (bool, error) {
	var v Review
	if err := json.Unmarshal(r.review, &v); err != nil {
		return false, rowDamaged(r.ID, "its review cannot be read: %w", err)
	}
	b, err := g.bundleOf(ctx, q, r.ID)
	if err != nil {
		return false, err
	}
	m := b.bundle.Manifest()
	if len(v.Artifacts) != len(m.Artifacts) {
		return false, rowDamaged(r.ID, "it is not what its review is about")
	}
	around, err := surroundingsOf(ctx, q, r.ID, m)
	if err != nil {
		return false, err
	}
	if err := g.writePresent(ctx, q, r, b, around, &v); err != nil {
		return false, err
	}
	v.PolicyDigest = g.policy.Digest()
	document, err := canonical(&v)
	return bytes.Equal(document, r.review), err
}

// judgeAgain has a case judged by what holds now, and makes its review anew if
// another one comes of it.
func (g *Gate) judgeAgain(ctx context.Context, by Actor, r *row) error {
	s, err := g.state(ctx, by, r)
	if err != nil {
		return err
	}
	decision, err := g.verdict(ctx, s)
	if err != nil {
		return err
	}
	now, err := g.reviewNow(ctx, r, s, decision)
	if err != nil || now == r.reviewDigest {
		return err
	}
	return g.bindAnew(ctx, by, r, s, decision)
}

// verdict has facts judged. That no verdict is reached is an error.
func (g *Gate) verdict(ctx context.Context, s *statement) (*policy.Decision, error) {
	decision, err := g.judge.Evaluate(ctx, s.input)
	if err == nil && decision.Verdict.Blocks() && decision.Verdict != policy.Deny {
		err = notDecided(decision)
	}
	return decision, err
}

// reviewNow is the digest of the review that a case would have now.
func (g *Gate) reviewNow(ctx context.Context, r *row, s *statement, decision *policy.Decision) (string, error) {
	review, err := g.buildReview(ctx, g.db.read, r, s, decision)
	if err != nil {
		return "", err
	}
	document, err := canonical(review)
	return reviewDigest(document), err
}

// bindAnew is the step in which a case gets another review than it had. Who
// comes second, of two who saw that it has to, leaves it to the first.
func (g *Gate) bindAnew(ctx context.Context, by Actor, r *row, s *statement, decision *policy.Decision) error {
	return g.step(ctx, "decided-again", func(t *tx) error {
		now, err := rowOf(ctx, t, r.ID)
		if err != nil || now.reviewDigest != r.reviewDigest {
			return err
		}
		return g.writeDecision(ctx, t, by, r, s, decision)
	})
}
