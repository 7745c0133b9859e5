package gate

import (
	"context"
	"errors"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// Release lets a bundle through: it checks everything again, has each
// destination plan, then put the content of all artifacts, then publish their
// names, and checks them there. What was interrupted, it goes on with; a
// failure leaves the names at that destination as they were.
func (g *Gate) Release(ctx context.Context, by Actor, id CaseID, observe func(Progress)) (*Case, error) {
	if err := by.needs(MayRelease); err != nil {
		return nil, err
	}
	free, ok := g.busy.take("release")
	if !ok {
		return nil, problem.New("case/busy", "another release is under way").Hint("wait for it to end")
	}
	defer free()
	if err := g.release(ctx, by, id, observe); err != nil {
		return g.caseBeside(ctx, by, id, err)
	}
	return g.Case(ctx, by, id)
}

func (g *Gate) release(ctx context.Context, by Actor, id CaseID, observe func(Progress)) error {
	r, err := rowOf(ctx, g.db.read, id)
	if err != nil {
		return err
	}
	// What the review says is enough to be checked again: whether it is what the
	// configuration says now is a part of that.
	if ready, why := g.ready(ctx, g.db.read, r, r.Needed); !ready || r.State == Loaded {
		return why
	}
	if _, _, err := g.checkLog(ctx); err != nil {
		return err
	}
	s, err := g.recheck(ctx, by, r)
	if err != nil {
		return err
	}
	if err := g.begin(ctx, by, r); err != nil {
		return err
	}
	for i := range g.destinations {
		if err := g.loadTo(ctx, by, r, s, &g.destinations[i], observe); err != nil {
			return g.destinationFailed(ctx, by, r, &g.destinations[i], s.bundle, err)
		}
	}
	return g.finish(ctx, by, r, s.bundle)
}

// begin writes down what is about to happen, before any byte leaves.
func (g *Gate) begin(ctx context.Context, by Actor, r *row) error {
	return g.step(ctx, "load-begin", func(t *tx) error {
		if good, why := g.stillGood(ctx, t, r.ID); !good {
			return why
		}
		if err := t.move(ctx, r, Loading, nil); err != nil {
			return err
		}
		var names []string
		for _, d := range g.destinations {
			names = append(names, d.Name)
		}
		return t.log(ctx, leaf{Actor: by.Name(), Type: "load.intent", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: said("to {destinations}", "destinations", strings.Join(names, ", "))})
	})
}

// loadTo brings a case to one destination.
func (g *Gate) loadTo(ctx context.Context, by Actor, r *row, s *statement, d *Destination, observe func(Progress)) error {
	release, err := g.releaseFor(ctx, g.db.read, r, s.bundle, d)
	if err != nil || len(release.artifacts) == 0 {
		return err
	}
	release.proven = &s.proven
	if err := g.nothingInTheWay(ctx, d, release); err != nil {
		return err
	}
	if err := g.putAll(ctx, by, r, d, release, observe); err != nil {
		return err
	}
	if good, why := g.stillGood(ctx, g.db.read, r.ID); !good {
		return why
	}
	if err := g.fault("publish:before"); err != nil {
		return err
	}
	if err := d.Sink.Publish(ctx, release, release.Names()); err != nil {
		return err
	}
	if err := g.fault("publish:after"); err != nil {
		return err
	}
	if err := g.recordNames(ctx, by, r, d, release); err != nil {
		return err
	}
	return g.verifyAll(ctx, by, r, d, release)
}

func (g *Gate) putAll(ctx context.Context, by Actor, r *row, d *Destination, release *Release, observe func(Progress)) error {
	var total int64
	for _, a := range release.artifacts {
		total += a.Size
	}
	advance := observer(observe, r.ID, "load "+d.Name, total)
	for i, a := range release.artifacts {
		if err := g.fault("put:before"); err != nil {
			return err
		}
		receipt, err := d.Sink.Put(ctx, release, a)
		if err != nil {
			return err
		}
		if err := g.recordPut(ctx, by, r, d, release.names[i], release.places[i], receipt); err != nil {
			return err
		}
		if advance != nil {
			advance(a.Size)
		}
	}
	return nil
}

func (g *Gate) recordPut(ctx context.Context, by Actor, r *row, d *Destination, name Name, place int, receipt Receipt) error {
	return g.step(ctx, "put", func(t *tx) error {
		text, err := jsonText(&receipt)
		if err != nil {
			return err
		}
		if err := t.changeShown(ctx, r.ID, d, place); err != nil {
			return err
		}
		if _, err := t.ExecContext(ctx, `INSERT INTO load (case_id, destination, artifact, digest, repository, tag, state, receipt) VALUES (?, ?, ?, ?, ?, ?, 'put', ?)
			ON CONFLICT DO UPDATE SET receipt = excluded.receipt, digest = excluded.digest, repository = excluded.repository, tag = excluded.tag`,
			r.ID, d.Name, place, name.Digest.String(), name.Repository, name.Tag, text); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: by.Name(), Type: "load.put", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: said("{destination}: {location}", "destination", d.Name, "location", receipt.Location),
			Data: putSaid{Receipt: receipt, Artifact: &place, Digest: &name.Digest, Repository: name.Repository, Tag: name.Tag}})
	})
}

