package gate

import "context"

// DropRole takes the role of deciding from an account, with all that a step
// says about it. No command does that yet.
func DropRole(ctx context.Context, g *Gate, name string) error {
	return g.step(ctx, "test", func(t *tx) error {
		if err := t.change(ctx, accountSubject(name)); err != nil {
			return err
		}
		if _, err := t.ExecContext(ctx, `UPDATE account SET roles = ? WHERE name = ?`, RoleAuditor, name); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: "gate", Type: "account.added", Outcome: outcomeOK, Detail: name})
	})
}
