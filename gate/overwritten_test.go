package gate_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// copyOver writes the bytes of a file into another one, which stays the same file.
func copyOver(from, to string) error {
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	return err
}

// TestADatabaseThatIsCopiedOver copies another file over the database of a gate
// that runs: nothing is written to it any more, and the next start judges it as
// it would have found it.
func TestADatabaseThatIsCopiedOver(t *testing.T) {
	of := overOnce(t)
	for name, c := range map[string]struct{ from, next string }{
		"an older copy":     {"older.db", "gate/history-rolled-back"},
		"another gate's":    {"other.db", "gate/history-differs"},
		"the same, rewoven": {"vacuum.db", ""},
		"nothing":           {"/dev/null", "gate/no-database"},
		"no database":       {"enrol.json", "gate/database-broken"},
	} {
		for notice, do := range noticing() {
			t.Run(name+", noticed by "+notice, func(t *testing.T) {
				t.Parallel()
				l := of.run(t)
				path, from := filepath.Join(l.dir, "gate.db"), filepath.Join(l.dir, c.from)
				if c.from == "/dev/null" {
					from = c.from
				}
				if c.from == "vacuum.db" {
					if err := l.change(fmt.Sprintf(`VACUUM INTO '%s'`, from)); err != nil {
						t.Fatal(err)
					}
				}
				if err := copyOver(from, path); err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := do(l); problem.CodeOf(err) != "gate/database-overwritten" {
					t.Errorf("%v", err)
				}
				select {
				case <-l.gate.Lost():
				default:
					t.Error("whoever serves is not told")
				}
				if err := l.gate.Close(); problem.CodeOf(err) != "gate/database-overwritten" {
					t.Errorf("closing: %v", err)
				}
				if got, err := os.ReadFile(path); err != nil || !cmp.Equal(got, want) {
					t.Errorf("something was written into it: %v", err)
				}
				if err := l.elsewhere(); problem.CodeOf(err) != c.next {
					t.Errorf("the next start: %v", err)
				}
			})
		}
	}
}

// elsewhere opens a copy of the gate: what the process of before still has open
// is not the next start's.
func (l *lab) elsewhere() error {
	next, err := l.killed()
	if err != nil {
		return err
	}
	return next.opening()
}

// killed is what a gate would leave that is killed now.
func (l *lab) killed() (*lab, error) {
	next := *l
	next.dir = filepath.Join(l.t.TempDir(), "gate")
	return &next, os.CopyFS(next.dir, os.DirFS(l.dir))
}

// TestALogOfAnotherFile brings files back beside the log that a killed gate has
// left: it goes into none but its own.
func TestALogOfAnotherFile(t *testing.T) {
	of := overOnce(t)
	for name, c := range map[string]struct {
		bring map[string]string // to from
		then  string            // of the start after gate.db-wal and gate.db-shm were deleted
	}{
		"a backup":                {map[string]string{"gate.db": "older.db", "gate.anchor": "older.anchor"}, ""},
		"a backup, and no anchor": {map[string]string{"gate.db": "older.db"}, "gate/history-rolled-back"},
		"of another gate":         {map[string]string{"gate.db": "other.db"}, "gate/history-differs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := of.run(t).killed()
			if err != nil {
				t.Fatal(err)
			}
			newest := filepath.Join(l.dir, "newest.db")
			if err := copyOver(filepath.Join(l.dir, "gate.db"), newest); err != nil {
				t.Fatal(err)
			}
			for to, from := range c.bring {
				if err := copyOver(filepath.Join(l.dir, from), filepath.Join(l.dir, to)); err != nil {
					t.Fatal(err)
				}
			}
			before := contentOf(t, l.dir)
			for range 2 {
				if err := l.opening(); problem.CodeOf(err) != "gate/foreign-log" {
					t.Fatalf("%v", err)
				}
			}
			if diff := cmp.Diff(before, contentOf(t, l.dir)); diff != "" {
				t.Errorf("files have changed (-before +after):\n%s", diff)
			}
			both, err := l.killed()
			if err != nil {
				t.Fatal(err)
			}
			if c.bring["gate.anchor"] == "" {
				if err := errors.Join(copyOver(newest, filepath.Join(both.dir, "gate.db")), both.opening()); err != nil {
					t.Errorf("the newest one: %v", err)
				}
			}
			err = errors.Join(os.Remove(filepath.Join(l.dir, "gate.db-wal")), os.RemoveAll(filepath.Join(l.dir, "gate.db-shm")))
			if err := errors.Join(err, l.opening()); problem.CodeOf(err) != c.then || err != nil && c.then == "" {
				t.Errorf("without the log: %v", err)
			}
		})
	}
}

// contentOf is what gate.db, its log and its anchor hold.
func contentOf(t *testing.T, dir string) map[string]cas.Digest {
	t.Helper()
	of := map[string]cas.Digest{}
	for _, name := range []string{"gate.db", "gate.db-wal", "gate.anchor"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		of[name] = cas.DigestOf(b)
	}
	return of
}

