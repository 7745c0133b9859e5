package gate_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// keep copies files of the data directory of a gate that is closed.
func (l *lab) keep(names ...string) (putBack func()) {
	l.t.Helper()
	kept := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(l.dir, name))
		if err != nil {
			l.t.Fatal(err)
		}
		kept[name] = b
	}
	return func() {
		l.t.Helper()
		for name, b := range kept {
			if err := os.WriteFile(filepath.Join(l.dir, name), b, 0o600); err != nil {
				l.t.Fatal(err)
			}
		}
	}
}

func (l *lab) close() {
	l.t.Helper()
	if err := l.gate.Close(); err != nil {
		l.t.Fatal(err)
	}
}

// opening tells what opening the gate came to.
func (l *lab) opening() error {
	g, err := gate.Open(l.t.Context(), l.options())
	if err == nil {
		err = g.Close()
	}
	return err
}

func evidenceOf(err error) string {
	var proof interface{ Evidence() []string }
	if errors.As(err, &proof) {
		return strings.Join(proof.Evidence(), "\n")
	}
	return ""
}

func TestAnOlderDatabaseIsRefused(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	l.close()
	older, both := l.keep("gate.db"), l.keep("gate.db", "gate.anchor")
	l.open()
	l.mustReceive(f)
	l.close()
	newer := l.keep("gate.db")
	older()
	err := l.opening()
	if problem.CodeOf(err) != "gate/history-rolled-back" {
		t.Fatalf("the older copy: %v", err)
	}
	if got := evidenceOf(err); !strings.Contains(got, "anchor:    6 entries") || !strings.Contains(got, "database:  2 entries") {
		t.Errorf("evidence:\n%s", got)
	}
	newer()
	if err := l.opening(); err != nil {
		t.Errorf("the newer copy: %v", err)
	}
	both()
	if err := l.opening(); err != nil {
		t.Errorf("a backup of both: %v", err)
	}
}

// TestAnotherHistoryIsRefused puts a database in the place of the gate's that
// began the same and went on in another way.
func TestAnotherHistoryIsRefused(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	l.close()
	beginning := l.keep("gate.db", "gate.anchor")
	l.open()
	l.mustReceive(f)
	l.close()
	other := l.keep("gate.db")
	beginning()
	l.open()
	for _, name := range []string{"berta", "carl"} {
		if err := l.gate.AddUser(t.Context(), gate.Console("root"), name, gate.Roles(), []byte(password)); err != nil {
			t.Fatal(err)
		}
	}
	l.close()
	other()
	if err := l.opening(); problem.CodeOf(err) != "gate/history-differs" {
		t.Errorf("%v", err)
	}
}

