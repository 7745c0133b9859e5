package gate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

// What lies on the media of the ways.
const (
	mediumWhole   = "whole.tar"
	mediumDamaged = "damaged.tar"
	trustRoot     = "root.json"
	trustList     = "list.json"
	trustNext     = "next.json"
)

// way is what people do with a new gate. It can be begun anew at any time, by
// a process that knows nothing of the one before: what is done already it does
// not do again.
type way struct {
	walk      func(walker) error
	failsOnce bool     // it has a second destination, which fails at first
	from      string   // the first of the points at which it is killed
	until     string   // the last
	passes    []string // points
	tells     map[string]int
	check     func(*testing.T, *lab)
}

func ways() map[string]way {
	return map[string]way{
		"good": {
			walk: walker.good, from: "trust.init:before", until: "loaded:after",
			passes: []string{"trust.init:after", "admit:after", "copy:before", "verified:after", "inspected:after", "decided:after", "decide:after",
				"load-begin:after", "put:after", "publish:before", "published:after", "read-back:after", "loaded:after"},
			tells: map[string]int{"trust.init": 1, "case.received": 1, "case.verified": 1, "case.inspected": 1, "case.judged": 1, "case.approved": 1, "case.loaded": 1},
			check: func(t *testing.T, l *lab) { isLoaded(t, l, 1); decidedAs(t, l, "approve, counts") },
		},
		"a damaged medium first": {
			walk: walker.damagedFirst, from: "copy:before", until: "verified:after",
			passes: []string{"damaged:before", "damaged:after", "verified:after", "loaded:after"},
			tells:  map[string]int{"case.received": 2, "case.damaged": 1, "case.verified": 1, "case.approved": 1, "case.loaded": 1},
			check:  func(t *testing.T, l *lab) { isLoaded(t, l, 1); decidedAs(t, l, "approve, counts") },
		},
		"a destination fails once": {
			walk: walker.loadedAtSecond, failsOnce: true, from: "load-begin:after", until: "loaded:after",
			passes: []string{"load-failed:before", "load-failed:after", "loaded:after"},
			tells:  map[string]int{"load.intent": 2, "load.failed": 1, "case.approved": 1, "case.loaded": 1},
			check:  func(t *testing.T, l *lab) { isLoaded(t, l, 2); decidedAs(t, l, "approve, counts") },
		},
		"trust changes after the approval": {
			walk: walker.trustChanges, from: "trust.update:before", until: "load-begin:before",
			passes: []string{"trust.update:after", "decided-again:before", "decided-again:after", "loaded:after"},
			tells:  map[string]int{"trust.updated": 1, "case.judged": 2, "case.approved": 2, "case.loaded": 1},
			check: func(t *testing.T, l *lab) {
				isLoaded(t, l, 1)
				decidedAs(t, l, "approve, void", "approve, counts")
				hasTrust(t, l, 2)
			},
		},
		"rejected": {
			walk: walker.rejected, from: "decide:before", until: "decide:after",
			passes: []string{"decide:after"},
			tells:  map[string]int{"case.received": 1, "case.approved": 1, "case.rejected": 1, "load.intent": 0},
			check:  func(t *testing.T, l *lab) { isRejected(t, l); decidedAs(t, l, "reject, counts") },
		},
		"people and trust": {
			walk: walker.people, from: "account.add:before", until: "trust.update:after",
			passes: []string{"account.add:after", "session.start:after", "account.password:after", "session.end:after", "trust.update:after"},
			tells:  map[string]int{"trust.init": 1, "account.added": 1, "account.password": 1, "trust.updated": 1},
			check:  func(t *testing.T, l *lab) { hasPeople(t, l); hasTrust(t, l, 2) },
		},
	}
}

// walker goes a way.
type walker struct {
	ctx   context.Context
	g     *gate.Gate
	media string
}

func (w walker) file(name string) string { return filepath.Join(w.media, name) }

func (w walker) initTrust() error {
	root, err := os.ReadFile(w.file(trustRoot))
	if err != nil {
		return err
	}
	list, err := os.ReadFile(w.file(trustList))
	if err != nil {
		return err
	}
	_, err = w.g.InitTrust(w.ctx, gate.Console("root"), root, list)
	return err
}

func (w walker) updateTrust() error {
	list, err := os.ReadFile(w.file(trustNext))
	if err != nil {
		return err
	}
	_, err = w.g.UpdateTrust(w.ctx, gate.Console("root"), list)
	return err
}

