package gate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// place is where a channel stands: what the gate accepted of it so far.
type place struct {
	known    bool
	epoch    int64
	serial   int64
	manifest bundle.Digest
	missing  []int64 // serials of this epoch that never arrived
}

func placeOf(ctx context.Context, q queryer, channel string) (place, error) {
	var p place
	var manifest digestColumn
	err := q.QueryRowContext(ctx, `SELECT epoch, serial, manifest FROM channel WHERE name = ?`, channel).Scan(&p.epoch, &p.serial, &manifest)
	if errors.Is(err, sql.ErrNoRows) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p.known, p.manifest = true, manifest.value()
	p.missing, err = rowsOf(ctx, q, scanNumber, `SELECT serial FROM serial WHERE channel = ? AND epoch = ? AND manifest IS NULL ORDER BY serial`, channel, p.epoch)
	return p, err
}

func scanNumber(s scanner) (int64, error) {
	var n int64
	return n, s.Scan(&n)
}

// gapBefore lists the serials before a bundle that never arrived and without
// which nobody has decided to go on yet.
func gapBefore(ctx context.Context, q queryer, m *bundle.Manifest, id CaseID) ([]int64, error) {
	return rowsOf(ctx, q, scanNumber, `SELECT serial FROM serial WHERE channel = ? AND epoch = ? AND serial < ? AND manifest IS NULL
		AND (excused = 0 OR excused = ?) ORDER BY serial`, m.Channel, m.Epoch, m.Serial, id)
}

// unfinishedBefore lists the serials of an epoch before one, that were accepted
// and of whose content something is still to come.
func unfinishedBefore(ctx context.Context, q queryer, channel string, epoch, serial int64) ([]int64, error) {
	return rowsOf(ctx, q, scanNumber, `SELECT serial FROM cases WHERE channel = ? AND epoch = ? AND serial < ? AND state IN (?, ?) ORDER BY serial`,
		channel, epoch, serial, Received, Damaged)
}

// abandonedBefore lists the serials just before a bundle that was accepted which
// its sender gave up: those that are neither accepted nor missing.
func abandonedBefore(ctx context.Context, q queryer, m *bundle.Manifest) ([]int64, error) {
	var last int64
	err := q.QueryRowContext(ctx, `SELECT coalesce(max(serial), 0) FROM serial WHERE channel = ? AND epoch = ? AND serial < ?`, m.Channel, m.Epoch, m.Serial).Scan(&last)
	return between(last, m.Serial), err
}

// abandonedOf lists all serials of an epoch that senders gave up.
func (p place) abandonedOf(ctx context.Context, q queryer, channel string) ([]int64, error) {
	known, err := rowsOf(ctx, q, scanNumber, `SELECT serial FROM serial WHERE channel = ? AND epoch = ? ORDER BY serial`, channel, p.epoch)
	list, last := []int64{}, int64(0)
	for _, n := range known {
		list, last = append(list, between(last, n)...), n
	}
	return list, err
}

// excuse records that people went on without the serials that a case lists as
// missing. They stay listed until they arrive.
func (t *tx) excuse(ctx context.Context, m *bundle.Manifest, id CaseID) error {
	if err := t.change(ctx, channelSubject(m.Channel)); err != nil {
		return err
	}
	_, err := t.ExecContext(ctx, `UPDATE serial SET excused = ? WHERE channel = ? AND epoch = ? AND serial < ? AND manifest IS NULL AND excused = 0`,
		id, m.Channel, m.Epoch, m.Serial)
	return err
}

func (p place) status(c signing.Channel) TrustChannel {
	s := TrustChannel{Name: c.Name, Epoch: int64(c.Epoch), Missing: slices.Concat([]int64{}, p.missing), Abandoned: []int64{}}
	if p.known {
		s.Epoch, s.Serial, s.Manifest = p.epoch, p.serial, &p.manifest
	}
	return s
}

// freshness is what the place of a bundle in its channel means.
type freshness struct {
	again     bool    // this very manifest was accepted before
	fills     bool    // it is one that was missing: it moves no name that a later serial set
	missing   []int64 // serials between the last accepted one and this
	abandoned []int64 // likewise, that this one does not follow: the sender gave them up
}

// maxGap guards against a serial so high that nothing could follow it.
const maxGap = 10_000

