package gate

import (
	"context"
	"errors"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// admission is what judging a head came to.
type admission struct {
	bundle  *bundle.Bundle
	trust   *signing.Trust // with what the head brought, even if the bundle is refused
	before  *signing.Trust
	fresh   freshness
	refusal error
}

// judgeHead holds a head against trust, audience and freshness. It changes
// nothing; an error is no refusal but a failure of ours.
func (g *Gate) judgeHead(ctx context.Context, q queryer, sealed *bundle.Sealed) (a admission, err error) {
	if a.before, err = g.needTrust(ctx, q); err != nil {
		return a, err
	}
	floor, err := floorOf(ctx, q)
	if err != nil {
		return a, err
	}
	at := judgingTime(g.clock(), floor)
	if a.trust, a.refusal = sealed.Trust(a.before, at); a.refusal != nil {
		return a, nil
	}
	if a.bundle, a.refusal = sealed.Verify(a.trust, at); a.refusal != nil {
		return a, nil
	}
	m := a.bundle.Manifest()
	for _, check := range []func() error{
		func() error { return g.checkAudience(m) },
		func() error { return checkExpiry(m, floor) },
		func() error { return checkDocuments(m) },
	} {
		if a.refusal = check(); a.refusal != nil {
			return a, nil
		}
	}
	if err := g.sealed(ctx, q, channelSubject(m.Channel)); err != nil {
		return a, err
	}
	a.fresh, err = checkFreshness(ctx, q, m, a.bundle.Digest(), a.trust.Root())
	if strings.HasPrefix(problem.CodeOf(err), "freshness/") { // what cannot be read refuses no bundle
		a.refusal, err = err, nil
	}
	return a, err
}

// admit is the step in which a head becomes a case, or a refusal. The medium
// is judged as a file before the step: nobody else has to wait for a slow disk.
// Inside it, the head is judged again from memory, by the trust of that moment.
func (g *Gate) admit(ctx context.Context, by Actor, sealed *bundle.Sealed, file string) (id CaseID, b *bundle.Bundle, err error) {
	onMedium, err := g.judgeHead(ctx, g.db.read, sealed)
	if err != nil {
		return 0, nil, err
	}
	inMemory := bundle.OpenSealed(sealed.Name(), sealed.Head(), bundle.StoreContent(g.store))
	var refusal error
	err = g.step(ctx, "admit", func(t *tx) error {
		a, err := g.judgeHead(ctx, t, inMemory)
		if err != nil {
			return err
		}
		if a.trust != nil && a.trust != a.before {
			if err := t.adopt(ctx, by, a.before, a.trust); err != nil {
				return err
			}
		}
		if refusal = a.refusal; refusal == nil {
			refusal = onMedium.refusal // it is torn, or was refused by what was believed a moment ago
		}
		if refusal = namingFile(refusal, file); refusal != nil {
			id, err = t.refuse(ctx, by, sealed, file, refusal)
			return err
		}
		id, err = t.openCase(ctx, by, sealed.Head(), a, file)
		return err
	})
	if !isWrittenDown(err) {
		id = 0 // what the step had begun is not there
	}
	return id, onMedium.bundle, errors.Join(refusal, err)
}

// openCase makes the case of a head that is genuine and fresh, or goes on with
// the one that is there.
func (t *tx) openCase(ctx context.Context, by Actor, h bundle.Head, a admission, file string) (CaseID, error) {
	m, digest := a.bundle.Manifest(), a.bundle.Digest()
	r, err := liveRow(ctx, t, digest)
	if err != nil {
		return 0, err
	}
	begun := r == nil || r.State == Damaged || r.decision == nil && (r.State == Blocked || r.State == Expired)
	switch {
	case r == nil:
		r, err = t.insertCase(ctx, by, digest, claimsOf(m), file, Received, nil)
	case begun:
		err = t.move(ctx, r, Received, nil)
	}
	if err != nil {
		return 0, err
	}
	if err := t.keepHead(ctx, r.ID, h); err != nil {
		return r.ID, err
	}
	if err := t.accept(ctx, m, digest, a.fresh); err != nil {
		return r.ID, err
	}
	if !a.fresh.again {
		if err := t.withdraw(ctx, r.ID, m); err != nil {
			return r.ID, err
		}
	}
	another, err := t.noteReceiver(ctx, r.ID, by)
	if err != nil || !begun && !another {
		return r.ID, err
	}
	return r.ID, t.log(ctx, leaf{Actor: by.Name(), Type: "case.received", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: said("{file}, signed by {signers}", "file", file, "signers", signersText(a.bundle))})
}

// noteReceiver remembers who brought something of a case in, and tells whether
// that is news.
func (t *tx) noteReceiver(ctx context.Context, id CaseID, by Actor) (another bool, err error) {
	known, err := exists(ctx, t, `SELECT 1 FROM receiver WHERE case_id = ? AND person = ?`, id, by.person())
	if err != nil || known {
		return false, err
	}
	if err := t.change(ctx, caseSubject(id)); err != nil {
		return false, err
	}
	_, err = t.ExecContext(ctx, `INSERT INTO receiver (case_id, person) VALUES (?, ?)`, id, by.person())
	return true, err
}

func signersText(b *bundle.Bundle) string {
	var names []string
	for _, s := range b.Voucher().Signers() {
		names = append(names, s.String())
	}
	return strings.Join(names, ", ")
}

// claimed is what a row says of a bundle.
type claimed struct {
	channel       string
	epoch, serial int64
	size          int64
	artifacts     int
}

func claimsOf(m *bundle.Manifest) claimed {
	return claimed{channel: m.Channel, epoch: m.Epoch, serial: m.Serial, size: m.Totals.Bytes, artifacts: len(m.Artifacts)}
}

func (t *tx) insertCase(ctx context.Context, by Actor, digest bundle.Digest, c claimed, file string, state State, why *Problem) (*row, error) {
	text, err := jsonText(why)
	if err != nil {
		return nil, err
	}
	result, err := t.ExecContext(ctx, `INSERT INTO cases (manifest, state, channel, epoch, serial, size, artifacts, file, submitter, arrived, changed, problem)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, digest.String(), state, c.channel, c.epoch, c.serial, c.size, c.artifacts, file, by.Name(), seconds(t.now), seconds(t.now), text)
	if err != nil {
		return nil, err
	}
	id, err := result.LastInsertId()
	if err != nil {
		return nil, err
	}
	t.changed = append(t.changed, caseSubject(id)) // there was nothing to compare
	return rowOf(ctx, t, id)
}

// refuse records a refusal. Somebody has to see that an unknown sender or a
// wrong bundle was here: that is a case. A file that is merely torn is an entry
// of the audit log.
func (t *tx) refuse(ctx context.Context, by Actor, sealed *bundle.Sealed, file string, refusal error) (CaseID, error) {
	head, why := sealed.Head(), asProblem(refusal)
	digest := head.Digest()
	state, isCase := refusalState(refusal)
	claims, err := sealed.Claims()
	if err != nil || !isCase {
		return t.refuseFile(ctx, by, digest, file, why)
	}
	r, err := t.refusedRow(ctx, digest, state)
	if err != nil {
		return 0, err
	}
	switch {
	case r == nil:
		c := claimed{channel: claims.Channel, epoch: claims.Epoch, serial: claims.Serial, size: claims.Totals.Bytes, artifacts: len(claims.Artifacts)}
		if r, err = t.insertCase(ctx, by, digest, c, file, state, why); err != nil {
			return 0, err
		}
	case r.State == state && r.decision == nil:
		text, err := jsonText(why)
		if err != nil {
			return 0, err
		}
		if err := t.change(ctx, caseSubject(r.ID)); err != nil {
			return 0, err
		}
		if _, err := t.ExecContext(ctx, `UPDATE cases SET refusals = refusals + 1, problem = ? WHERE id = ?`, text, r.ID); err != nil {
			return 0, err
		}
	}
	return r.ID, t.log(ctx, leaf{Actor: by.Name(), Type: "case.refused", Outcome: outcomeRefused, Case: r.ID, Bundle: r.label(), Detail: file + ": " + why.What, Data: why})
}

// refuseFile records the refusal of a file that makes no case: with the case
// that a torn volume belongs to, if there is one; it stays as it is.
func (t *tx) refuseFile(ctx context.Context, by Actor, digest bundle.Digest, file string, why *Problem) (CaseID, error) {
	r, err := liveRow(ctx, t, digest)
	switch {
	case err != nil:
		return 0, err
	case r != nil && why.Code == codeVolumeDamaged:
		return r.ID, t.log(ctx, damageLeaf(by, r, file, why))
	}
	return 0, t.log(ctx, leaf{Actor: by.Name(), Type: "bundle.refused", Outcome: outcomeRefused, Detail: file + ": " + why.What, Data: why})
}

// refusedRow finds the case that a refusal belongs to.
func (t *tx) refusedRow(ctx context.Context, digest bundle.Digest, state State) (*row, error) {
	if state != NotGenuine {
		return liveRow(ctx, t, digest)
	}
	rows, err := rowsOf(ctx, t, scanRow, `SELECT `+rowColumns+` FROM cases WHERE manifest = ? AND state = ? LIMIT 1`, digest.String(), state)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// refusalState is where a refused head ends, and whether it is a case at all.
func refusalState(refusal error) (State, bool) {
	var untrusted *signing.UntrustedError
	var signed *signing.Error
	if errors.As(refusal, &untrusted) || errors.As(refusal, &signed) {
		return NotGenuine, true
	}
	switch code := asProblem(refusal).Code; {
	case code == "freshness/expired":
		return Expired, true
	case strings.HasPrefix(code, "freshness/"), strings.HasPrefix(code, "audience/"), strings.HasPrefix(code, "bundle/"):
		return Blocked, true
	}
	return "", false
}
