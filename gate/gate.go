package gate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

// Judge has facts judged by the gate's policy. Outside of tests it is a
// bounded child process. What keeps it from an answer is an error, or a
// decision whose verdict is "error"; it is never "allow".
type Judge interface {
	Evaluate(ctx context.Context, in *policy.Input) (*policy.Decision, error)
}

// Options is what a gate is opened with.
type Options struct {
	Dir          string           // data directory, as Init made it
	Clock        func() time.Time // the clock on the wall
	Program      string           // name and version, such as "packhof-gate 1.2.0"
	Destinations []Destination    // loaded in this order
	Approvals    Approvals
	Policy       *policy.Policy
	Judge        Judge

	// Faults, in tests, is called before and after every step, and between reads
	// that belong together, and may stop the gate there.
	Faults func(point string) error
}

// Approvals says how many people have to approve, by verdict.
type Approvals struct {
	Allow  int // 0: what the policy allows needs nobody
	Review int // at least 1
}

// Gate is an opened data directory. It is safe for use by several goroutines;
// one process at a time has it.
type Gate struct {
	id           string
	dir          string
	clock        func() time.Time
	program      string
	destinations []Destination
	approvals    Approvals
	policy       *policy.Policy
	judge        Judge
	faults       func(string) error

	db     *database
	store  *cas.Store
	lock   *os.File
	anchor *anchor
	busy   caseLocks
	login  attempts
	lists  listCache
	newest newestLeaves
	depot  shownDepot
	seen   seenReviews
	begun  begunProofs
	logs   logCheck
}

// Files of the data directory.
const (
	fileDatabase  = "gate.db"
	fileAnchor    = "gate.anchor"
	fileLock      = "gate.lock"
	fileEnrolment = "enrol.json"
	dirStore      = "store"
	dirKeys       = "keys"
	dirTLS        = "tls"

	fileReceiptKey = "receipt.pem" // in dirKeys
	fileLogKey     = "log.pem"
	fileAgeKey     = "identity.txt" // with which encrypted volumes are opened, as age-keygen writes it
)

// BusyError says that another process has the data directory.
type BusyError struct{ Dir, Holder string }

func (e *BusyError) Error() string { return e.Dir + " is in use by another process" }

// Code is the stable code of this error.
func (e *BusyError) Code() string { return "gate/busy" }

// Evidence names the process.
func (e *BusyError) Evidence() []string {
	if e.Holder == "" {
		return nil
	}
	return []string{"process:  " + e.Holder}
}

// Remedy says what to do.
func (e *BusyError) Remedy() string { return "wait for it to end, or stop it" }