func TestAnchorsThatCannotBeUsed(t *testing.T) {
	l, other := newLab(t), newLab(t)
	l.close()
	anchor := filepath.Join(l.dir, "gate.anchor")
	whole, err := os.ReadFile(anchor)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(filepath.Join(other.dir, "gate.anchor"))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"none":              nil,
		"empty":             {},
		"another gate's":    foreign,
		"a size of its own": []byte(strings.Replace(string(whole), "\n1\n", "\n0\n", 1)),
		"cut off":           whole[:len(whole)-10],
		"endless":           append(slices.Clone(whole), make([]byte, 1<<20)...),
	} {
		if err := os.Remove(anchor); err != nil {
			t.Fatal(err)
		}
		if b != nil {
			if err := os.WriteFile(anchor, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.opening(); problem.CodeOf(err) != "gate/no-anchor" {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.WriteFile(anchor, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.opening(); err != nil {
		t.Errorf("its own: %v", err)
	}
}

func TestAnotherKeyOfTheLogIsRefused(t *testing.T) {
	l, other := newLab(t), newLab(t)
	l.close()
	for name, from := range map[string]string{"another gate's": filepath.Join(other.dir, "keys/log.pem"), "of another kind": filepath.Join(l.dir, "keys/receipt.pem"), "no key": filepath.Join(l.dir, "enrol.json")} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(l.dir, "keys/log.pem"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := l.opening(); problem.CodeOf(err) != "gate/log-key" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestACrashBeforeTheAnchor ends a gate between the commit of a step and its
// anchor: the next start brings the anchor up, and from then on what the step
// did cannot be taken back.
func TestACrashBeforeTheAnchor(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.close()
	before := l.keep("gate.db")
	l.open()
	crash := errors.New("the power is gone")
	l.fault = func(point string) error {
		if point == "trust.init:after" {
			return crash
		}
		return nil
	}
	if _, err := l.gate.InitTrust(t.Context(), gate.Console("root"), f.Root.Bytes, f.Revoked.Bytes); !errors.Is(err, crash) {
		t.Fatal(err)
	}
	l.fault = nil
	l.restart()
	if status, err := l.gate.TrustStatus(t.Context(), operator); err != nil || !status.Initialised {
		t.Errorf("%+v, %v", status, err)
	}
	l.close()
	before()
	if err := l.opening(); problem.CodeOf(err) != "gate/history-rolled-back" {
		t.Errorf("%v", err)
	}
}

func openFile(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
}

// edit changes rows behind the gate's back, while it runs.
func (l *lab) edit(statement string) {
	l.t.Helper()
	db, err := openFile(filepath.Join(l.dir, "gate.db"))
	if err != nil {
		l.t.Fatal(err)
	}
	result, err := db.ExecContext(l.t.Context(), statement)
	if err := errors.Join(err, db.Close()); err != nil {
		l.t.Fatal(err)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		l.t.Fatalf("%s: %d rows, %v", statement, n, err)
	}
}

// initTrust gives the gate a root, which it may have already.
func (l *lab) initTrust(f *testkit.Forged) error {
	_, err := l.gate.InitTrust(l.t.Context(), gate.Console("root"), f.Root.Bytes, f.Revoked.Bytes)
	return err
}

// auditLog tells what doctor says of the log and its rows.
func (l *lab) auditLog() gate.Check {
	l.t.Helper()
	checks, err := l.gate.Doctor(l.t.Context(), operator)
	if err != nil {
		l.t.Fatal(err)
	}
	return checks[slices.IndexFunc(checks, func(c gate.Check) bool { return c.Name == "audit log" })]
}

// approvedOnce is a gate with a case that anna has approved, of which tests have
// copies.
type approvedOnce struct {
	lab    *lab
	forged *testkit.Forged
}

func approveOnce(t *testing.T, needs int) approvedOnce {
	l := newLab(t)
	l.needs.Review = needs
	l.restart()
	l.user("berta", gate.RoleReviewer)
	f := l.forge(nil)
	l.trust(f)
	l.approve(l.mustReceive(f).ID)
	l.close()
	return approvedOnce{l, f}
}

func (a approvedOnce) copy(t *testing.T) (*lab, *testkit.Forged) {
	t.Helper()
	l := *a.lab
	l.t, l.dir, l.media, l.sink, l.clock = t, filepath.Join(t.TempDir(), "gate"), t.TempDir(), newShelf(), testkit.NewClock(a.lab.clock.Now())
	if err := os.CopyFS(l.dir, os.DirFS(a.lab.dir)); err != nil {
		t.Fatal(err)
	}
	l.open()
	return &l, a.forged
}

// TestEditedRowsAreNoticed edits one thing that decides, and does what it would
// decide about. Doctor notices all of it.
func TestEditedRowsAreNoticed(t *testing.T) {
	release := func(l *lab, _ *testkit.Forged) error {
		_, err := l.gate.Release(l.t.Context(), operator, 1, nil)
		return err
	}
	approve := func(l *lab, _ *testkit.Forged) error {
		berta, err := l.gate.Authenticate(l.t.Context(), "test", "berta", []byte(password))
		if err != nil {
			return err
		}
		_, err = l.gate.Decide(l.t.Context(), berta, 1, gate.Approve, mustReview(l, 1).Digest, "it is good")
		return err
	}
	next := func(l *lab, f *testkit.Forged) error { _, err := l.receive(l.next(f, 2)); return err }
	login := func(name string) func(*lab, *testkit.Forged) error {
		return func(l *lab, _ *testkit.Forged) error {
			_, err := l.gate.Authenticate(l.t.Context(), "test", name, []byte(password))
			return err
		}
	}
	nothing := func(*lab, *testkit.Forged) error { return nil }
	approved := []approvedOnce{approveOnce(t, 1), approveOnce(t, 2)} // by what is lacking
	const edited, broken = "audit/contradiction", "audit/broken"
	for name, c := range map[string]struct {
		edit string
		do   func(*lab, *testkit.Forged) error
		code string
		lack int // approvals that are still needed
	}{
		"a case is approved":       {`UPDATE cases SET state = 'approved', needed = 0`, release, edited, 1},
		"a verdict":                {`UPDATE cases SET verdict = 'allow', decision = replace(decision, '"verdict":"review"', '"verdict":"allow"')`, approve, edited, 1},
		"an approval":              {`INSERT INTO decision SELECT id, 'carl', 'carl', 'approve', '', review_digest, 0 FROM cases`, release, edited, 1},
		"a rejection taken back":   {`UPDATE decision SET choice = 'reject'`, release, edited, 0},
		"who brought it":           {`UPDATE receiver SET person = 'carl'`, approve, edited, 1},
		"what inspection found":    {`UPDATE cases SET inspection = '{}'`, release, edited, 0},
		"an approver's role":       {`UPDATE account SET roles = 'officer admin operator' WHERE name = 'anna'`, release, edited, 0},
		"roles":                    {`UPDATE account SET roles = 'admin' WHERE name = 'anna'`, login("anna"), edited, 0},
		"a password":               {`UPDATE account SET password = (SELECT password FROM account WHERE name = 'berta') WHERE name = 'anna'`, login("anna"), edited, 0},
		"an account":               {`INSERT INTO account SELECT 'king', roles, password, 0, 0 FROM account WHERE name = 'anna'`, login("king"), edited, 0},
		"the time floor":           {`UPDATE belief SET floor = 1`, next, edited, 0},
		"no trust":                 {`DELETE FROM belief`, func(l *lab, f *testkit.Forged) error { return l.initTrust(f) }, edited, 0},
		"revocations":              {`UPDATE belief SET revocations = NULL, list_version = 0`, next, edited, 0},
		"a place of a channel":     {`UPDATE channel SET serial = 0`, next, edited, 0},
		"a serial":                 {`DELETE FROM serial`, next, edited, 0},
		"an excuse":                {`UPDATE serial SET excused = 7`, release, edited, 0},
		"a seal":                   {`DELETE FROM seal WHERE subject = 'case 1'`, release, edited, 0},
		"no seal of the trust":     {`DELETE FROM seal WHERE subject = 'trust'`, next, edited, 0},
		"an older seal":            {`UPDATE seal SET leaf = leaf - 1 WHERE subject = 'case 1'`, release, edited, 0},
		"a name":                   {`INSERT INTO name SELECT 'depot', 'other', 'tag', 'model', manifest, 'x', 1, '', id, 0 FROM cases`, release, edited, 0},
		"something in the depot":   {`INSERT INTO depot_blob SELECT 'other', manifest, manifest, 'x', 1, 1, '', '', '{}', id FROM cases`, nothing, "", 0},
		"a leaf":                   {`UPDATE leaf SET bytes = CAST(replace(CAST(bytes AS TEXT), 'otto', 'anna') AS BLOB) WHERE n > 3`, release, broken, 0},
		"whose a leaf is":          {`UPDATE leaf SET case_id = NULL WHERE n = 7`, release, broken, 0},
		"a seal of something else": {`UPDATE seal SET subject = 'channel other' WHERE subject LIKE 'channel %'`, release, broken, 0},
		"a hash of the tree":       {`UPDATE leaf_hash SET hash = zeroblob(32) WHERE i = 2`, release, broken, 0},
		"a seal of nothing at all": {`INSERT INTO seal VALUES ('case 99', 3)`, release, broken, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, f := approved[c.lack].copy(t)
			if c := l.auditLog(); c.Result != gate.CheckOK {
				t.Errorf("before: %+v", c)
			}
			l.edit(c.edit)
			if err := c.do(l, f); problem.CodeOf(err) != c.code {
				t.Errorf("%v, want %q", err, c.code)
			}
			l.clock.Advance(2 * time.Minute) // doctor remembers for one
			if c := l.auditLog(); c.Result != gate.CheckBad {
				t.Errorf("after: %+v", c)
			}
		})
	}
}

// TestDoctorBesideWork looks at log and rows while both grow: what is only new
// is nothing that somebody edited.
func TestDoctorBesideWork(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	l.mustReceive(f)
	anna, done := l.anna(), make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			_, err = l.gate.StartSession(t.Context(), anna)
			if err == nil && i%10 == 0 {
				_, err = l.gate.Receive(t.Context(), gate.Console(fmt.Sprintf("carrier-%d", i)), l.medium(f.Volume), nil)
			}
		}
		done <- err
	}()
	for {
		l.clock.Advance(2 * time.Minute)
		if c := l.auditLog(); c.Result != gate.CheckOK {
			t.Errorf("%+v", c)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}