// checkAudience refuses what is meant for other gates.
func (g *Gate) checkAudience(m *bundle.Manifest) error {
	if slices.Contains(m.Audience, g.id) {
		return nil
	}
	return problem.New("audience/other", "the bundle is meant for another gate").
		With("for:   "+strings.Join(m.Audience, ", "), "here:  "+g.id).
		Hint("ask the sender to add this gate: packhof trust add-gate enrol.json")
}

// checkExpiry refuses what the floor proves to be too old. What only the clock
// on the wall says is a fact for the policy.
func checkExpiry(m *bundle.Manifest, floor time.Time) error {
	if floor.Before(m.Expires.Time) {
		return nil
	}
	return problem.New("freshness/expired", "the bundle is too old").
		With("expired:     "+m.Expires.String(), "known time:  "+bundle.At(floor).String()).
		Hint("ask the sender for a new bundle: packhof plan, packhof export")
}

// checkEpoch refuses bundles of another epoch than the root names.
func checkEpoch(m *bundle.Manifest, root *signing.Root) error {
	channel, _ := root.Channel(m.Channel)
	if m.Epoch == int64(channel.Epoch) {
		return nil
	}
	return problem.New("freshness/epoch", "the bundle is of epoch %d of %s, and the trust root says epoch %d", m.Epoch, m.Channel, channel.Epoch).
		Hint("ask the sender for a bundle of the current epoch")
}

// checkFreshness holds epoch, serial and previous against what was accepted.
func checkFreshness(ctx context.Context, q queryer, m *bundle.Manifest, digest bundle.Digest, root *signing.Root) (freshness, error) {
	if err := checkEpoch(m, root); err != nil {
		return freshness{}, err
	}
	p, err := placeOf(ctx, q, m.Channel)
	if err != nil {
		return freshness{}, err
	}
	switch {
	case p.known && m.Epoch < p.epoch:
		return freshness{}, problem.New("freshness/epoch", "the bundle is of epoch %d of %s, and epoch %d was accepted already", m.Epoch, m.Channel, p.epoch).
			Hint("ask the sender for a bundle of the current epoch")
	case !p.known || m.Epoch > p.epoch:
		if m.Serial-1 > maxGap {
			return freshness{}, tooFar(m, 0)
		}
		if previousOf(m) == p.manifest { // the zero digest where nothing was accepted yet
			return freshness{abandoned: between(0, m.Serial)}, nil
		}
		return freshness{missing: between(0, m.Serial)}, nil
	case m.Serial <= p.serial:
		return knownSerial(ctx, q, m, digest, p)
	}
	return p.follows(ctx, q, m)
}

// follows is a serial higher than all before it.
func (p place) follows(ctx context.Context, q queryer, m *bundle.Manifest) (freshness, error) {
	switch {
	case m.Serial-p.serial > maxGap:
		return freshness{}, tooFar(m, p.serial)
	case m.Previous != nil && *m.Previous == p.manifest:
		return freshness{abandoned: between(p.serial, m.Serial)}, nil
	case m.Serial == p.serial+1:
		return freshness{}, twoHistories(m, "previous", p.manifest, previousOf(m))
	}
	// It may follow one that never arrived, but none of those that did: they
	// are followed by the last one already.
	accepted, err := wasAccepted(ctx, q, m, previousOf(m))
	if err != nil {
		return freshness{}, err
	}
	if accepted {
		return freshness{}, twoHistories(m, "previous", p.manifest, previousOf(m))
	}
	return freshness{missing: between(p.serial, m.Serial)}, nil
}

func previousOf(m *bundle.Manifest) bundle.Digest {
	if m.Previous == nil {
		return bundle.Digest{}
	}
	return *m.Previous
}

func wasAccepted(ctx context.Context, q queryer, m *bundle.Manifest, digest bundle.Digest) (bool, error) {
	return exists(ctx, q, `SELECT 1 FROM serial WHERE channel = ? AND epoch = ? AND manifest = ?`, m.Channel, m.Epoch, digest.String())
}

