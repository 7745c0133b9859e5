package gate_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

// TestAHeadThatWasSpoilt edits what was kept of the head of a case that waits:
// it is called what it is, counts as not held, and comes back with the bundle.
func TestAHeadThatWasSpoilt(t *testing.T) {
	approved := approveOnce(t, 1)
	for name, edit := range map[string]string{
		"nothing":             `DELETE FROM head WHERE case_id = 2`,
		"no manifest":         `DELETE FROM head WHERE case_id = 2 AND kind = 'manifest'`,
		"another manifest":    `UPDATE head SET bytes = (SELECT bytes FROM head WHERE case_id = 1 AND kind = 'manifest') WHERE case_id = 2 AND kind = 'manifest'`,
		"no signature":        `DELETE FROM head WHERE case_id = 2 AND kind = 'signature'`,
		"another signature":   `UPDATE head SET bytes = (SELECT bytes FROM head WHERE case_id = 1 AND kind = 'signature') WHERE case_id = 2 AND kind = 'signature'`,
		"no such signature":   `UPDATE head SET bytes = x'00' WHERE case_id = 2 AND kind = 'signature'`,
		"no root":             `DELETE FROM head WHERE case_id = 2 AND kind = 'root'`,
		"another root":        `UPDATE head SET bytes = x'00' WHERE case_id = 2 AND kind = 'root'`,
		"no revocations":      `DELETE FROM head WHERE case_id = 2 AND kind = 'revocations'`,
		"another revocations": `UPDATE head SET bytes = x'00' WHERE case_id = 2 AND kind = 'revocations'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, f := approved.copy(t)
			next := l.next(f, 2)
			l.mustReceive(next)
			trust := outside(t, l, f)
			l.edit(edit)
			l.restart()
			checks, err := l.gate.Doctor(t.Context(), operator)
			if err != nil {
				t.Fatal(err)
			}
			if c := checkOf(checks, "cases"); c.Result != gate.CheckBad || c.Code != "gate/row-damaged" || !strings.HasSuffix(c.Detail, ": 2") || !strings.Contains(c.Remedy, "again") {
				t.Errorf("doctor: %+v", c)
			}
			_, want := l.gate.WantList(t.Context(), operator, 2)
			_, plan := l.gate.Plan(t.Context(), operator, 2)
			for what, err := range map[string]error{"want": want, "plan": plan} {
				if problem.CodeOf(err) != "gate/row-damaged" || !strings.Contains(remedyOf(err), "receive the bundle of case 2 again") {
					t.Errorf("%s: %v, %s", what, err, remedyOf(err))
				}
			}
			if held := heldOf(t, l, trust); held[1] != bundle.HoldsAll || held[2] != bundle.HoldsNone {
				t.Errorf("receipt: %v", held)
			}
			if c, err := l.receive(next); err != nil || c.ID != 2 {
				t.Errorf("again: %+v, %v", c, err)
			}
			checks, err = l.gate.Doctor(t.Context(), operator)
			if err != nil {
				t.Fatal(err)
			}
			if c := checkOf(checks, "cases"); c.Result != gate.CheckOK {
				t.Errorf("doctor, after it was received again: %+v", c)
			}
			if held := heldOf(t, l, trust); held[2] != bundle.HoldsAll {
				t.Errorf("receipt, after it was received again: %v", held)
			}
		})
	}
}

func remedyOf(err error) string {
	var coded interface{ Remedy() string }
	if errors.As(err, &coded) {
		return coded.Remedy()
	}
	return ""
}

// heldOf is what the receipt of a gate says it holds, by serial.
func heldOf(t *testing.T, l *lab, trust *signing.Trust) map[int64]bundle.Holding {
	t.Helper()
	text, err := l.gate.IssueReceipt(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	r, err := bundle.OpenReceipt(text, trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	held := map[int64]bundle.Holding{}
	for _, b := range r.Channels[0].Bundles {
		held[b.Serial] = b.State
	}
	return held
}

// TestADatabaseOfALaterProgram opens what a later version has made its own.
func TestADatabaseOfALaterProgram(t *testing.T) {
	l := newLab(t)
	l.edit(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
	l.close()
	before, err := os.ReadFile(filepath.Join(l.dir, "gate.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = gate.Open(t.Context(), l.options())
	if problem.CodeOf(err) != "gate/newer-database" || !strings.Contains(remedyOf(err), "the later packhof-gate") {
		t.Errorf("%v, %s", err, remedyOf(err))
	}
	if after, err := os.ReadFile(filepath.Join(l.dir, "gate.db")); err != nil || !bytes.Equal(after, before) {
		t.Errorf("it was changed, or %v", err)
	}
	if c := gate.DoctorClosed(t.Context(), l.dir, err)[0]; c.Result != gate.CheckBad || c.Code != "gate/newer-database" || c.Remedy == "" {
		t.Errorf("doctor: %+v", c)
	}
}
