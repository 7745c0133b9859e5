package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// Receive takes the bundle in the file at path in, as far as it gets without
// people: judges its head, copies its content into quarantine, looks into it
// and has the policy decide. What was interrupted, it goes on with; what it has
// seen already, it does not do twice. The medium is only read. Other cases that
// waited for what it brought go on as well.
//
// A refusal is an error with evidence and, where somebody has to see it, a case
// that says so; the case is then returned beside the error.
func (g *Gate) Receive(ctx context.Context, by Actor, path string, observe func(Progress)) (c *Case, err error) {
	if err := by.needs(MayReceive); err != nil {
		return nil, err
	}
	sealed, err := g.openVolume(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sealed.Close()) }()
	head := sealed.Head()
	release, ok := g.busy.await(ctx, manifestLock(head.Digest()), patience)
	switch {
	case !ok && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !ok:
		return nil, problem.New("case/busy", "this bundle is being received already").With("manifest:  " + head.Digest().String()).
			Hint("wait for it to end, then receive again: what came stays")
	}
	defer release()
	if err := g.sweepAssemblies(ctx); err != nil {
		return nil, err
	}
	file := fileName(path)
	id, b, err := g.admit(ctx, by, sealed, file)
	if err != nil {
		return g.caseBeside(ctx, by, id, err)
	}
	copied, lacks, err := g.bringContent(ctx, by, id, b, file, observe)
	if err != nil {
		return g.caseBeside(ctx, by, id, unreadable(err, path))
	}
	if copied {
		defer g.goOnWithOthers(ctx, id, observe) // whatever the policy says of this one
	}
	if err := g.advance(ctx, by, id, observe); err != nil {
		return g.caseBeside(ctx, by, id, err)
	}
	c, err = g.Case(ctx, by, id)
	if err == nil {
		c.Lacks, c.Waiting = lackingOf(b, lacks), c.State == Received
		c.Known, c.KnownVolume = !copied && c.Lacks == nil, !copied && c.Lacks != nil
	}
	return c, err
}

// patience is how long a receive waits for another one of the same bundle, which
// may be about to end because its client went away.
const patience = 3 * time.Second

// manifestLock is the name under which one bundle is worked on.
func manifestLock(manifest bundle.Digest) string { return "manifest " + manifest.String() }

// holds tells whether somebody has taken a name.
func (l *caseLocks) holds(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[name] != nil
}

// openVolume opens the one volume at path, with the signatures that lie beside
// it.
func (g *Gate) openVolume(path string) (*bundle.Sealed, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, problem.New("volume/not-a-file", "%s is not a file", path).Hint("name the volumes in it")
	}
	found, err := Opener(g.dir).Find(path)
	if err != nil {
		return nil, err
	}
	return found.Bundles[0], nil
}

// unreadable tells a medium that gives errors from a disk of the gate that does.
func unreadable(err error, medium string) error {
	var failed *fs.PathError
	if !errors.As(err, &failed) || failed.Path != medium {
		return err
	}
	return problem.New("receive/unreadable", "%s cannot be read: %w", fileName(medium), failed.Err).
		With("file:  " + fileName(medium)).Hint("try again; else copy the file from its original again")
}

// lackingOf says what a bundle still waits for.
func lackingOf(b *bundle.Bundle, lacks []bundle.Piece) *Lacking {
	if len(lacks) == 0 {
		return nil
	}
	l := &Lacking{Volumes: b.Needed(lacks)}
	for _, p := range lacks {
		l.Bytes += p.Length
	}
	for _, v := range b.Volumes() {
		l.Of = v.Count
	}
	return l
}

// fileName is the name of a file on a medium as it may stand in a row: the
// medium is not ours, and its names may hold anything.
func fileName(path string) string {
	name := strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsGraphic(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(filepath.Base(path), "?"))
	return name[:min(len(name), 255)]
}

