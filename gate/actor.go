package gate

import (
	"slices"
	"strings"

	"github.com/packhof/packhof/internal/problem"
)

// Role is what an account is for.
type Role string

const (
	RoleOperator Role = "operator" // receives bundles and releases what was approved
	RoleReviewer Role = "reviewer" // reads everything, decides
	RoleOfficer  Role = "officer"  // security officer: decides, and releases what was approved
	RoleAuditor  Role = "auditor"  // reads everything, changes nothing
	RoleAdmin    Role = "admin"    // trust and accounts; decides nothing
)

// Roles lists every role.
func Roles() []Role { return []Role{RoleOperator, RoleReviewer, RoleOfficer, RoleAuditor, RoleAdmin} }

// Permission is one kind of thing that can be done at a gate.
type Permission string

const (
	MayRead       Permission = "read"
	MayReceive    Permission = "receive"
	MayDecide     Permission = "decide"
	MayRelease    Permission = "release"
	MayAdminister Permission = "administer"
)

// permissions is the one table. What is not in it is forbidden.
func permissions(r Role) []Permission {
	switch r {
	case RoleOperator:
		return []Permission{MayRead, MayReceive, MayRelease}
	case RoleReviewer:
		return []Permission{MayRead, MayDecide}
	case RoleOfficer:
		return []Permission{MayRead, MayDecide, MayRelease}
	case RoleAuditor:
		return []Permission{MayRead}
	case RoleAdmin:
		return []Permission{MayRead, MayAdminister}
	}
	return nil
}

// Actor is who does something: an account, a user of the operating system at
// the console, or nobody. Only the gate makes actors that are accounts.
type Actor struct {
	name    string
	account bool
	roles   []Role
	from    Address // where the account has just logged in
}

const osPrefix = "os:"

// Console is the user of the operating system who speaks to the gate on its
// own machine: over the socket, as the kernel names the peer, or in process.
// Who can read the data directory can do everything but decide.
func Console(user string) Actor { return Actor{name: osPrefix + user} }

// itself is the gate where nobody else acts: when it goes on after a restart.
func itself() Actor { return Actor{name: "gate", roles: []Role{RoleOperator}} }

// Name is how the audit log calls the actor: "anna", "os:root", "gate".
func (a Actor) Name() string { return a.name }

// Account reports whether somebody proved to be the holder of an account.
func (a Actor) Account() bool { return a.account }

// Roles of the account; none for a user at the console.
func (a Actor) Roles() []Role { return slices.Clone(a.roles) }

// person is who stands behind the actor: the account anna and the console user
// anna are taken for the same, so that nobody approves what they submitted.
func (a Actor) person() string { return strings.TrimPrefix(a.name, osPrefix) }

// May reports whether the actor has a permission.
func (a Actor) May(p Permission) bool {
	if strings.HasPrefix(a.name, osPrefix) && !a.account {
		return p != MayDecide
	}
	return slices.ContainsFunc(a.roles, func(r Role) bool { return slices.Contains(permissions(r), p) })
}

// needs refuses an actor who lacks a permission.
func (a Actor) needs(p Permission) error {
	switch {
	case a.May(p):
		return nil
	case a.name == "":
		return problem.New("login/needed", "nobody is logged in").Hint("log in")
	case p == MayDecide && !a.account:
		return problem.New("login/account-needed", "decisions need an account: %s is a user of the operating system", a.name).
			Hint("decide with an account: --as NAME, or in the browser")
	}
	return problem.New("login/forbidden", "the account %s may not do this", a.name).
		With("needed:  the permission to "+string(p), "roles:   "+rolesText(a.roles)).
		Hint("ask somebody who has such a role")
}

func rolesText(roles []Role) string {
	texts := make([]string, len(roles))
	for i, r := range roles {
		texts[i] = string(r)
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}
