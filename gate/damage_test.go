package gate_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

// denier is a judge that denies everything.
type denier struct{ library }

func (d denier) Evaluate(ctx context.Context, in *policy.Input) (*policy.Decision, error) {
	decision, err := d.library.Evaluate(ctx, in)
	if err == nil {
		decision.Verdict = policy.Deny
		decision.Findings = []policy.Finding{{Rule: "deny-all", Level: policy.LevelDeny, Params: map[string]any{}}}
	}
	return decision, err
}

// TestNothingIsLetInForLackOfAReason spoils one row, with an audit log that
// vouches for it: what does not say why it may be loaded is not.
func TestNothingIsLetInForLackOfAReason(t *testing.T) {
	approved, waiting := approveOnce(t, 1), approveOnce(t, 2)
	for name, edit := range map[string]string{
		"blocked, and no reason":       `UPDATE cases SET state = 'blocked', problem = NULL`,
		"rejected, and no reason":      `UPDATE cases SET state = 'rejected', problem = NULL`,
		"damaged, and no reason":       `UPDATE cases SET state = 'damaged', problem = NULL`,
		"a reason without a code":      `UPDATE cases SET state = 'blocked', problem = '{}'`,
		"no such verdict":              `UPDATE cases SET verdict = 'sideways'`,
		"no verdict":                   `UPDATE cases SET verdict = ''`,
		"a verdict that blocks":        `UPDATE cases SET verdict = 'deny'`,
		"a verdict with its decision":  `UPDATE cases SET verdict = 'allow', decision = replace(decision, '"verdict":"review"', '"verdict":"allow"')`,
		"no such state":                `UPDATE cases SET state = 'sideways'`,
		"the state that rows have not": `UPDATE cases SET state = 'unreadable'`,
		"approvals below nothing":      `UPDATE cases SET needed = -1`,
		"no approvals needed":          `UPDATE cases SET needed = 0`,
		"another review":               `UPDATE cases SET review = replace(review, '"needed":', '"needed":0')`,
		"no review":                    `UPDATE cases SET review = NULL`,
		"a decision that is none":      `UPDATE cases SET decision = '{'`,
		"a problem that is none":       `UPDATE cases SET problem = '{'`,
		"another bundle":               `UPDATE cases SET manifest = 'sha256:' || substr('0000000000000000000000000000000000000000000000000000000000000000', 1)`,
	} {
		for which, from := range map[string]approvedOnce{"approved": approved, "awaiting": waiting} {
			t.Run(which+": "+name, func(t *testing.T) {
				t.Parallel()
				l, _ := from.copy(t)
				if err := gate.EditCase(t.Context(), l.gate, 1, edit); err != nil {
					t.Fatal(err)
				}
				if _, err := l.gate.Release(t.Context(), operator, 1, nil); problem.CodeOf(err) != "gate/row-damaged" {
					t.Errorf("%v", err)
				}
				if len(l.sink.put)+len(l.sink.content) > 0 {
					t.Error("something of it was loaded")
				}
				if err := l.gate.Resume(t.Context()); err != nil {
					t.Errorf("resume: %v", err)
				}
			})
		}
	}
}

// TestWhatIsDeniedIsNotLetIn takes from a denied case what says so.
func TestWhatIsDeniedIsNotLetIn(t *testing.T) {
	l := newLab(t)
	l.judge = denier{library{shared(t)}}
	l.restart()
	f := l.forge(nil)
	l.trust(f)
	if _, err := l.receive(f); problem.CodeOf(err) != "policy/denied" {
		t.Fatal(err)
	}
	for _, step := range []struct{ edit, code string }{
		{`UPDATE cases SET id = id`, "policy/denied"},
		{`UPDATE cases SET problem = NULL`, "gate/row-damaged"},
		{`UPDATE cases SET state = 'approved', needed = 0`, "gate/row-damaged"},
		{`UPDATE cases SET state = 'partly loaded', problem = NULL`, "gate/row-damaged"},
		{`UPDATE cases SET state = 'approved', verdict = 'allow', decision = replace(decision, '"verdict":"deny"', '"verdict":"allow"')`, "gate/row-damaged"},
	} {
		if err := gate.EditCase(t.Context(), l.gate, 1, step.edit); err != nil {
			t.Fatal(err)
		}
		if _, err := l.gate.Release(t.Context(), operator, 1, nil); problem.CodeOf(err) != step.code {
			t.Errorf("%s: %v, want %s", step.edit, err, step.code)
		}
		if len(l.sink.put)+len(l.sink.content) > 0 {
			t.Fatalf("%s: something of it was loaded", step.edit)
		}
	}
}

