package gate

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// Account is a person who can log in.
type Account struct {
	Name    string    `json:"name"`
	Roles   []Role    `json:"roles"`
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
}

var accountForm = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,39}$`)

func checkAccountName(name string) error {
	if !accountForm.MatchString(name) || name == "gate" {
		return problem.New("account/name", "%.60q cannot name an account", name).
			Hint("use up to 40 of a-z, 0-9, dot, hyphen and underscore, a letter first")
	}
	return nil
}

func checkRoles(roles []Role) error {
	if len(roles) == 0 {
		return problem.New("account/roles", "an account without a role could do nothing").Hint("name one of: %s", rolesText(Roles()))
	}
	for _, r := range roles {
		if !slices.Contains(Roles(), r) {
			return problem.New("account/roles", "there is no role %.60q", r).Hint("name one of: %s", rolesText(Roles()))
		}
	}
	return nil
}

// AddUser makes an account. Administrators and the console may.
func (g *Gate) AddUser(ctx context.Context, by Actor, name string, roles []Role, password []byte) error {
	if err := by.needs(MayAdminister); err != nil {
		return err
	}
	if err := errors.Join(checkAccountName(name), checkRoles(roles), checkPassword(password)); err != nil {
		return err
	}
	hash, err := g.hashed(ctx, password)
	if err != nil {
		return err
	}
	return g.step(ctx, "account.add", func(t *tx) error {
		there, err := exists(ctx, t, `SELECT 1 FROM account WHERE name = ?`, name)
		if err != nil {
			return err
		}
		if there {
			return problem.New("account/exists", "there is an account %s already", name).Hint("packhof-gate user passwd %s", name)
		}
		if err := t.putAccount(ctx, name, roles, hash); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: by.Name(), Type: "account.added", Outcome: outcomeOK, Detail: name + ": " + rolesText(roles)})
	})
}

func (t *tx) putAccount(ctx context.Context, name string, roles []Role, hash string) error {
	texts := make([]string, len(roles))
	for i, r := range roles {
		texts[i] = string(r)
	}
	if err := t.change(ctx, accountSubject(name)); err != nil {
		return err
	}
	now := seconds(t.now)
	_, err := t.ExecContext(ctx, `INSERT INTO account (name, roles, password, created, changed) VALUES (?, ?, ?, ?, ?)`,
		name, strings.Join(texts, " "), hash, now, now)
	return err
}

// SetPassword changes a password and ends the account's sessions. Everybody
// may change their own, administrators and the console anybody's.
func (g *Gate) SetPassword(ctx context.Context, by Actor, name string, password []byte) error {
	if !by.account || by.name != name {
		if err := by.needs(MayAdminister); err != nil {
			return err
		}
	}
	if err := checkPassword(password); err != nil {
		return err
	}
	hash, err := g.hashed(ctx, password)
	if err != nil {
		return err
	}
	return g.step(ctx, "account.password", func(t *tx) error {
		if err := t.change(ctx, accountSubject(name)); err != nil {
			return err
		}
		result, err := t.ExecContext(ctx, `UPDATE account SET password = ?, changed = ? WHERE name = ?`, hash, seconds(t.now), name)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, problem.New("account/unknown", "there is no account %.60q", name).Hint("packhof-gate user list"))
		}
		if _, err := t.ExecContext(ctx, `DELETE FROM session WHERE account = ?`, name); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: by.Name(), Type: "account.password", Outcome: outcomeOK, Detail: name})
	})
}

// Users lists the accounts by name.
func (g *Gate) Users(ctx context.Context, by Actor) ([]Account, error) {
	if err := by.needs(MayAdminister); err != nil {
		return nil, err
	}
	return rowsOf(ctx, g.db.read, func(s scanner) (Account, error) {
		var a Account
		var roles string
		var created, changed int64
		err := s.Scan(&a.Name, &roles, &created, &changed)
		a.Roles, a.Created, a.Changed = parseRoles(roles), fromSeconds(created), fromSeconds(changed)
		return a, err
	}, `SELECT name, roles, created, changed FROM account ORDER BY name`)
}

func parseRoles(text string) []Role {
	var roles []Role
	for name := range strings.FieldsSeq(text) {
		roles = append(roles, Role(name))
	}
	return roles
}

// Authenticate proves to the gate who somebody is. A wrong name and a wrong
// password give the same answer in the same time; after failures an account
// answers later and later to the address that they came from.
func (g *Gate) Authenticate(ctx context.Context, from Address, name string, password []byte) (Actor, error) {
	if len(password) > maxPassword || !accountForm.MatchString(name) {
		return Actor{}, loginFailed()
	}
	who := login{name, from}
	if err := g.login.mayTry(who, g.clock()); err != nil {
		return Actor{}, err
	}
	phc, roles := nobodysPassword, ""
	err := g.db.read.QueryRowContext(ctx, `SELECT password, roles FROM account WHERE name = ?`, name).Scan(&phc, &roles)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Actor{}, err
	}
	known := err == nil
	fits, err := g.hashInTurn(ctx, who, phc, password)
	if err != nil {
		return Actor{}, err
	}
	if known { // also where it does not fit: who edited the row may not find out by guessing
		if err := g.sealed(ctx, g.db.read, accountSubject(name)); err != nil {
			return Actor{}, err
		}
	}
	if !fits || !known {
		if !known { // what was typed may be a password in the wrong field
			return Actor{}, loginFailed()
		}
		return Actor{}, errors.Join(loginFailed(), g.logRefused(ctx, who))
	}
	g.login.succeeded(who, g.clock())
	return Actor{name: name, account: true, roles: parseRoles(roles), from: from}, nil
}

// hashInTurn compares one password at a time, since hashing takes memory on
// purpose. Who waited for the turn may have failed too often meanwhile.
func (g *Gate) hashInTurn(ctx context.Context, who login, phc string, password []byte) (bool, error) {
	done, err := g.login.turn(ctx, who.from)
	if err != nil {
		return false, err
	}
	defer done()
	if err := g.login.mayTry(who, g.clock()); err != nil {
		return false, err
	}
	fits := passwordFits(phc, password) && phc != nobodysPassword
	if !fits {
		g.login.failed(who, g.clock())
	}
	return fits, nil
}

// hashed hashes a new password, in turn with those that are compared.
func (g *Gate) hashed(ctx context.Context, password []byte) (string, error) {
	done, err := g.login.turn(ctx, everywhere)
	if err != nil {
		return "", err
	}
	defer done()
	return hashPassword(password), nil
}

func loginFailed() error {
	return problem.New("login/failed", "name or password is wrong").Hint("try again; an administrator can set a new one: packhof-gate user passwd NAME")
}

func (g *Gate) logRefused(ctx context.Context, who login) error {
	return g.step(ctx, "login", func(t *tx) error {
		return t.log(ctx, leaf{Actor: who.name, Type: typeLogin, Outcome: outcomeRefused, Detail: who.name, Data: loginFrom{who.from}})
	})
}

// Bounds of a session.
const (
	sessionLongest = 12 * time.Hour
	sessionIdle    = time.Hour
)

// StartSession gives the secret of a new session of an account.
func (g *Gate) StartSession(ctx context.Context, a Actor) (string, error) {
	if !a.account {
		return "", problem.New("login/account-needed", "sessions are for accounts")
	}
	secret := make([]byte, 32)
	rand.Read(secret) // never fails, or ends the program
	token := hex.EncodeToString(secret)
	return token, g.step(ctx, "session.start", func(t *tx) error {
		now := seconds(t.now)
		if _, err := t.ExecContext(ctx, `DELETE FROM session WHERE started < ? OR used < ?`, now-int64(sessionLongest.Seconds()), now-int64(sessionIdle.Seconds())); err != nil {
			return err
		}
		if _, err := t.ExecContext(ctx, `INSERT INTO session (token, account, started, used) VALUES (?, ?, ?, ?)`, sessionKey(token), a.name, now, now); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: a.Name(), Type: typeLogin, Outcome: outcomeOK, Detail: a.name, Data: loginFrom{a.from}})
	})
}

// sessionKey is what the database knows of a secret: who reads it cannot log in.
func sessionKey(token string) string { return cas.DigestOf([]byte(token)).Hex() }

// Session tells whose session it is, and prolongs it.
func (g *Gate) Session(ctx context.Context, token string) (Actor, error) {
	over := problem.New("login/needed", "the session is over").Hint("log in")
	var name, roles string
	var started, used int64
	err := g.db.read.QueryRowContext(ctx, `SELECT a.name, a.roles, s.started, s.used FROM session s JOIN account a ON a.name = s.account WHERE s.token = ?`, sessionKey(token)).
		Scan(&name, &roles, &started, &used)
	if errors.Is(err, sql.ErrNoRows) {
		return Actor{}, over
	}
	if err != nil {
		return Actor{}, err
	}
	now := g.clock()
	if now.Sub(fromSeconds(started)) > sessionLongest || now.Sub(fromSeconds(used)) > sessionIdle {
		return Actor{}, over
	}
	if err := g.sealed(ctx, g.db.read, accountSubject(name)); err != nil {
		return Actor{}, err
	}
	if now.Sub(fromSeconds(used)) > time.Minute {
		if err := g.db.alone(ctx, func(writer *sql.Conn) error {
			_, err := writer.ExecContext(ctx, `UPDATE session SET used = ? WHERE token = ?`, seconds(now), sessionKey(token))
			return err
		}); err != nil {
			return Actor{}, g.trouble(err)
		}
	}
	return Actor{name: name, account: true, roles: parseRoles(roles)}, nil
}

// EndSession forgets a session.
func (g *Gate) EndSession(ctx context.Context, token string) error {
	return g.step(ctx, "session.end", func(t *tx) error {
		var name string
		err := t.QueryRowContext(ctx, `DELETE FROM session WHERE token = ? RETURNING account`, sessionKey(token)).Scan(&name)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: name, Type: "account.logout", Outcome: outcomeOK, Detail: name})
	})
}