// noticing are the ways in which it comes out.
func noticing() map[string]func(*lab) error {
	return map[string]func(*lab) error{
		"the next step": func(l *lab) error {
			return l.gate.AddUser(l.t.Context(), gate.Console("root"), "emil", gate.Roles(), []byte(password))
		},
		"doctor": func(l *lab) error {
			checks, err := l.gate.Doctor(l.t.Context(), operator)
			return errors.Join(err, coded(checkOf(checks, "database").Code))
		},
		"the end": func(l *lab) error { return l.gate.Close() },
	}
}

// overOnce is a gate with a case that is approved, with an older copy of its
// database, and one of another gate, beside it.
func overOnce(t *testing.T) approvedOnce {
	l := newLab(t)
	f := l.forge(nil)
	l.close()
	for from, to := range map[string]string{"gate.db": "older.db", "gate.anchor": "older.anchor"} {
		if err := copyOver(filepath.Join(l.dir, from), filepath.Join(l.dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	other := newLab(t)
	other.write(20)
	other.close()
	if err := copyOver(filepath.Join(other.dir, "gate.db"), filepath.Join(l.dir, "other.db")); err != nil {
		t.Fatal(err)
	}
	l.open()
	l.trust(f)
	l.approve(l.mustReceive(f).ID)
	l.close()
	return approvedOnce{l, f}
}

// run opens a copy, which has written something since.
func (a approvedOnce) run(t *testing.T) *lab {
	t.Helper()
	l, _ := a.copy(t)
	l.write(1)
	return l
}

// write has the gate take so many steps.
func (l *lab) write(steps int) {
	l.t.Helper()
	anna := l.anna()
	for range steps {
		if _, err := l.gate.StartSession(l.t.Context(), anna); err != nil {
			l.t.Fatal(err)
		}
	}
}

// whileRead has the gate write more than its log takes while somebody reads what
// was there before, so that only a part of it can go into the file.
func (l *lab) whileRead(then func() error) (err error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(l.dir, "gate.db")+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for range 3 {
		l.write(80) // what a reader pins is in the log, and what comes later goes on in its pages
		reading, err := db.BeginTx(l.t.Context(), &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		var n int64
		err = reading.QueryRowContext(l.t.Context(), `SELECT count(*) FROM leaf`).Scan(&n)
		l.write(200)
		if err := errors.Join(err, then(), reading.Rollback()); err != nil {
			return err
		}
		l.write(1)
	}
	return nil
}

// TestWhatIsNoOtherDatabase does to the file what changes nothing in it: the gate
// goes on.
func TestWhatIsNoOtherDatabase(t *testing.T) {
	of := overOnce(t)
	for name, do := range map[string]func(l *lab, path string) error{
		"touched":           func(_ *lab, path string) error { return os.Chtimes(path, testkit.Noon(), testkit.Noon()) },
		"given other modes": func(_ *lab, path string) error { return os.Chmod(path, 0o640) },
		"linked":            func(_ *lab, path string) error { return os.Link(path, path+".backup") },
		"copied over by itself": func(_ *lab, path string) error {
			return errors.Join(copyOver(path, path+".backup"), copyOver(path+".backup", path))
		},
		"copied over by a copy of a moment ago": func(l *lab, path string) error {
			err := errors.Join(l.change(`PRAGMA wal_checkpoint(FULL)`), copyOver(path, path+".backup"))
			l.write(1)
			return errors.Join(err, copyOver(path+".backup", path))
		},
		"brought up to date": func(l *lab, _ string) error { return l.change(`PRAGMA wal_checkpoint(TRUNCATE)`) },
		"brought half up to date while somebody reads": func(l *lab, _ string) error {
			return l.whileRead(func() error { return l.change(`PRAGMA wal_checkpoint(PASSIVE)`) })
		},
		"grown by the gate while somebody reads": func(l *lab, _ string) error { return l.whileRead(func() error { return nil }) },
		"grown by the gate": func(l *lab, path string) error {
			before, err := os.Stat(path)
			for i := 0; err == nil && i < 20; i++ {
				l.write(50)
				now, statErr := os.Stat(path)
				if err = statErr; err == nil && now.Size() != before.Size() {
					return nil
				}
			}
			return errors.Join(err, errors.New("its size stays"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := of.run(t)
			if err := do(l, filepath.Join(l.dir, "gate.db")); err != nil {
				t.Fatal(err)
			}
			l.mustRelease(1)
			l.clock.Advance(2 * time.Minute)
			if c := l.auditLog(); c.Result != gate.CheckOK {
				t.Errorf("%+v", c)
			}
			l.restart()
			if c := l.auditLog(); c.Result != gate.CheckOK {
				t.Errorf("%+v", c)
			}
		})
	}
}