// TestOneBrokenRow spoils one of two cases: list, doctor, start and the other
// case go on.
func TestOneBrokenRow(t *testing.T) {
	approved := approveOnce(t, 1)
	for name, edit := range map[string]string{
		"digest":   `UPDATE cases SET manifest = 'zz' WHERE id = 2`,
		"time":     `UPDATE cases SET arrived = 4611686018427387904 WHERE id = 2`,
		"state":    `UPDATE cases SET state = 'sideways' WHERE id = 2`,
		"verdict":  `UPDATE cases SET verdict = 'sideways' WHERE id = 2`,
		"size":     `UPDATE cases SET size = -1 WHERE id = 2`,
		"decision": `UPDATE cases SET decision = '{' WHERE id = 2`,
		"problem":  `UPDATE cases SET problem = 'x' WHERE id = 2`,
		"review":   `UPDATE cases SET review = '{}' WHERE id = 2`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, f := approved.copy(t)
			l.mustReceive(l.next(f, 2))
			l.edit(edit)
			l.restart()
			if err := l.gate.Resume(t.Context()); err != nil {
				t.Errorf("resume: %v", err)
			}
			list, err := l.gate.Cases(t.Context(), operator)
			if err != nil || len(list) != 2 || list[1].State != gate.Approved {
				t.Fatalf("%+v, %v", list, err)
			}
			shown, err := l.gate.Case(t.Context(), operator, 2)
			if err != nil || shown.State != gate.Unreadable || shown.Problem == nil || shown.Problem.Code != "gate/row-damaged" || len(shown.History) == 0 {
				t.Errorf("%+v, %v", shown, err)
			}
			checks, err := l.gate.Doctor(t.Context(), operator)
			if err != nil {
				t.Fatal(err)
			}
			if c := checkOf(checks, "cases"); c.Result != gate.CheckBad || c.Code != "gate/row-damaged" || !strings.Contains(c.Detail, "case 2") {
				t.Errorf("%+v", c)
			}
			if c := checkOf(checks, "database"); c.Result != gate.CheckOK {
				t.Errorf("%+v", c)
			}
			l.mustRelease(1)
		})
	}
}

func checkOf(checks []gate.Check, name string) gate.Check {
	i := slices.IndexFunc(checks, func(c gate.Check) bool { return c.Name == name })
	if i < 0 {
		return gate.Check{}
	}
	return checks[i]
}