// changeShown announces a change of a load whose name is published; content
// alone is put as often as a release goes on.
func (t *tx) changeShown(ctx context.Context, id CaseID, d *Destination, place int) error {
	shown, err := exists(ctx, t, `SELECT 1 FROM load WHERE case_id = ? AND destination = ? AND artifact = ? AND state <> 'put'`, id, d.Name, place)
	if err != nil || !shown {
		return err
	}
	return t.change(ctx, caseSubject(id))
}

// recordNames is the step in which names become the gate's own knowledge; for
// the depot it is the publication itself.
func (g *Gate) recordNames(ctx context.Context, by Actor, r *row, d *Destination, release *Release) error {
	return g.step(ctx, "published", func(t *tx) error {
		if err := t.change(ctx, namesSubject(d.Name)); err != nil {
			return err
		}
		for i, name := range release.names {
			if err := t.setName(ctx, r, d.Name, name, release.artifacts[i]); err != nil {
				return err
			}
			if d.Name == DepotName {
				if err := t.showInDepot(ctx, r.ID, name.Repository, release.artifacts[i], release.Document); err != nil {
					return err
				}
			}
		}
		if err := t.markLoads(ctx, r, d, release, LoadPublished); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: by.Name(), Type: "load.published", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: counted(len(release.names), "{n} name at {destination}", "{n} names at {destination}", "destination", d.Name), Data: release.names})
	})
}

func (t *tx) markLoads(ctx context.Context, r *row, d *Destination, release *Release, state string) error {
	if err := t.change(ctx, caseSubject(r.ID)); err != nil {
		return err
	}
	for _, place := range release.places {
		if _, err := t.ExecContext(ctx, `UPDATE load SET state = ? WHERE case_id = ? AND destination = ? AND artifact = ?`, state, r.ID, d.Name, place); err != nil {
			return err
		}
	}
	return nil
}

// setName writes down what stands under a name from now on. The same content
// under a name of another channel leaves the name with that.
func (t *tx) setName(ctx context.Context, r *row, destination string, n Name, a bundle.Artifact) error {
	before, err := publishedAs(ctx, t, destination, n)
	if err != nil {
		return err
	}
	var replaced string
	switch {
	case before == nil:
	case before.digest == n.Digest && before.channel != r.Channel:
		return nil
	case before.caseID == r.ID && before.replaced != nil:
		replaced = before.replaced.String()
	case before.caseID != r.ID:
		replaced = before.digest.String() // it may be the same content: then nothing changed under the name
	}
	_, err = t.ExecContext(ctx, `INSERT INTO name (destination, repository, tag, kind, digest, media_type, size, replaced, case_id, since) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET kind = excluded.kind, digest = excluded.digest, media_type = excluded.media_type, size = excluded.size,
		replaced = excluded.replaced, case_id = excluded.case_id, since = CASE WHEN digest = excluded.digest THEN since ELSE excluded.since END`,
		destination, n.Repository, n.Tag, n.Kind, n.Digest.String(), a.Root.MediaType, a.Size, replaced, r.ID, seconds(t.now))
	return err
}

func (g *Gate) verifyAll(ctx context.Context, by Actor, r *row, d *Destination, release *Release) error {
	for _, a := range release.artifacts {
		if err := d.Sink.Verify(ctx, release, a); err != nil {
			return err
		}
	}
	return g.step(ctx, "read-back", func(t *tx) error {
		if err := t.markLoads(ctx, r, d, release, LoadVerified); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: by.Name(), Type: "load.verified", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: counted(len(release.artifacts), "{n} artifact at {destination}, checked there", "{n} artifacts at {destination}, checked there", "destination", d.Name)})
	})
}