func (w walker) receive() (*gate.Case, error) {
	return w.g.Receive(w.ctx, operator, w.file(mediumWhole), nil)
}

// decide has anna decide about what is on her page.
func (w walker) decide(c *gate.Case, choice gate.Choice) (*gate.Case, error) {
	anna, err := w.g.Authenticate(w.ctx, "test", "anna", []byte(password))
	if err != nil {
		return nil, err
	}
	page, err := w.g.Review(w.ctx, anna, c.ID)
	if err != nil {
		return nil, err
	}
	return w.g.Decide(w.ctx, anna, c.ID, choice, page.Digest, "known")
}

// approved receives the whole medium, and has it approved where that is left
// to do.
func (w walker) approved() (*gate.Case, error) {
	c, err := w.receive()
	if err != nil || c.State != gate.Awaiting {
		return c, err
	}
	return w.decide(c, gate.Approve)
}

// release releases a case, and has its end be the good one.
func (w walker) release(c *gate.Case) error {
	c, err := w.g.Release(w.ctx, operator, c.ID, nil)
	if err != nil {
		return err
	}
	if c.State != gate.Loaded {
		return fmt.Errorf("in the end it is %s", c.State)
	}
	return nil
}

func (w walker) good() error {
	c, err := w.approved()
	if err != nil {
		return err
	}
	return w.release(c)
}

// damagedFirst brings a medium that does not hold what was signed, and a whole
// one when the case says so.
func (w walker) damagedFirst() error {
	cases, err := w.g.Cases(w.ctx, operator)
	if err != nil {
		return err
	}
	if len(cases) > 0 {
		c, err := w.g.Case(w.ctx, operator, cases[0].ID)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(c.History, func(e gate.Event) bool { return e.Type == "case.damaged" }) {
			return w.good()
		}
	}
	if c, err := w.g.Receive(w.ctx, operator, w.file(mediumDamaged), nil); problem.CodeOf(err) != "volume/damaged" || c.State != gate.Damaged {
		return fmt.Errorf("a damaged medium: %+v, %w", c, errors.Join(err, errors.New("not the end that was meant")))
	}
	return w.good()
}

// loadedAtSecond releases again after a failure.
func (w walker) loadedAtSecond() error {
	c, err := w.approved()
	if err != nil {
		return err
	}
	err = w.release(c)
	if !errors.Is(err, errFailsOnce) {
		return err
	}
	if c, err = w.g.Case(w.ctx, operator, c.ID); err != nil || c.State != gate.PartlyLoaded {
		return fmt.Errorf("after the failure: %+v, %w", c, err)
	}
	return w.release(c)
}

// trustChanges brings a list of revocations between approval and release: the
// approval is void, and a second one is needed.
func (w walker) trustChanges() error {
	c, err := w.approved()
	if err != nil {
		return err
	}
	if err := w.updateTrust(); err != nil {
		return err
	}
	if err = w.release(c); problem.CodeOf(err) != "case/changed" {
		return err
	}
	return w.good()
}

// rejected approves first, and thinks better of it.
func (w walker) rejected() error {
	c, err := w.approved()
	if err == nil && c.State == gate.Approved {
		c, err = w.decide(c, gate.Reject)
	}
	if c == nil || c.State != gate.Rejected {
		return fmt.Errorf("it is not rejected: %+v, %w", c, err)
	}
	if _, err := w.g.Release(w.ctx, operator, c.ID, nil); problem.CodeOf(err) != "case/rejected" {
		return fmt.Errorf("released: %w", err)
	}
	if _, err := w.receive(); problem.CodeOf(err) != "case/rejected" {
		return fmt.Errorf("received again: %w", err)
	}
	return nil
}

const newPassword = "another one, longer"

// people makes an account, changes its password under a session of it, and
// brings new trust.
func (w walker) people() error {
	root := gate.Console("root")
	if err := w.g.AddUser(w.ctx, root, "berta", []gate.Role{gate.RoleReviewer}, []byte(password)); err != nil && problem.CodeOf(err) != "account/exists" {
		return err
	}
	if berta, err := w.g.Authenticate(w.ctx, "test", "berta", []byte(password)); err == nil {
		if err := w.newPassword(berta); err != nil {
			return err
		}
	}
	berta, err := w.g.Authenticate(w.ctx, "test", "berta", []byte(newPassword))
	if err != nil {
		return fmt.Errorf("neither the old password nor the new one: %w", err)
	}
	token, err := w.g.StartSession(w.ctx, berta)
	if err != nil {
		return err
	}
	if a, err := w.g.Session(w.ctx, token); err != nil || a.Name() != "berta" {
		return fmt.Errorf("the session of %q: %w", a.Name(), err)
	}
	if err := w.g.EndSession(w.ctx, token); err != nil {
		return err
	}
	return w.updateTrust()
}