// Open opens the data directory and takes its lock: a *BusyError if another
// process has it. A database that is older than its anchor, or another one, it
// refuses. It goes on with nothing by itself; Resume does.
func Open(ctx context.Context, o Options) (_ *Gate, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	enrolment, err := readEnrolment(o.Dir)
	if err != nil {
		return nil, err
	}
	// A gate that lost its rows must not begin anew as if nothing had been.
	if err := hasDatabase(o.Dir); err != nil {
		return nil, err
	}
	lock, err := takeLock(o.Dir)
	if err != nil {
		return nil, err
	}
	g := &Gate{
		id: enrolment.Gate, dir: o.Dir, clock: o.Clock, program: o.Program, destinations: o.Destinations,
		approvals: o.Approvals, policy: o.Policy, judge: o.Judge, faults: o.Faults, lock: lock,
	}
	if g.store, err = cas.OpenStore(filepath.Join(o.Dir, dirStore)); err != nil {
		return nil, errors.Join(err, cas.Unlock(lock))
	}
	if err = g.store.Sweep(); err != nil {
		return nil, errors.Join(err, cas.Unlock(lock))
	}
	if g.anchor, err = newAnchor(o.Dir, enrolment); err != nil {
		return nil, errors.Join(err, cas.Unlock(lock))
	}
	if g.db, err = openDatabase(ctx, filepath.Join(o.Dir, fileDatabase)); err != nil {
		return nil, errors.Join(err, cas.Unlock(lock))
	}
	g.db.stands = g.everythingStands
	if err = g.openHistory(ctx); err == nil {
		err = g.sweepAssemblies(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if err = g.haveRecipient(ctx, enrolment); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// hasDatabase tells a gate that has lost its rows, or all that was in their
// file.
func hasDatabase(dir string) error {
	path := filepath.Join(dir, fileDatabase)
	info, err := os.Stat(path)
	lost := problem.New("gate/no-database", "the gate in %s has lost its database", dir).
		Hint("delete %s-wal and %s-shm, and bring it back from a backup; cases, names and trust are in it", fileDatabase, fileDatabase)
	copied := path + suffixRescued
	if _, err := os.Lstat(copied); err == nil {
		lost = lost.With("copy:     "+copied).Hint("the gate has kept a copy: %s", bringBack(path, copied))
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return lost.With("missing:  " + path)
	case errors.Is(err, syscall.ELOOP):
		return &cas.NotPlainError{Path: path, Found: "a link"}
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() == 0:
		return lost.With("empty:  " + path)
	}
	return nil
}

func (o Options) check() error {
	switch {
	case o.Clock == nil || o.Policy == nil || o.Judge == nil:
		return errors.New("a gate needs a clock, a policy and a judge")
	case o.Approvals.Allow < 0 || o.Approvals.Allow > MaxApprovals || o.Approvals.Review < 1 || o.Approvals.Review > MaxApprovals:
		return problem.New("config/invalid", "approvals: allow is 0 to %d and review 1 to %d, not %d and %d", MaxApprovals, MaxApprovals, o.Approvals.Allow, o.Approvals.Review)
	}
	taken := map[string]bool{}
	for _, d := range o.Destinations {
		if !bundle.ValidChannel(d.Name) || taken[d.Name] {
			return problem.New("config/invalid", "%.60q cannot name a destination, or names two", d.Name).
				Hint("use up to 40 of a-z, 0-9 and inner hyphens, each name once")
		}
		taken[d.Name] = true
		if err := d.Naming.Check(); err != nil {
			return problem.New("config/invalid", "destination %s: %w", d.Name, err)
		}
	}
	return nil
}

// MaxApprovals is how many people a gate can want to approve.
const MaxApprovals = 9

// maxEnrolment is more than any enrol.json has, in bytes.
const maxEnrolment = 64 << 10

func readEnrolment(dir string) (*bundle.Enrolment, error) {
	b, err := cas.ReadPlain(filepath.Join(dir, fileEnrolment), maxEnrolment)
	if errors.Is(err, os.ErrNotExist) {
		return nil, problem.New("gate/none", "%s is no data directory of a gate", dir).
			Hint("make one with  packhof-gate init, or name the right one with --data")
	}
	if err != nil {
		return nil, err
	}
	return bundle.ParseEnrolment(b)
}

// takeLock holds an advisory lock for as long as the process lives, however
// it ends.
func takeLock(dir string) (*os.File, error) {
	f, err := cas.OpenPlain(filepath.Join(dir, fileLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder := make([]byte, 64)
		n, _ := f.ReadAt(holder, 0) // only for the message
		return nil, errors.Join(&BusyError{Dir: dir, Holder: strings.TrimSpace(string(holder[:n]))}, f.Close())
	}
	// Always as many bytes as before: on a full disk there may be no more.
	if _, err := f.WriteAt(fmt.Appendf(nil, "%-20d\n", os.Getpid()), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Look makes sure that the database is the one that this gate has written last:
// otherwise it fails, as every step does from then on.
func (g *Gate) Look(ctx context.Context) error {
	return g.trouble(g.db.alone(ctx, func(*sql.Conn) error { return nil }))
}

// Close gives the data directory back.
func (g *Gate) Close() error { return errors.Join(g.db.close(), cas.Unlock(g.lock)) }

// ID is the gate's id.
func (g *Gate) ID() string { return g.id }

// Program is the name and version that the gate was opened with.
func (g *Gate) Program() string { return g.program }

// Policy is the policy in force.
func (g *Gate) Policy() *policy.Policy { return g.policy }

// EnrolmentFile gives enrol.json, which the connected side needs.
func (g *Gate) EnrolmentFile() ([]byte, error) {
	return cas.ReadPlain(filepath.Join(g.dir, fileEnrolment), maxEnrolment)
}

// caseLocks lets one goroutine at a time work on a thing.
type caseLocks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when it is released
}

// take holds a name until release is called, or says that it is held.
func (l *caseLocks) take(name string) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] != nil {
		return nil, false
	}
	if l.held == nil {
		l.held = map[string]chan struct{}{}
	}
	done := make(chan struct{})
	l.held[name] = done
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, name)
		close(done)
	}, true
}

// await is take for somebody who gives whoever holds the name a moment to end,
// as somebody does whose client has just gone away.
func (l *caseLocks) await(ctx context.Context, name string, most time.Duration) (release func(), ok bool) {
	patience := time.NewTimer(most)
	defer patience.Stop()
	for {
		if release, ok := l.take(name); ok {
			return release, true
		}
		l.mu.Lock()
		done := l.held[name]
		l.mu.Unlock()
		if done == nil {
			continue // it was released between the two
		}
		select {
		case <-done:
		case <-patience.C:
			return nil, false
		case <-ctx.Done():
			return nil, false
		}
	}
}

// Progress is how far something is that takes its time.
type Progress struct {
	Case  CaseID `json:"case"`
	Phase string `json:"phase"` // copy, inspect, judge, or load and the destination
	Done  int64  `json:"done"`  // bytes
	Total int64  `json:"total"`
}

// observer reports progress of one phase; nil reports to nobody.
func observer(observe func(Progress), id CaseID, phase string, total int64) func(int64) {
	if observe == nil {
		return nil
	}
	observe(Progress{Case: id, Phase: phase, Total: total})
	return lateObserver(observe, id, phase, total)
}

// lateObserver is observer for a phase that there may not be.
func lateObserver(observe func(Progress), id CaseID, phase string, total int64) func(int64) {
	if observe == nil {
		return nil
	}
	var mu sync.Mutex
	var done int64
	return func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		done += n
		observe(Progress{Case: id, Phase: phase, Done: done, Total: total})
	}
}
