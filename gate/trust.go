package gate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// floorStep is the most that one signed object can move the time floor once
// there is one, and tooEarly how far a signed time may lie in the future of the
// clock and still move it: one wrong date must not make everything else expire.
const (
	floorStep = 400 * 24 * time.Hour
	tooEarly  = 48 * time.Hour
	slack     = 5 * time.Minute // by which a clock may lag behind the floor unnoticed
)

// trust is what the gate believes, as rows say; nil without a root.
func trustOf(ctx context.Context, q queryer) (*signing.Trust, error) {
	var rootBytes, listBytes []byte
	err := q.QueryRowContext(ctx, `SELECT root, revocations FROM belief`).Scan(&rootBytes, &listBytes)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	root, err := signing.ParseRoot(rootBytes)
	if err != nil {
		return nil, err
	}
	if len(listBytes) == 0 {
		return signing.NewTrust(root, nil), nil
	}
	list, err := signing.ParseRevocations(listBytes)
	if err != nil {
		return nil, err
	}
	return signing.NewTrust(root, list), nil
}

// needTrust is trustOf for what cannot be done without a root. The audit log
// has to vouch for root, list and floor.
func (g *Gate) needTrust(ctx context.Context, q queryer) (*signing.Trust, error) {
	if err := g.sealedTrust(ctx, q); err != nil {
		return nil, err
	}
	trust, err := trustOf(ctx, q)
	if err == nil && trust == nil {
		err = problem.New("trust/not-initialised", "the gate trusts nobody yet: it has no trust root").
			Hint("packhof-gate trust init root-1.json")
	}
	return trust, err
}

// sealedTrust makes sure that the audit log vouches for root, list and floor. A
// floor that is no time has no words that could be held against the log's.
func (g *Gate) sealedTrust(ctx context.Context, q queryer) error {
	if _, err := floorOf(ctx, q); err != nil {
		return err
	}
	return g.sealed(ctx, q, trustSubject)
}

// floorOf is the time floor; zero before there is a root.
func floorOf(ctx context.Context, q queryer) (time.Time, error) {
	var floor int64
	err := q.QueryRowContext(ctx, `SELECT floor FROM belief`).Scan(&floor)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}.UTC(), nil
	}
	if err == nil && (floor < 0 || floor > maxSeconds) {
		err = damagedRow(problem.New(codeRowDamaged, "the time floor of the gate cannot be right: %d is no time", floor))
	}
	return fromSeconds(floor), err
}

func (t *tx) floor(ctx context.Context) (time.Time, error) {
	floor, err := floorOf(ctx, t)
	if floor.IsZero() {
		return time.Unix(0, 0).UTC(), err
	}
	return floor, err
}

// judgingTime is what keys and dates are held against: what the clock says,
// but never before the floor. A clock that is ahead refuses too much, one that
// is behind can admit nothing that is older than what was accepted before.
func judgingTime(wall, floor time.Time) time.Time {
	if wall.Before(floor) {
		return floor
	}
	return wall
}

// raiseFloor moves the floor up to a signed time that was just accepted.
func (t *tx) raiseFloor(ctx context.Context, signed time.Time) error {
	if signed.After(t.now.Add(tooEarly)) {
		return nil // the finding about it is the policy's business
	}
	floor, err := t.floor(ctx)
	if err != nil {
		return err
	}
	if floor.Unix() > 0 && signed.After(floor.Add(floorStep)) {
		signed = floor.Add(floorStep)
	}
	if !signed.After(floor) {
		return nil
	}
	if err := t.change(ctx, trustSubject); err != nil {
		return err
	}
	_, err = t.ExecContext(ctx, `UPDATE belief SET floor = ?`, seconds(signed))
	return err
}

// believe writes what the gate trusts from now on.
func (t *tx) believe(ctx context.Context, next *signing.Trust) error {
	if err := t.change(ctx, trustSubject); err != nil {
		return err
	}
	var list any
	if next.Revocations() != nil {
		list = next.Revocations().Bytes()
	}
	root := next.Root()
	if _, err := t.ExecContext(ctx, `INSERT INTO belief (one, root, root_version, revocations, list_version, floor) VALUES (1, ?, ?, ?, ?, 0)
		ON CONFLICT (one) DO UPDATE SET root = excluded.root, root_version = excluded.root_version,
		revocations = excluded.revocations, list_version = excluded.list_version`,
		root.Bytes(), root.Version(), list, next.Revocations().Version()); err != nil {
		return err
	}
	if err := t.keepDocument(ctx, "root", int64(root.Version()), root.Bytes()); err != nil {
		return err
	}
	if next.Revocations() == nil {
		return nil
	}
	if err := t.keepDocument(ctx, "revocations", int64(next.Revocations().Version()), next.Revocations().Bytes()); err != nil {
		return err
	}
	return t.raiseFloor(ctx, next.Revocations().Issued())
}

