package gate_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// treeOf reads the hashes of the tree in a database.
type treeOf struct {
	t  *testing.T
	db *sql.DB
}

func (r treeOf) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		var b []byte
		if err := r.db.QueryRowContext(r.t.Context(), `SELECT hash FROM leaf_hash WHERE i = ?`, index).Scan(&b); err != nil {
			return nil, err
		}
		copy(list[i][:], b)
	}
	return list, nil
}

// appendLeaf writes a leaf with its hashes, as somebody without the key can who
// knows how the log is made.
func (l *lab) appendLeaf(t *testing.T, text string) {
	t.Helper()
	db, err := openFile(filepath.Join(l.dir, "gate.db"))
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	if err := db.QueryRowContext(t.Context(), `SELECT max(n) + 1 FROM leaf`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	hashes, err := tlog.StoredHashes(n, []byte(text), treeOf{t, db})
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `INSERT INTO leaf (n, bytes, at) VALUES (?, ?, 0)`, n, []byte(text))
	for i, h := range hashes {
		_, more := db.ExecContext(t.Context(), `INSERT INTO leaf_hash (i, hash) VALUES (?, ?)`, tlog.StoredHashIndex(0, n)+int64(i), h[:])
		err = errors.Join(err, more)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestEntriesThatNobodySigned adds to the log without its key: that is neither
// opened nor believed.
func TestEntriesThatNobodySigned(t *testing.T) {
	l := newLab(t)
	const entry = `{"actor":"os:root","type":"account.added","outcome":"ok","stands":[{"of":"account king","rows":"sha256:` + "0000000000000000000000000000000000000000000000000000000000000000" + `","says":"admin"}]}`
	l.close()
	whole := l.keep("gate.db")
	l.appendLeaf(t, entry)
	if err := l.opening(); problem.CodeOf(err) != "gate/history-unsigned" || !strings.Contains(evidenceOf(err), "signed:    1 entries") {
		t.Errorf("one entry more: %v\n%s", err, evidenceOf(err))
	}
	whole()
	l.open()
	l.appendLeaf(t, entry)
	l.edit(`UPDATE seal SET leaf = 1 WHERE subject = 'account anna'`)
	if _, err := l.gate.Authenticate(t.Context(), "test", "anna", []byte(password)); problem.CodeOf(err) != "audit/broken" {
		t.Errorf("while the gate runs: %v", err)
	}
}

// TestADatabaseFromBeforeSignedHeads is opened where its log ends with the
// anchor, and not where it goes on.
func TestADatabaseFromBeforeSignedHeads(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.edit(`DELETE FROM head_signed`)
	l.restart()
	crash := errors.New("the power is gone")
	l.fault = func(point string) error {
		if point == "trust.init:after" {
			return crash
		}
		return nil
	}
	if err := l.initTrust(f); !errors.Is(err, crash) {
		t.Fatal(err)
	}
	l.fault = nil
	l.edit(`UPDATE head_signed SET checkpoint = x'00'`)
	l.close()
	if err := l.opening(); problem.CodeOf(err) != "gate/history-unsigned" {
		t.Errorf("with a head that is none: %v", err)
	}
	if err := l.change(`DELETE FROM head_signed`); err != nil {
		t.Fatal(err)
	}
	if err := l.opening(); problem.CodeOf(err) != "gate/history-unsigned" {
		t.Errorf("with no head: %v", err)
	}
}

// TestWhatWasBefore puts old rows back, with the seal that they had: a seal of
// the log, and not the last.
func TestWhatWasBefore(t *testing.T) {
	l := newLab(t)
	root := gate.Console("root")
	if err := l.change(`CREATE TABLE old AS SELECT a.*, s.leaf FROM account a JOIN seal s ON s.subject = 'account ' || a.name`); err != nil {
		t.Fatal(err)
	}
	if err := l.gate.SetPassword(t.Context(), root, "anna", []byte("another password")); err != nil {
		t.Fatal(err)
	}
	l.edit(`UPDATE account SET password = (SELECT password FROM old WHERE old.name = account.name)`)
	l.edit(`UPDATE seal SET leaf = (SELECT leaf FROM old WHERE subject = 'account ' || old.name)`)
	login := func() error {
		_, err := l.gate.Authenticate(t.Context(), "test", "anna", []byte(password))
		return err
	}
	if err := login(); problem.CodeOf(err) != "audit/contradiction" {
		t.Errorf("while the gate runs: %v", err)
	}
	if err := l.change(`DROP TABLE old`); err != nil {
		t.Fatal(err)
	}
	l.restart()
	if err := login(); problem.CodeOf(err) != "audit/contradiction" {
		t.Errorf("after a restart: %v", err)
	}
	if err := l.gate.SetPassword(t.Context(), root, "anna", []byte(password)); problem.CodeOf(err) != "audit/contradiction" {
		t.Errorf("something was built on it: %v", err)
	}
}

// TestWithdrawnStaysWithdrawn takes the seal of the trust away, and the places
// by which a bundle is known as a withdrawn one.
func TestWithdrawnStaysWithdrawn(t *testing.T) {
	l, f, id, _ := waiting(t, 1)
	l.approve(id)
	l.mustRelease(id)
	revokeBundle(l, f)
	serves := func() (tag, blob error) {
		_, tag = l.gate.Depot().Tag(t.Context(), "notes", "1.0")
		_, blob = l.gate.Depot().Blob(t.Context(), "notes", f.Manifest.Artifacts[0].Root.Digest)
		return tag, blob
	}
	for what, c := range map[string]struct{ edit, back string }{
		"no seal":        {`DELETE FROM seal WHERE subject = 'trust'`, `INSERT INTO seal SELECT 'trust', max(n) FROM leaf WHERE CAST(bytes AS TEXT) LIKE '%"of":"trust"%'`},
		"another serial": {`UPDATE cases SET serial = 7`, `UPDATE cases SET serial = 1`},
	} {
		if tag, blob := serves(); problem.CodeOf(tag) != "depot/withdrawn" || problem.CodeOf(blob) != "depot/withdrawn" {
			t.Errorf("%s: before: %v, %v", what, tag, blob)
		}
		l.edit(c.edit)
		if tag, blob := serves(); problem.CodeOf(tag) != "depot/withdrawn" || problem.CodeOf(blob) != "depot/withdrawn" {
			t.Errorf("%s: while the gate runs: %v, %v", what, tag, blob)
		}
		l.restart()
		if tag, blob := serves(); problem.CodeOf(tag) != "audit/contradiction" || problem.CodeOf(blob) != "audit/contradiction" {
			t.Errorf("%s: after a restart: %v, %v", what, tag, blob)
		}
		l.edit(c.back)
		l.restart()
	}
}

// TestTheDepotShowsWhatWasReleased edits rows by which the depot finds things.
func TestTheDepotShowsWhatWasReleased(t *testing.T) {
	l, f, id, _ := waiting(t, 1)
	l.approve(id)
	l.mustRelease(id)
	other, err := l.receive(l.next(f, 2))
	if err != nil {
		t.Fatal(err)
	}
	depot := func() *gate.Depot { return l.gate.Depot() }
	root := f.Manifest.Artifacts[0].Root.Digest
	if tag, err := depot().Tag(t.Context(), "notes", "1.0"); err != nil || tag.Digest != root {
		t.Fatalf("%+v, %v", tag, err)
	}
	for _, b := range f.Manifest.Blobs {
		if _, err := depot().Blob(t.Context(), "notes", b.Digest); err != nil {
			t.Errorf("%s: %v", b.Digest, err)
		}
	}
	held := other.Manifest // in quarantine, and no part of anything released
	forged := []string{
		`INSERT INTO depot_blob SELECT 'notes', '` + held.String() + `', root, 'x', 1, 1, '', '', '{}', case_id FROM depot_blob LIMIT 1`,
		`INSERT INTO depot_blob SELECT 'other', digest, root, 'x', 1, 1, '', '', '{}', case_id FROM depot_blob LIMIT 1`,
	}
	for _, edit := range forged {
		l.edit(edit)
	}
	if _, err := depot().Blob(t.Context(), "notes", held); problem.CodeOf(err) != "audit/contradiction" {
		t.Errorf("a blob that no artifact reaches: %v", err)
	}
	if _, err := depot().Open(t.Context(), held); problem.CodeOf(err) != "audit/contradiction" {
		t.Errorf("opened: %v", err)
	}
	l.edit(`UPDATE name SET digest = '` + held.String() + `'`)
	if tag, err := depot().Tag(t.Context(), "notes", "1.0"); err != nil || tag.Digest != root {
		t.Errorf("an edited name, while the gate runs: %+v, %v", tag, err)
	}
	l.restart()
	if tag, err := depot().Tag(t.Context(), "notes", "1.0"); problem.CodeOf(err) != "audit/contradiction" {
		t.Errorf("an edited name, after a restart: %+v, %v", tag, err)
	}
	if list, err := depot().Repositories(t.Context(), "", 10); problem.CodeOf(err) != "audit/contradiction" {
		t.Errorf("listed: %v, %v", list, err)
	}
}

// TestAnAnchorThatCannotBeWritten has a step committed whose anchor fails: it is
// done, and said to be; the next step brings the anchor up.
func TestAnAnchorThatCannotBeWritten(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	path := filepath.Join(l.dir, "gate.anchor")
	before := l.keep("gate.anchor")
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	c, err := l.receive(f)
	if problem.CodeOf(err) != "gate/anchor-behind" || c == nil || c.ID != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	before()
	c = l.mustReceive(f)
	if c.ID != 1 || c.State != gate.Awaiting {
		t.Errorf("%+v", c)
	}
	l.close()
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(string(now), "\n"); lines[1] == "2" {
		t.Errorf("the anchor stays behind:\n%s", now)
	}
	l.open()
}

// TestARestartForgetsNoDesk guesses from many addresses after a restart.
func TestARestartForgetsNoDesk(t *testing.T) {
	l := newLab(t)
	const desk = "192.0.2.1"
	anna, err := l.gate.Authenticate(t.Context(), desk, "anna", []byte(password))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.gate.StartSession(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	l.restart()
	for _, from := range []gate.Address{"198.51.100.1", "198.51.100.2", "198.51.100.3", "198.51.100.4", "198.51.100.5"} {
		for range 5 {
			l.guess(from, "anna")
		}
	}
	if code := l.login("203.0.113.9", "anna"); code != "login/wait" {
		t.Errorf("where she never was: %q", code)
	}
	if code := l.login(desk, "anna"); code != "" {
		t.Errorf("at her desk: %q", code)
	}
}

// TestReceiptsRestOnTheLog edits what a receipt says.
func TestReceiptsRestOnTheLog(t *testing.T) {
	l, f, _, _ := waiting(t, 1)
	trust := outside(t, l, f)
	l.edit(`UPDATE cases SET state = 'no such state'`)
	signed, err := l.gate.IssueReceipt(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	r, err := bundle.OpenReceipt(signed, trust, testkit.Noon())
	if err != nil {
		t.Fatal(err)
	}
	if state, _ := r.Holds(f.Manifest, f.Head.Digest()); state != bundle.HoldsNone {
		t.Errorf("of a row that cannot be right it holds %q", state)
	}
	l.edit(`UPDATE channel SET serial = 7`)
	if _, err := l.gate.IssueReceipt(t.Context(), operator); problem.CodeOf(err) != "audit/contradiction" {
		t.Errorf("with another serial: %v", err)
	}
	other := newLab(t)
	key, err := os.ReadFile(filepath.Join(other.dir, "keys", "receipt.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.dir, "keys", "receipt.pem"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.gate.IssueReceipt(t.Context(), operator); problem.CodeOf(err) != "gate/receipt-key" {
		t.Errorf("with another gate's key: %v", err)
	}
}