// newPassword changes the own password, which ends the session.
func (w walker) newPassword(a gate.Actor) error {
	token, err := w.g.StartSession(w.ctx, a)
	if err != nil {
		return err
	}
	if err := w.g.SetPassword(w.ctx, a, a.Name(), []byte(newPassword)); err != nil {
		return err
	}
	if _, err := w.g.Session(w.ctx, token); problem.CodeOf(err) != "login/needed" {
		return fmt.Errorf("a session from before the new password: %w", err)
	}
	return nil
}

// failsOnce is a shelf whose first Put fails, in whatever process; a file says
// that it has.
type failsOnce struct {
	*shelf
	mark string
}

var errFailsOnce = errors.New("the second destination is not there")

func (s failsOnce) Put(ctx context.Context, r *gate.Release, a bundle.Artifact) (gate.Receipt, error) {
	f, err := os.OpenFile(s.mark, os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return s.shelf.Put(ctx, r, a)
	}
	return gate.Receipt{}, errors.Join(errFailsOnce, err, f.Close())
}

// isLoaded makes sure that the only case is loaded, at so many destinations.
func isLoaded(t *testing.T, l *lab, destinations int) {
	t.Helper()
	c := onlyCase(t, l)
	if c.State != gate.Loaded || len(c.Loads) != destinations {
		t.Errorf("%s, %+v", c.State, c.Loads)
	}
	for _, load := range c.Loads {
		if load.State != gate.LoadVerified {
			t.Errorf("%+v", load)
		}
	}
	if _, err := l.gate.Depot().Tag(t.Context(), "notes", "1.0"); err != nil {
		t.Errorf("the depot: %v", err)
	}
}

func isRejected(t *testing.T, l *lab) {
	t.Helper()
	if c := onlyCase(t, l); c.State != gate.Rejected || len(c.Loads) > 0 || len(l.sink.put) > 0 {
		t.Errorf("%s, %+v, %v", c.State, c.Loads, l.sink.put)
	}
	if _, err := l.gate.Depot().Tag(t.Context(), "notes", "1.0"); problem.CodeOf(err) != "depot/not-found" {
		t.Errorf("the depot: %v", err)
	}
}

func onlyCase(t *testing.T, l *lab) *gate.Case {
	t.Helper()
	cases, err := l.gate.Cases(t.Context(), operator)
	if err != nil || len(cases) != 1 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	c, err := l.gate.Case(t.Context(), operator, cases[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// decidedAs makes sure that exactly these decisions are there, all of them
// anna's.
func decidedAs(t *testing.T, l *lab, want ...string) {
	t.Helper()
	var got []string
	for _, d := range mustReview(l, 1).Decisions {
		counts := "void"
		if d.Counts {
			counts = "counts"
		}
		got = append(got, fmt.Sprintf("%s, %s", d.Choice, counts))
		if d.Actor != "anna" || d.Reason != "known" {
			t.Errorf("%+v", d)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("decisions (-want +got)\n%s", d)
	}
}

func hasTrust(t *testing.T, l *lab, list int) {
	t.Helper()
	status, err := l.gate.TrustStatus(t.Context(), operator)
	if err != nil || status.RootVersion != 1 || status.RevocationsVersion != list {
		t.Errorf("%+v, %v", status, err)
	}
}

// hasPeople makes sure that both accounts are there, and that of two passwords
// only the new one opens.
func hasPeople(t *testing.T, l *lab) {
	t.Helper()
	users, err := l.gate.Users(t.Context(), gate.Console("root"))
	if err != nil || len(users) != 2 || users[0].Name != "anna" || users[1].Name != "berta" || !slices.Equal(users[1].Roles, []gate.Role{gate.RoleReviewer}) {
		t.Errorf("%+v, %v", users, err)
	}
	if _, err := l.gate.Authenticate(t.Context(), "test", "berta", []byte(newPassword)); err != nil {
		t.Errorf("the new password: %v", err)
	}
	if _, err := l.gate.Authenticate(t.Context(), "test", "berta", []byte(password)); problem.CodeOf(err) != "login/failed" {
		t.Errorf("the old password: %v", err)
	}
	l.anna()
}