// destinationFailed records that a destination failed in a release under way, or
// that somebody interrupted
// the release; the next start goes on with the latter. Content that rotted in
// the store is dropped, so that receiving the bundle again brings it back.
func (g *Gate) destinationFailed(ctx context.Context, by Actor, r *row, d *Destination, b *bundle.Bundle, failure error) error {
	dropped, dropErr := g.dropRotten(ctx, b, failure)
	failure = errors.Join(failure, dropErr)
	if ctx.Err() != nil {
		failure = problem.New(codeInterrupted, "the release of case %d was interrupted: %w", r.ID, failure).Hint("packhof-gate release %d", r.ID)
		ctx = context.WithoutCancel(ctx)
	}
	why := asProblem(failure)
	err := g.step(ctx, "load-failed", func(t *tx) error { return t.stopLoading(ctx, by, r, why, d.Name+": "+why.What, dropped) })
	return errors.Join(failure, err)
}

// stopLoading takes a case out of the state loading: what is at a destination
// already stays, and the release can be called for again. Where content was
// lost and nothing is published yet, the bundle has to be received again.
func (t *tx) stopLoading(ctx context.Context, by Actor, r *row, why *Problem, detail string, lost bool) error {
	some, err := exists(ctx, t, `SELECT 1 FROM load WHERE case_id = ?`, r.ID)
	if err != nil {
		return err
	}
	live, err := isLive(ctx, t, r.ID)
	if err != nil {
		return err
	}
	to := Approved
	if some {
		to = PartlyLoaded
	}
	if lost && !live {
		to = Damaged
	}
	if err := t.move(ctx, r, to, why); err != nil {
		return err
	}
	return t.log(ctx, leaf{Actor: by.Name(), Type: "load.failed", Outcome: outcomeFailed, Case: r.ID, Bundle: r.label(), Detail: detail, Data: why})
}

// dropRotten takes rotten blobs of a bundle out of the store, if a failure says
// that there are any.
func (g *Gate) dropRotten(ctx context.Context, b *bundle.Bundle, failure error) (dropped bool, err error) {
	var corrupt *cas.CorruptError
	if !errors.As(failure, &corrupt) {
		return false, nil
	}
	for _, blob := range b.Manifest().Blobs {
		rotten, err := g.store.DropIfRotten(ctx, blob.Digest)
		if err != nil {
			return dropped, err
		}
		dropped = dropped || rotten
	}
	return dropped, nil
}

// codeInterrupted marks a release that somebody, or the end of the process,
// stopped in the middle.
const codeInterrupted = "interrupted"

// finish is the step after which a case is loaded, and the channel holds what
// it brought.
func (g *Gate) finish(ctx context.Context, by Actor, r *row, b *bundle.Bundle) error {
	return g.step(ctx, "loaded", func(t *tx) error {
		if err := t.move(ctx, r, Loaded, nil); err != nil {
			return err
		}
		m := b.Manifest()
		if err := t.hold(ctx, r, m); err != nil {
			return err
		}
		if err := t.excuse(ctx, m, r.ID); err != nil {
			return err
		}
		if m.Kind == bundle.KindControl {
			return t.log(ctx, leaf{Actor: by.Name(), Type: "case.loaded", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: counted(len(m.Documents), "{n} document kept", "{n} documents kept")})
		}
		return t.log(ctx, leaf{Actor: by.Name(), Type: "case.loaded", Outcome: outcomeOK, Case: r.ID, Bundle: r.label(), Said: counted(len(g.destinations), "{n} destination, checked there", "{n} destinations, checked there")})
	})
}

// hold replaces what the channel holds, unless a later serial was loaded
// before, or the bundle is about something else.
func (t *tx) hold(ctx context.Context, r *row, m *bundle.Manifest) error {
	if m.Kind == bundle.KindControl {
		return nil
	}
	if later, err := laterThan(ctx, t, m); err != nil || later != nil {
		return err
	}
	if err := t.change(ctx, channelSubject(m.Channel)); err != nil {
		return err
	}
	if _, err := t.ExecContext(ctx, `DELETE FROM holding WHERE channel = ?`, m.Channel); err != nil {
		return err
	}
	for _, a := range m.Artifacts {
		if _, err := t.ExecContext(ctx, `INSERT INTO holding (channel, kind, name, version, digest, case_id) VALUES (?, ?, ?, ?, ?, ?)`,
			m.Channel, a.Kind, a.Name, a.Version, a.Root.Digest.String(), r.ID); err != nil {
			return err
		}
	}
	return nil
}
