package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

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

// noteCopied records that a volume was copied, and what is lacking then; after the
// last one the content is verified.
func (t *tx) noteCopied(ctx context.Context, by Actor, r *row, b *bundle.Bundle, lacks []bundle.Piece) error {
	m := b.Manifest()
	if len(lacks) > 0 {
		detail := counted(len(b.Volumes()), "volume {volumes}: {bytes} bytes are lacking", "volumes {volumes}: {bytes} bytes are lacking", "volumes", volumesText(b), "bytes", bytesOf(lacks))
		return t.log(ctx, leaf{Actor: by.Name(), Type: "case.volume", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: detail, Data: lackingOf(b, lacks)})
	}
	if len(b.Volumes()) > 0 && !isAlone(b) { // after a crash nobody knows which it was
		detail := counted(len(b.Volumes()), "volume {volumes}: nothing is lacking any more", "volumes {volumes}: nothing is lacking any more", "volumes", volumesText(b))
		if err := t.log(ctx, leaf{Actor: by.Name(), Type: "case.volume", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: detail}); err != nil {
			return err
		}
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