// knownSerial is a serial that is not higher than the last one.
func knownSerial(ctx context.Context, q queryer, m *bundle.Manifest, digest bundle.Digest, p place) (freshness, error) {
	var have digestColumn
	err := q.QueryRowContext(ctx, `SELECT manifest FROM serial WHERE channel = ? AND epoch = ? AND serial = ?`, m.Channel, m.Epoch, m.Serial).Scan(&have)
	switch {
	case err == nil && have.digest == nil:
		return freshness{fills: true}, fitsBetween(ctx, q, m, digest)
	case err == nil && *have.digest == digest:
		return freshness{again: true}, nil
	case err == nil:
		return freshness{}, twoHistories(m, "manifest", *have.digest, digest)
	case !errors.Is(err, sql.ErrNoRows):
		return freshness{}, err
	}
	return freshness{}, problem.New("freshness/older", "the bundle is older than what the channel %s has accepted already", m.Channel).
		With(fmt.Sprintf("got:   serial %d", m.Serial), fmt.Sprintf("have:  serial %d", p.serial)).
		Hint("bring the newest bundle of the channel")
}

// fitsBetween holds a bundle that was missing against its neighbours: the next
// one must follow it, and it the one before.
func fitsBetween(ctx context.Context, q queryer, m *bundle.Manifest, digest bundle.Digest) error {
	var next string
	err := q.QueryRowContext(ctx, `SELECT previous FROM serial WHERE channel = ? AND epoch = ? AND serial = ? AND manifest IS NOT NULL`, m.Channel, m.Epoch, m.Serial+1).Scan(&next)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err == nil && next != digest.String() {
		return problem.New("freshness/equivocation", "serial %d of %s follows another serial %d than this", m.Serial+1, m.Channel, m.Serial).
			With("followed:  "+next, "got:       "+digest.String()).Hint(stopHint)
	}
	var before digestColumn
	err = q.QueryRowContext(ctx, `SELECT manifest FROM serial WHERE channel = ? AND epoch = ? AND serial < ? AND manifest IS NOT NULL ORDER BY serial DESC LIMIT 1`, m.Channel, m.Epoch, m.Serial).Scan(&before)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil || previousOf(m) == before.value() {
		return err
	}
	accepted, err := wasAccepted(ctx, q, m, previousOf(m))
	if err == nil && accepted {
		err = twoHistories(m, "previous", before.value(), previousOf(m))
	}
	return err
}

const stopHint = "stop: two different histories of this channel are signed. Compare both with the sender before anything else comes in"

func twoHistories(m *bundle.Manifest, what string, have, got bundle.Digest) *problem.Problem {
	return problem.New("freshness/equivocation", "serial %d of %s has another %s than the one that was accepted", m.Serial, m.Channel, what).
		With("accepted:  "+have.String(), "got:       "+got.String()).Hint(stopHint)
}

func tooFar(m *bundle.Manifest, last int64) error {
	return problem.New("freshness/too-far", "serial %d of %s is more than %d ahead", m.Serial, m.Channel, maxGap).
		With(fmt.Sprintf("have:  serial %d", last)).Hint("ask the sender to begin a new epoch")
}

func between(last, next int64) []int64 {
	var list []int64
	for n := last + 1; n < next; n++ {
		list = append(list, n)
	}
	return list
}

// accept moves the channel to the bundle. A bundle that fills a gap takes its
// place and moves nothing.
func (t *tx) accept(ctx context.Context, m *bundle.Manifest, digest bundle.Digest, f freshness) error {
	if f.again {
		return nil
	}
	if err := t.change(ctx, channelSubject(m.Channel)); err != nil {
		return err
	}
	for _, n := range f.missing {
		if _, err := t.ExecContext(ctx, `INSERT INTO serial (channel, epoch, serial, manifest) VALUES (?, ?, ?, NULL) ON CONFLICT DO NOTHING`, m.Channel, m.Epoch, n); err != nil {
			return err
		}
	}
	if _, err := t.ExecContext(ctx, `INSERT INTO serial (channel, epoch, serial, manifest, previous) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET manifest = excluded.manifest, previous = excluded.previous`, m.Channel, m.Epoch, m.Serial, digest.String(), previousOf(m).String()); err != nil {
		return err
	}
	if f.fills {
		return nil
	}
	if _, err := t.ExecContext(ctx, `INSERT INTO channel (name, epoch, serial, manifest) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET epoch = excluded.epoch, serial = excluded.serial, manifest = excluded.manifest`, m.Channel, m.Epoch, m.Serial, digest.String()); err != nil {
		return err
	}
	return t.raiseFloor(ctx, m.Created.Time)
}
