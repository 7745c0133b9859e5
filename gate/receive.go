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
	"github.com/packhof/packhof/internal/problem"
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