// caseBeside gives the case together with the error, where there is one.
func (g *Gate) caseBeside(ctx context.Context, by Actor, id CaseID, err error) (*Case, error) {
	if id == 0 {
		return nil, err
	}
	c, readErr := g.Case(context.WithoutCancel(ctx), by, id)
	switch {
	case readErr == nil:
		c.Waiting = c.State == Received // whoever brings more of it is done here
		return c, err
	case asProblem(readErr).Code == asProblem(err).Code:
		return nil, err // once is enough to say so
	}
	// What cannot be shown must not take the place of what went wrong.
	return nil, fmt.Errorf("%w (and the case cannot be shown: %v)", err, readErr)
}

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
	if err != nil && strings.HasPrefix(asProblem(err).Code, "freshness/") { // what cannot be read refuses no bundle
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

// bringContent copies what is not here yet. That may be something of a case
// that is far beyond that: its disk lost it. Where nothing of what is lacking
// is in this volume, copied is false and its content is not read. lacks is what
// other volumes have to bring, which may be what was here and has rotted; as
// long as there is any, the case waits.
func (g *Gate) bringContent(ctx context.Context, by Actor, id CaseID, b *bundle.Bundle, file string, observe func(Progress)) (copied bool, lacks []bundle.Piece, err error) {
	r, err := rowOf(ctx, g.db.read, id)
	if err != nil {
		return false, nil, err
	}
	if lacks, err = b.StoreLacks(g.store); err != nil {
		return false, nil, err
	}
	if len(lacks) == 0 && r.State != Received || len(lacks) > 0 && !b.Brings(lacks) {
		return false, lacks, nil
	}
	if err := g.checkSpace(bytesOf(lacks)); err != nil {
		return false, nil, err
	}
	m := b.Manifest()
	if err := g.fault("copy:before"); err != nil {
		return false, nil, err
	}
	if err := b.CopyTo(ctx, g.store, bundle.CopyOptions{
		Observe: observer(observe, id, "copy", m.Totals.Bytes-bytesOf(b.Lacks())), Proving: lateObserver(observe, id, "prove", m.Totals.Bytes), Known: g.begun.begin(b.Digest(), g.store),
	}); err != nil {
		return false, nil, g.copyFailed(ctx, by, r, b, file, err)
	}
	if lacks, err = b.StoreLacks(g.store); err != nil {
		return true, nil, err
	}
	if len(lacks) == 0 {
		g.begun.end(b.Digest())
	}
	return true, lacks, g.step(ctx, "verified", func(t *tx) error { return t.noteCopied(ctx, by, r, b, lacks) })
}

// noteCopied records that a volume was copied, and what is lacking then: the last
// one makes the content verified.
func (t *tx) noteCopied(ctx context.Context, by Actor, r *row, b *bundle.Bundle, lacks []bundle.Piece) error {
	m := b.Manifest()
	if len(lacks) > 0 {
		detail := counted(len(b.Volumes()), "volume {volumes}: {bytes} bytes are lacking", "volumes {volumes}: {bytes} bytes are lacking", "volumes", volumesText(b), "bytes", bytesOf(lacks))
		return t.log(ctx, leaf{Actor: by.Name(), Type: "case.volume", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: detail, Data: lackingOf(b, lacks)})
	}
	if r.State == Received {
		if err := t.move(ctx, r, Verified, nil); err != nil {
			return err
		}
	}
	return t.log(ctx, leaf{Actor: by.Name(), Type: "case.verified", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: counted(m.Totals.Files, "{n} blob, {bytes} bytes", "{n} blobs, {bytes} bytes", "bytes", m.Totals.Bytes)})
}

// volumesText names volumes: number, how many there are, and their set.
func volumesText(b *bundle.Bundle) string {
	var parts []string
	for _, v := range b.Volumes() {
		parts = append(parts, fmt.Sprintf("%d/%d (%s)", v.Number, v.Count, v.Set.Short()))
	}
	return strings.Join(parts, ", ")
}

func bytesOf(pieces []bundle.Piece) (bytes int64) {
	for _, p := range pieces {
		bytes += p.Length
	}
	return bytes
}

// copyFailed tells a medium that holds wrong bytes from a copy that could not
// go on, which is just an error. Wrong bytes are a state of the case only where
// all of the bundle was to come in this one volume: one of several costs only
// itself.
func (g *Gate) copyFailed(ctx context.Context, by Actor, r *row, b *bundle.Bundle, file string, failure error) error {
	if !isDamage(failure, asProblem(failure).Code) {
		return failure
	}
	failure = namingFile(failure, file)
	why := asProblem(failure)
	err := g.step(ctx, "damaged", func(t *tx) error {
		if r.State == Received && isAlone(b) {
			if err := t.move(ctx, r, Damaged, why); err != nil {
				return err
			}
		}
		if why.Code == codePiecesWrong {
			return t.log(ctx, piecesLeaf(by, r, why))
		}
		return t.log(ctx, damageLeaf(by, r, file, why))
	})
	return errors.Join(failure, err)
}

// piecesLeaf accuses no file: nothing tells which volume brought what is wrong.
func piecesLeaf(by Actor, r *row, why *Problem) leaf {
	return leaf{Actor: by.Name(), Type: "case.damaged", Outcome: outcomeFailed, Case: r.ID, Bundle: r.label(), Said: said("what several volumes brought of a blob does not make it"), Data: why}
}

func damageLeaf(by Actor, r *row, file string, why *Problem) leaf {
	return leaf{Actor: by.Name(), Type: "case.damaged", Outcome: outcomeFailed, Case: r.ID, Bundle: r.label(), Said: said("{file} is damaged", "file", file), Data: why}
}

// isAlone tells whether all of a bundle is to come in one volume.
func isAlone(b *bundle.Bundle) bool {
	volumes := b.Volumes()
	return len(volumes) == 1 && volumes[0].Complete && volumes[0].Count == 1
}

const (
	codeVolumeDamaged = "volume/damaged"
	codePiecesWrong   = "volume/pieces-wrong"
)

// namingFile makes damage name its file in the evidence, which every language
// shows.
func namingFile(err error, file string) error {
	if err == nil {
		return nil
	}
	why := asProblem(err)
	if why.Code != codeVolumeDamaged {
		return err
	}
	why.Evidence = append([]string{"file:  " + file}, why.Evidence...)
	return why.Err()
}

func isDamage(err error, code string) bool {
	var damaged *bundle.DamagedError
	var corrupt *cas.CorruptError
	return errors.As(err, &damaged) || errors.As(err, &corrupt) ||
		code == codeVolumeDamaged || code == codePiecesWrong || strings.HasPrefix(code, "bundle/") || strings.HasPrefix(code, "oci/") || strings.HasPrefix(code, "format/")
}

// checkSpace refuses before the first byte what cannot fit.
func (g *Gate) checkSpace(need int64) error {
	free, err := bundle.FreeSpace(g.store.Dir())
	if err != nil || free >= need {
		return err
	}
	return problem.New("gate/full", "there is not enough space for the bundle in %s", g.store.Dir()).
		With(fmt.Sprintf("needed:  %d bytes", need), fmt.Sprintf("free:    %d bytes", free)).
		Hint("free space, or move the data directory to a larger disk")
}
