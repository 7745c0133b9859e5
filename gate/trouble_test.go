package gate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

// TestTroublesOfADatabase has SQLite give its errors, and reads them.
func TestTroublesOfADatabase(t *testing.T) {
	for name, c := range map[string]struct{ before, do, code string }{
		"full":      {`PRAGMA max_page_count = 10`, `INSERT INTO x VALUES (zeroblob(100000))`, "gate/full"},
		"read-only": {`PRAGMA query_only = 1`, `INSERT INTO x VALUES (1)`, "gate/read-only"},
		"no table":  {`DROP TABLE x`, `INSERT INTO x VALUES (1)`, "gate/database-broken"},
		"our fault": {`SELECT 1`, `INSERT INTO`, ""},
	} {
		path := filepath.Join(t.TempDir(), "x.db")
		db, err := openSQLite(path, inMemory, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{`CREATE TABLE x (y)`, c.before} {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		_, err = db.ExecContext(t.Context(), c.do)
		if got := problem.CodeOf(databaseTrouble(path, err)); err == nil || got != c.code {
			t.Errorf("%s: %v is %q", name, err, got)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestADiskThatFails has SQLite fail to delete a file that it had made: a folder
// lies in its place.
func TestADiskThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := openSQLite(path, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{`PRAGMA journal_mode = DELETE`, `CREATE TABLE x (y)`, `BEGIN IMMEDIATE`, `INSERT INTO x VALUES (1)`} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	journal := path + "-journal"
	if err := errors.Join(os.Remove(journal), os.Mkdir(journal, 0o700)); err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `COMMIT`)
	if got := problem.CodeOf(databaseTrouble(path, err)); got != "gate/database-io" {
		t.Errorf("%v is %q", err, got)
	}
}

// TestTheConfigurationCounts: no column makes fewer people enough than the
// configuration says of a verdict.
func TestTheConfigurationCounts(t *testing.T) {
	g := &Gate{approvals: Approvals{Allow: 1, Review: 2}}
	for _, c := range []struct {
		verdict policy.Verdict
		column  int
		want    int
	}{
		{policy.Allow, 0, 1}, {policy.Review, 0, 2}, {policy.Review, 1, 2}, {policy.Review, 3, 3}, {"sideways", 0, 2}, {"", 0, 2},
	} {
		if got := g.wanted(&row{Summary: Summary{Verdict: c.verdict, Needed: c.column}}); got != c.want {
			t.Errorf("%q, %d: %d, want %d", c.verdict, c.column, got, c.want)
		}
	}
}
