package gate_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

func TestLogin(t *testing.T) {
	l := newLab(t)
	for name, c := range map[string]struct{ account, password, code string }{
		"right":            {"anna", password, ""},
		"wrong password":   {"anna", password + "x", "login/failed"},
		"unknown account":  {"bertha", password, "login/failed"},
		"no name":          {"", password, "login/failed"},
		"a strange name":   {"anna'--", password, "login/failed"},
		"an endless input": {"anna", strings.Repeat("x", 1<<20), "login/failed"},
	} {
		if _, err := l.gate.Authenticate(t.Context(), "test", c.account, []byte(c.password)); problem.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// guess tries a wrong password, and tells how it was refused.
func (l *lab) guess(from gate.Address, name string) string {
	_, err := l.gate.Authenticate(l.t.Context(), from, name, []byte("wrong, wrong"))
	return problem.CodeOf(err)
}

func (l *lab) login(from gate.Address, name string) string {
	_, err := l.gate.Authenticate(l.t.Context(), from, name, []byte(password))
	return problem.CodeOf(err)
}

func TestFailedLoginsSlowDown(t *testing.T) {
	l := newLab(t)
	for range 5 {
		if code := l.guess("192.0.2.1", "anna"); code != "login/failed" {
			t.Fatal(code)
		}
	}
	if code := l.login("192.0.2.1", "anna"); code != "login/wait" {
		t.Errorf("at once: %q", code)
	}
	if code := l.login("192.0.2.2", "anna"); code != "" {
		t.Errorf("at another address: %q", code)
	}
	l.clock.Advance(2 * time.Second)
	if code := l.login("192.0.2.1", "anna"); code != "" {
		t.Errorf("after the pause: %q", code)
	}
}

// TestStrangersKeepNobodyOut guesses from many addresses: that slows down who
// was never seen, and nobody else.
func TestStrangersKeepNobodyOut(t *testing.T) {
	l := newLab(t)
	const desk = "192.0.2.1"
	if code := l.login(desk, "anna"); code != "" {
		t.Fatal(code)
	}
	refused := 0
	for i := range 30 {
		if l.guess(gate.Address(fmt.Sprintf("198.51.100.%d", i)), "anna") == "login/wait" {
			refused++
		}
	}
	if refused != 10 {
		t.Errorf("%d of 30 guesses were not even compared, want 10", refused)
	}
	if code := l.login(desk, "anna"); code != "" {
		t.Errorf("at her desk: %q", code)
	}
	if code := l.login("203.0.113.9", "anna"); code != "login/wait" {
		t.Errorf("where she never was: %q", code)
	}
	l.clock.Advance(time.Minute)
	if code := l.login("203.0.113.9", "anna"); code != "" {
		t.Errorf("there, a minute later: %q", code)
	}
	for range 10 {
		l.guess(desk, "anna")
	}
	if code := l.login(desk, "anna"); code != "login/wait" {
		t.Errorf("guessed at her desk: %q", code)
	}
}

func TestSessionsEnd(t *testing.T) {
	l := newLab(t)
	start := func() string {
		token, err := l.gate.StartSession(t.Context(), l.anna())
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	over := func(token, why string) {
		t.Helper()
		if _, err := l.gate.Session(t.Context(), token); problem.CodeOf(err) != "login/needed" {
			t.Errorf("%s: %v", why, err)
		}
	}
	token := start()
	if a, err := l.gate.Session(t.Context(), token); err != nil || a.Name() != "anna" || !a.Account() {
		t.Fatalf("%+v, %v", a, err)
	}
	over("0000", "a guess")
	if err := l.gate.EndSession(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	over(token, "logged out")
	token = start()
	for range 13 { // used all the time, and still not for ever
		l.clock.Advance(55 * time.Minute)
		if _, err := l.gate.Session(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	l.clock.Advance(55 * time.Minute)
	over(token, "a long day")
	token = start()
	l.clock.Advance(2 * time.Hour)
	over(token, "left alone")
	token = start()
	if err := l.gate.SetPassword(t.Context(), gate.Console("root"), "anna", []byte("another one, longer")); err != nil {
		t.Fatal(err)
	}
	over(token, "a new password")
	if _, err := l.gate.Authenticate(t.Context(), "test", "anna", []byte(password)); problem.CodeOf(err) != "login/failed" {
		t.Errorf("the old password: %v", err)
	}
}

func TestT72SecretsAreNotInTheDatabase(t *testing.T) {
	l := newLab(t)
	token, err := l.gate.StartSession(t.Context(), l.anna())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.gate.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gate.db", "gate.db-wal"} {
		b, err := os.ReadFile(filepath.Join(l.dir, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for what, secret := range map[string]string{"password": password, "session": token} {
			if strings.Contains(string(b), secret) {
				t.Errorf("the %s stands in %s", what, name)
			}
		}
	}
}

func TestAccountsThatCannotBe(t *testing.T) {
	l := newLab(t)
	for name, c := range map[string]struct {
		account, password string
		roles             []gate.Role
		code              string
	}{
		"short password": {"berta", "short", gate.Roles(), "account/password"},
		"bad name":       {"Berta B", password, gate.Roles(), "account/name"},
		"the gate":       {"gate", password, gate.Roles(), "account/name"},
		"no role":        {"berta", password, nil, "account/roles"},
		"unknown role":   {"berta", password, []gate.Role{"king"}, "account/roles"},
		"there already":  {"anna", password, gate.Roles(), "account/exists"},
	} {
		if err := l.gate.AddUser(t.Context(), gate.Console("root"), c.account, c.roles, []byte(c.password)); problem.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

// TestChangedLogIsFound edits one record, as somebody with access to the file
// could.
func TestChangedLogIsFound(t *testing.T) {
	l := newLab(t)
	l.trust(l.forge(nil))
	if err := l.gate.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(l.dir, "gate.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE leaf SET bytes = CAST(replace(CAST(bytes AS TEXT), 'os:root', 'os:toor') AS BLOB) WHERE n = 1`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.opening(); problem.CodeOf(err) != "audit/broken" {
		t.Errorf("%v", err)
	}
}

func TestInitTakesNoFolderThatIsInUse(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letter.txt"), []byte("dear all"), 0o600); err != nil {
		t.Fatal(err)
	}
	params := gate.InitParams{Owner: "x", Account: "anna", Password: []byte(password), Now: time.Now(), Program: "test"}
	if _, err := gate.Init(t.Context(), dir, params); problem.CodeOf(err) != "config/exists" {
		t.Errorf("%v", err)
	}
	l := newLab(t)
	if _, err := gate.Init(t.Context(), l.dir, params); problem.CodeOf(err) != "config/exists" {
		t.Errorf("a gate's: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "letter.txt")); err != nil || string(b) != "dear all" {
		t.Errorf("the letter: %q, %v", b, err)
	}
}