// TestADatabaseThatIsNone spoils the file of a gate that is closed. Opening
// refuses it, and leaves it as it is; doctor says what can be said.
func TestADatabaseThatIsNone(t *testing.T) {
	approved := approveOnce(t, 1)
	for name, c := range map[string]struct {
		spoil func(l *lab, path string) error
		code  string
	}{
		"empty": {func(_ *lab, path string) error { return os.Truncate(path, 0) }, "gate/no-database"},
		"gone":  {func(_ *lab, path string) error { return os.Remove(path) }, "gate/no-database"},
		"cut":   {func(_ *lab, path string) error { return os.Truncate(path, 20_000) }, "gate/database-broken"},
		"something": {func(_ *lab, path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600)
		}, "gate/database-broken"},
		"a table less": {func(l *lab, _ string) error { return l.change(`DROP TABLE receiver`) }, "gate/database-broken"},
		"a trigger": {func(l *lab, _ string) error {
			return l.change(`CREATE TRIGGER helper AFTER UPDATE ON cases BEGIN DELETE FROM receiver; END`)
		}, "gate/database-broken"},
		"no log": {func(l *lab, _ string) error {
			return errors.Join(l.change(`DELETE FROM seal`), l.change(`DELETE FROM leaf`), l.change(`DELETE FROM leaf_hash`))
		}, "gate/history-rolled-back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := approved.copy(t)
			l.close()
			path := filepath.Join(l.dir, "gate.db")
			if err := c.spoil(l, path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path) // one of them is gone
			failure := l.opening()
			if problem.CodeOf(failure) != c.code {
				t.Fatalf("%v", failure)
			}
			checks := gate.DoctorClosed(t.Context(), l.dir, failure)
			if got := checkOf(checks, "gate"); got.Result != gate.CheckBad || got.Code != c.code {
				t.Errorf("%+v", got)
			}
			whole := checkOf(checks, "database").Result == gate.CheckOK
			if whole != (name == "no log") {
				t.Errorf("%+v", checks)
			}
			if after, _ := os.ReadFile(path); c.code != "gate/history-rolled-back" && !cmp.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// TestADatabaseThatIsTakenAway deletes the file of a gate that runs, or puts
// another into its place: nothing is written any more, and what there was is
// kept beside.
func TestADatabaseThatIsTakenAway(t *testing.T) {
	approved := approveOnce(t, 1)
	for name, away := range map[string]func(path string) error{
		"deleted": os.Remove,
		"deleted with all beside it": func(path string) error {
			return errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm"))
		},
		"deleted once more": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path+".rescued", []byte("of the last time"), 0o600))
		},
		"replaced": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("another"), 0o600))
		},
	} {
		for notice, do := range map[string]func(l *lab) error{
			"release": func(l *lab) error { _, err := l.gate.Release(l.t.Context(), operator, 1, nil); return err },
			"doctor": func(l *lab) error {
				checks, err := l.gate.Doctor(l.t.Context(), operator)
				if c := checkOf(checks, "database"); err == nil && c.Result != gate.CheckOK {
					return coded(c.Code)
				}
				return err
			},
			"the end": func(l *lab) error { return l.gate.Close() },
		} {
			t.Run(name+", noticed by "+notice, func(t *testing.T) {
				t.Parallel()
				l, _ := approved.copy(t)
				path := filepath.Join(l.dir, "gate.db")
				if err := away(path); err != nil {
					t.Fatal(err)
				}
				if err := do(l); problem.CodeOf(err) != "gate/no-database" {
					t.Errorf("%v", err)
				}
				err := l.gate.Close()
				if err == nil {
					t.Error("the gate ended as if nothing was")
				}
				followHint(t, err)
				l.open()
				l.mustRelease(1)
			})
		}
	}
}

// followHint does what an error tells to do, to the letter, once the gate has
// stopped.
func followHint(t *testing.T, err error) {
	t.Helper()
	var hinted interface{ Remedy() string }
	if !errors.As(err, &hinted) {
		t.Fatalf("no remedy: %v", err)
	}
	command, ok := strings.CutPrefix(hinted.Remedy(), "stop the gate, then: ")
	if !ok {
		t.Fatalf("remedy: %s", hinted.Remedy())
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %s, %v", command, out, err)
	}
}

type coded string

func (c coded) Error() string { return string(c) }
func (c coded) Code() string  { return string(c) }

// TestTheTrueErrorIsTold fills the disk: a bundle that cannot be admitted is no
// case, and the disk is the reason.
func TestTheTrueErrorIsTold(t *testing.T) {
	l := newLab(t)
	f := l.forge(func(m *bundle.Manifest) { m.Note = strings.Repeat("much ", 1000) })
	l.trust(f)
	if err := gate.FillDisk(t.Context(), l.gate); err != nil {
		t.Fatal(err)
	}
	c, err := l.receive(f)
	if c != nil || problem.CodeOf(err) != "gate/full" || strings.Contains(err.Error(), "no case") {
		t.Errorf("%+v, %v", c, err)
	}
	if got := evidenceOf(err); !strings.Contains(got, "needed:  ") || !strings.Contains(got, "free:    ") {
		t.Errorf("evidence:\n%s", got)
	}
	if list, err := l.gate.Cases(t.Context(), operator); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	l.restart() // with space
	l.mustReceive(f)
}