func (t *tx) keepDocument(ctx context.Context, kind string, version int64, document []byte) error {
	_, err := t.ExecContext(ctx, `INSERT INTO trust_document (kind, version, document, accepted) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, kind, version, document, seconds(t.now))
	return err
}

// InitTrust takes the first root, which people have compared by its
// fingerprint, and optionally a list of revocations. It works once.
func (g *Gate) InitTrust(ctx context.Context, by Actor, root, revocations []byte) (*TrustStatus, error) {
	if err := by.needs(MayAdminister); err != nil {
		return nil, err
	}
	parsed, err := signing.ParseRoot(root)
	if err != nil {
		return nil, err
	}
	if now := g.clock(); parsed.Expired(now) {
		return nil, problem.New("trust/clock", "by the clock of this machine the trust root is out of date: root or clock is wrong").
			With("root ends:  "+bundle.At(parsed.Expires()).String(), "clock:      "+bundle.At(now).String()).Hint("set the clock, or ask for a newer root")
	}
	trust := signing.NewTrust(parsed, nil)
	if len(revocations) > 0 {
		if trust, err = trust.UpdateRevocations(revocations, g.clock()); err != nil {
			return nil, err
		}
	}
	err = g.step(ctx, "trust.init", func(t *tx) error {
		if err := g.sealedTrust(ctx, t); err != nil {
			return err
		}
		before, err := trustOf(ctx, t)
		if err != nil {
			return err
		}
		if before != nil && before.Root().Digest() != parsed.Digest() {
			return problem.New("trust/initialised", "the gate has a trust root already, version %d", before.Root().Version()).
				With("have:  "+before.Root().Digest(), "got:   "+parsed.Digest()).Hint("packhof-gate trust update FILE  brings later versions")
		}
		if before != nil {
			return nil
		}
		if err := t.believe(ctx, trust); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: by.Name(), Type: "trust.init", Outcome: outcomeOK, Detail: fmt.Sprintf("root version %d, %s", parsed.Version(), parsed.Digest())})
	})
	if err != nil {
		return nil, err
	}
	return g.TrustStatus(ctx, by)
}

// UpdateTrust takes a later root, signed by the threshold of the one here and
// by its own, or a later list of revocations.
func (g *Gate) UpdateTrust(ctx context.Context, by Actor, document []byte) (*TrustStatus, error) {
	if err := by.needs(MayAdminister); err != nil {
		return nil, err
	}
	err := g.step(ctx, "trust.update", func(t *tx) error {
		trust, err := g.needTrust(ctx, t)
		if err != nil {
			return err
		}
		next, err := t.updated(ctx, trust, document)
		if err != nil || next == trust {
			return err
		}
		return t.adopt(ctx, by, trust, next)
	})
	if err != nil {
		return nil, err
	}
	return g.TrustStatus(ctx, by)
}

// updated applies a document that may be a root or a list.
func (t *tx) updated(ctx context.Context, trust *signing.Trust, document []byte) (*signing.Trust, error) {
	if _, err := signing.ParseRevocations(document); err != nil {
		return trust.UpdateRoots([][]byte{document})
	}
	floor, err := t.floor(ctx)
	if err != nil {
		return nil, err
	}
	return trust.UpdateRevocations(document, judgingTime(t.now, floor))
}

// adopt believes next and says so in the audit log. What was approved under
// the trust before has to be looked at again at its release, which checks.
func (t *tx) adopt(ctx context.Context, by Actor, before, next *signing.Trust) error {
	if err := t.believe(ctx, next); err != nil {
		return err
	}
	detail := fmt.Sprintf("root version %d to %d, revocations version %d to %d",
		before.Root().Version(), next.Root().Version(), before.Revocations().Version(), next.Revocations().Version())
	return t.log(ctx, leaf{Actor: by.Name(), Type: "trust.updated", Outcome: outcomeOK, Detail: detail})
}

// TrustStatus is what the gate believes, for people.
type TrustStatus struct {
	Initialised        bool           `json:"initialised"`
	RootVersion        int            `json:"rootVersion"`
	RootDigest         string         `json:"rootDigest"`
	Fingerprint        string         `json:"fingerprint"`
	Words              []string       `json:"words"` // of the fingerprint, to be read aloud
	Expires            time.Time      `json:"expires"`
	RevocationsVersion int            `json:"revocationsVersion"`
	Floor              time.Time      `json:"floor"`
	Roles              []TrustRole    `json:"roles"`
	Channels           []TrustChannel `json:"channels"`
}

// TrustRole is who may act in a role.
type TrustRole struct {
	Role      string     `json:"role"`
	Threshold int        `json:"threshold"`
	Keys      []TrustKey `json:"keys"`
}

// TrustKey is a key that the root names.
type TrustKey struct {
	Owner     string    `json:"owner"`
	ID        string    `json:"id"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	Revoked   string    `json:"revoked"` // the reason, "" if it is not
}

// TrustChannel is the place of a channel.
type TrustChannel struct {
	Name     string         `json:"name"`
	Epoch    int64          `json:"epoch"`
	Serial   int64          `json:"serial"` // 0: nothing was accepted yet
	Manifest *bundle.Digest `json:"manifest"`
	Missing  []int64        `json:"missing"`

	Abandoned []int64 `json:"abandoned"` // serials that the sender gave up
}

// FingerprintWords gives the words by which two people compare a document.
func FingerprintWords(document []byte) []string { return signing.FingerprintOf(document).Words() }

// TrustStatus tells what the gate believes.
func (g *Gate) TrustStatus(ctx context.Context, by Actor) (*TrustStatus, error) {
	if err := by.needs(MayRead); err != nil {
		return nil, err
	}
	trust, err := trustOf(ctx, g.db.read)
	if err != nil {
		return nil, err
	}
	status := &TrustStatus{Roles: []TrustRole{}, Channels: []TrustChannel{}, Words: []string{}}
	if trust == nil {
		return status, nil
	}
	root := trust.Root()
	if status.Floor, err = floorOf(ctx, g.db.read); err != nil {
		return nil, err
	}
	status.Initialised, status.RootVersion, status.RootDigest, status.Expires = true, root.Version(), root.Digest(), root.Expires()
	status.Fingerprint, status.Words, status.RevocationsVersion = root.Fingerprint().String(), root.Fingerprint().Words(), trust.Revocations().Version()
	for _, role := range root.Roles() {
		status.Roles = append(status.Roles, trustRole(trust, role))
	}
	for _, c := range root.Channels() {
		place, err := placeOf(ctx, g.db.read, c.Name)
		if err != nil {
			return nil, err
		}
		channel := place.status(c)
		if channel.Abandoned, err = place.abandonedOf(ctx, g.db.read, c.Name); err != nil {
			return nil, err
		}
		status.Channels = append(status.Channels, channel)
	}
	return status, nil
}

func trustRole(trust *signing.Trust, role signing.Role) TrustRole {
	rule, _ := trust.Root().Role(role)
	r := TrustRole{Role: string(role), Threshold: rule.Threshold, Keys: []TrustKey{}}
	for _, k := range rule.Keys {
		reason, _ := trust.Revocations().Key(k.Public.ID())
		r.Keys = append(r.Keys, TrustKey{Owner: k.Owner, ID: k.Public.ID().String(), NotBefore: k.NotBefore, NotAfter: k.NotAfter, Revoked: reason})
	}
	return r
}

// listCache keeps the parsed list of revocations: the depot asks for every
// request.
type listCache struct {
	mu   sync.Mutex
	leaf int64 // that says what the rows are; 0: nothing was read yet
	list *signing.Revocations
}

// revocations is the current list; nil if there is none. It is read again when
// the audit log says that trust has changed, and then it must be as the log
// says.
func (g *Gate) revocations(ctx context.Context) (*signing.Revocations, error) {
	leaf := g.newest.leaf(trustSubject)
	if leaf == noSeal { // nothing is believed yet, and there may be no rows either
		return nil, g.sealedTrust(ctx, g.db.read)
	}
	g.lists.mu.Lock()
	defer g.lists.mu.Unlock()
	if g.lists.leaf == leaf {
		return g.lists.list, nil
	}
	err := g.snapshot(ctx, func(v *view) error {
		trust, err := g.needTrust(ctx, v)
		if err == nil {
			g.lists.leaf, g.lists.list = leaf, trust.Revocations()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return g.lists.list, nil
}
