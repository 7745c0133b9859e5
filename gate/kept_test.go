package gate_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// TestDoctorLooksAtKeys spoils a key of a gate that runs.
func TestDoctorLooksAtKeys(t *testing.T) {
	of := approveOnce(t, 1)
	for name, c := range map[string]struct {
		spoil func(keys string) error
		code  string
		says  string
	}{
		"no identity":    {func(keys string) error { return os.Remove(keys + "identity.txt") }, "gate/identity", "identity.txt"},
		"empty identity": {func(keys string) error { return os.Truncate(keys+"identity.txt", 0) }, "gate/identity", "identity.txt"},
		"another identity": {func(keys string) error {
			other, err := agefile.NewIdentity()
			if err != nil {
				return err
			}
			return os.WriteFile(keys+"identity.txt", other.File(testkit.Noon()), 0o600)
		}, "gate/identity", "identity.txt"},
		"an identity for all": {func(keys string) error { return os.Chmod(keys+"identity.txt", 0o644) }, "", "identity.txt"},
		"no receipt key":      {func(keys string) error { return os.Remove(keys + "receipt.pem") }, "gate/receipt-key", "receipt.pem"},
		"another receipt key": {func(keys string) error {
			return errors.Join(os.Remove(keys+"receipt.pem"), os.Link(keys+"log.pem", keys+"receipt.pem"))
		}, "gate/receipt-key", "receipt.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := of.copy(t)
			mustChmod(t, l.dir)
			if c := l.directory(); c.Result != gate.CheckOK {
				t.Fatalf("before: %+v", c)
			}
			if err := c.spoil(filepath.Join(l.dir, "keys") + "/"); err != nil {
				t.Fatal(err)
			}
			if got := l.directory(); got.Result != gate.CheckBad || got.Code != c.code || got.Remedy == "" || !strings.Contains(got.Detail, c.says) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// mustChmod gives a copy of a data directory the modes of one.
func mustChmod(t *testing.T, dir string) {
	t.Helper()
	keys := filepath.Join(dir, "keys")
	entries, err := os.ReadDir(keys)
	err = errors.Join(err, os.Chmod(dir, 0o700), os.Chmod(keys, 0o700))
	for _, e := range entries {
		err = errors.Join(err, os.Chmod(filepath.Join(keys, e.Name()), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// directory tells what doctor says of the data directory.
func (l *lab) directory() gate.Check {
	l.t.Helper()
	checks, err := l.gate.Doctor(l.t.Context(), operator)
	if err != nil {
		l.t.Fatal(err)
	}
	return checkOf(checks, "data directory")
}

// TestDoctorLooksAtWhatWasKept edits rows that decide nothing.
func TestDoctorLooksAtWhatWasKept(t *testing.T) {
	of := approveOnce(t, 1)
	for name, edit := range map[string]string{
		"a root":                   `UPDATE trust_document SET document = x'7b7d' WHERE kind = 'root'`,
		"no root":                  `DELETE FROM trust_document WHERE kind = 'root'`,
		"a later root":             `UPDATE trust_document SET version = version + 1 WHERE kind = 'root'`,
		"revocations":              `UPDATE trust_document SET document = CAST(replace(CAST(document AS TEXT), '"', '''') AS BLOB) WHERE kind = 'revocations'`,
		"an older root":            `INSERT INTO trust_document SELECT kind, 0, document, 0 FROM trust_document WHERE kind = 'root'`,
		"a receipt":                `UPDATE load SET receipt = replace(receipt, '"blobs":1', '"blobs":2')`,
		"a receipt that is none":   `UPDATE load SET receipt = '{'`,
		"a place of what was put":  `UPDATE load SET repository = 'other' WHERE state = 'put'`,
		"a digest of what was put": `UPDATE load SET digest = 'sha256:' || substr('0000000000000000000000000000000000000000000000000000000000000000', 1) WHERE state = 'put'`,
		"something else was put":   `INSERT INTO load SELECT case_id, 'other', artifact, digest, repository, tag, 'put', receipt FROM load`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := of.copy(t)
			l.stopBeforeNames(1)
			if c := l.auditLog(); c.Result != gate.CheckOK {
				t.Fatalf("before: %+v", c)
			}
			l.edit(edit)
			l.clock.Advance(2 * time.Minute)
			if c := l.auditLog(); c.Result != gate.CheckBad || c.Remedy == "" || !strings.HasPrefix(c.Code, "audit/") && c.Code != "gate/row-damaged" {
				t.Errorf("after: %+v", c)
			}
		})
	}
}

// TestDoctorWhileStepsGoOn lets people go on with their work while doctor looks at
// what was kept: it has read one half of it, and what it reads next is newer.
func TestDoctorWhileStepsGoOn(t *testing.T) {
	of := approveOnce(t, 1)
	for at, goOn := range map[string]func(l *lab, f *testkit.Forged) error{
		"puts:between": func(l *lab, _ *testkit.Forged) error {
			_, err := l.gate.Release(l.t.Context(), operator, 1, nil)
			return err
		},
		"trust:between": func(l *lab, f *testkit.Forged) error {
			_, err := l.gate.UpdateTrust(l.t.Context(), gate.Console("root"), revoke(l.t, f, "plant-7"))
			return err
		},
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			l, f := of.copy(t)
			l.stopBeforeNames(1)
			between := 0
			l.fault = func(point string) error {
				if point != at {
					return nil
				}
				between++
				return goOn(l, f)
			}
			if c := l.auditLog(); c.Result != gate.CheckOK || between != 1 {
				t.Errorf("%d between: %+v", between, c)
			}
		})
	}
}

// TestReadsOfADamagedDatabase spoils pages, and takes a table away, under a gate
// that runs: who asks is told what is to be done, and not what SQLite says alone.
func TestReadsOfADamagedDatabase(t *testing.T) {
	of := approveOnce(t, 1)
	for name, edit := range map[string]string{
		"cases": `DROP TABLE cases`, "load": `DROP TABLE load`, "leaf": `DROP TABLE leaf`, "belief": `DROP TABLE belief`, "name": `DROP TABLE name`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := of.copy(t)
			if err := l.change(`PRAGMA foreign_keys = OFF; ` + edit); err != nil {
				t.Fatal(err)
			}
			_, list := l.gate.Cases(t.Context(), operator)
			_, one := l.gate.Case(t.Context(), operator, 1)
			_, trust := l.gate.TrustStatus(t.Context(), operator)
			_, release := l.gate.Release(t.Context(), operator, 1, nil)
			failed := 0
			for _, err := range []error{list, one, trust, release} {
				if err == nil {
					continue
				}
				failed++
				var remedied interface{ Remedy() string }
				if code := problem.CodeOf(err); code != "gate/database-broken" && code != "audit/broken" || !errors.As(err, &remedied) || remedied.Remedy() == "" {
					t.Errorf("%q: %v", code, err)
				}
			}
			if failed == 0 {
				t.Error("nobody noticed")
			}
		})
	}
}

// stopBeforeNames releases a case as far as its content, and not its names.
func (l *lab) stopBeforeNames(id gate.CaseID) {
	l.t.Helper()
	stop := errors.New("it stops here")
	l.fault = func(point string) error {
		if point == "publish:before" {
			return stop
		}
		return nil
	}
	if _, err := l.gate.Release(l.t.Context(), operator, id, nil); !errors.Is(err, stop) {
		l.t.Fatal(err)
	}
}