// TestAFloorThatIsNone tells of the floor, not of a case that is not there.
func TestAFloorThatIsNone(t *testing.T) {
	approved := approveOnce(t, 1)
	l, f := approved.copy(t)
	l.edit(`UPDATE belief SET floor = 9223372036854775807`)
	c, err := l.receive(l.next(f, 2))
	if c != nil || problem.CodeOf(err) == "case/unknown" || err == nil {
		t.Errorf("%+v, %v", c, err)
	}
	if problem.CodeOf(err) != "gate/row-damaged" || problem.RemedyOf(err) == "" {
		t.Errorf("receive: %v", err)
	}
	if _, err := l.gate.TrustStatus(t.Context(), operator); problem.CodeOf(err) != "gate/row-damaged" {
		t.Errorf("trust: %v", err)
	}
	checks, err := l.gate.Doctor(t.Context(), operator)
	for _, name := range []string{"clock", "trust root"} {
		if c := checkOf(checks, name); err != nil || c.Code != "gate/row-damaged" {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// TestOneBrokenName adds a name to the depot that cannot be: it is not served,
// takes no other one away while the gate runs, and is found when all are read
// again.
func TestOneBrokenName(t *testing.T) {
	approved := approveOnce(t, 1)
	l, _ := approved.copy(t)
	l.mustRelease(1)
	depot := l.gate.Depot()
	repositories, err := depot.Repositories(t.Context(), "", 10)
	if err != nil || len(repositories) != 1 {
		t.Fatalf("%v, %v", repositories, err)
	}
	tags, err := depot.Tags(t.Context(), repositories[0], "", 10)
	if err != nil || len(tags) != 1 {
		t.Fatalf("%v, %v", tags, err)
	}
	l.edit(`INSERT INTO name SELECT destination, repository, '0-broken', kind, 'zz', media_type, size, replaced, case_id, since FROM name`)
	left, err := depot.Tags(t.Context(), repositories[0], "", 1)
	if diff := cmp.Diff(tags, left); err != nil || diff != "" {
		t.Errorf("%v, (-before +after):\n%s", err, diff)
	}
	if _, err := depot.Tag(t.Context(), repositories[0], "0-broken"); problem.CodeOf(err) != "depot/not-found" {
		t.Errorf("%v", err)
	}
	l.restart()
	if tags, err := l.gate.Depot().Tags(t.Context(), repositories[0], "", 1); problem.CodeOf(err) != "audit/contradiction" {
		t.Errorf("after a restart: %v, %v", tags, err)
	}
}

// change changes the file of a gate that is closed.
func (l *lab) change(statement string) error {
	db, err := openFile(filepath.Join(l.dir, "gate.db"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(l.t.Context(), statement)
	return errors.Join(err, db.Close())
}

// TestUnjudgedIsRejected ends a case that has no review yet.
func TestUnjudgedIsRejected(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	l.fault = func(point string) error {
		if point == "inspected:before" {
			return coded("test/stopped")
		}
		return nil
	}
	if c, err := l.receive(f); problem.CodeOf(err) != "test/stopped" || c.State != gate.Verified {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := l.gate.Decide(t.Context(), l.anna(), 1, gate.Approve, "", "x"); problem.CodeOf(err) != "case/not-waiting" {
		t.Errorf("approved: %v", err)
	}
	if c, err := l.gate.Decide(t.Context(), l.anna(), 1, gate.Reject, "", "nobody ordered it"); err != nil || c.State != gate.Rejected {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestUnreadableIsRejected ends a case whose row cannot be right, in each of its
// columns. Only somebody who may decide does, with a reason, and nothing else
// becomes of it.
func TestUnreadableIsRejected(t *testing.T) {
	approved := approveOnce(t, 1)
	for name, edit := range map[string]string{
		"manifest":  `UPDATE cases SET manifest = 'zz' WHERE id = 2`,
		"channel":   `UPDATE cases SET channel = CAST(x'ff' AS TEXT) WHERE id = 2`,
		"submitter": `UPDATE cases SET submitter = CAST(x'ff' AS TEXT) WHERE id = 2`,
		"file":      `UPDATE cases SET file = CAST(x'ff' AS TEXT) WHERE id = 2`,
		"arrived":   `UPDATE cases SET arrived = -1 WHERE id = 2`,
		"size":      `UPDATE cases SET size = -1 WHERE id = 2`,
		"artifacts": `UPDATE cases SET artifacts = -1 WHERE id = 2`,
		"serial":    `UPDATE cases SET serial = -1 WHERE id = 2`,
		"state":     `UPDATE cases SET state = 'sideways' WHERE id = 2`,
		"verdict":   `UPDATE cases SET verdict = CAST(x'ff' AS TEXT) WHERE id = 2`,
		"problem":   `UPDATE cases SET problem = '{' WHERE id = 2`,
		"decision":  `UPDATE cases SET decision = '{' WHERE id = 2`,
		"review":    `UPDATE cases SET review = 'x' WHERE id = 2`,
		"twin":      `UPDATE cases SET size = -1, state = 'not genuine' WHERE id = 2`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, f := approved.copy(t)
			anna := l.anna()
			second := l.next(f, 2)
			l.mustReceive(second)
			l.edit(edit)
			if name == "twin" {
				l.edit(`INSERT INTO cases (manifest, state, channel, epoch, serial, size, artifacts, file, submitter, arrived, changed) SELECT manifest, 'received', channel, epoch, serial, 1, 1, file, submitter, arrived, changed FROM cases WHERE id = 2`)
			}
			if c, err := l.gate.Case(t.Context(), operator, 2); err != nil || c.State != gate.Unreadable || c.Problem.Code != "gate/row-damaged" || c.Problem.Remedy == "" {
				t.Fatalf("%+v, %v", c, err)
			}
			for _, refused := range []struct {
				by             gate.Actor
				choice         gate.Choice
				review, reason string
				code           string
			}{
				{operator, gate.Reject, "", "broken", "login/account-needed"},
				{anna, gate.Reject, "", "", "case/reason"},
				{anna, gate.Reject, "sha256:00", "broken", "case/review-changed"},
				{anna, gate.Approve, "", "broken", "gate/row-damaged"},
			} {
				if _, err := l.gate.Decide(t.Context(), refused.by, 2, refused.choice, refused.review, refused.reason); problem.CodeOf(err) != refused.code {
					t.Errorf("%s %q: %v, want %s", refused.choice, refused.review, err, refused.code)
				}
			}
			if c, err := l.gate.Decide(t.Context(), anna, 2, gate.Reject, "", "broken"); err != nil || c.State != gate.Rejected || c.History[len(c.History)-1].Type != "case.rejected" || c.History[len(c.History)-1].Detail != "broken" {
				t.Fatalf("%+v, %v", c, err)
			}
			list, err := l.gate.Cases(t.Context(), operator)
			if err != nil || list[len(list)-2].State != gate.Rejected || list[len(list)-1].State != gate.Approved {
				t.Errorf("%+v, %v", list, err)
			}
			if _, err := l.gate.Decide(t.Context(), anna, 2, gate.Reject, "", "again"); problem.CodeOf(err) != "case/not-waiting" {
				t.Errorf("again: %v", err)
			}
			if _, err := l.gate.Release(t.Context(), operator, 2, nil); err == nil {
				t.Error("it was released")
			}
			checks, err := l.gate.Doctor(t.Context(), operator)
			if c := checkOf(checks, "cases"); name != "twin" && (err != nil || c.Result != gate.CheckOK) {
				t.Errorf("doctor: %+v, %v", c, err)
			}
			l.restart()
			l.mustRelease(1)
		})
	}
}

// TestWhatIsPulledIsNotRejected: not even where its row cannot be right.
func TestWhatIsPulledIsNotRejected(t *testing.T) {
	approved := approveOnce(t, 1)
	l, _ := approved.copy(t)
	anna := l.anna()
	l.mustRelease(1)
	l.edit(`UPDATE cases SET size = -1`)
	if _, err := l.gate.Decide(t.Context(), anna, 1, gate.Reject, "", "broken"); problem.CodeOf(err) != "case/live" {
		t.Errorf("%v", err)
	}
}
