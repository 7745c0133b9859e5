package gate

import (
	"context"
	"fmt"
)

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

// EditCase changes rows of a case and has the audit log vouch for them: what is
// refused then, is refused without its help.
func EditCase(ctx context.Context, g *Gate, id CaseID, statement string) error {
	return g.step(ctx, "test", func(t *tx) error {
		if err := t.change(ctx, caseSubject(id)); err != nil {
			return err
		}
		if _, err := t.ExecContext(ctx, statement); err != nil {
			return err
		}
		return t.log(ctx, leaf{Actor: "gate", Type: "test", Outcome: outcomeOK, Case: id})
	})
}

// FillDisk lets the database grow no more, as a full disk does.
func FillDisk(ctx context.Context, g *Gate) error {
	var pages int64
	if err := g.db.write.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&pages); err != nil {
		return err
	}
	_, err := g.db.write.ExecContext(ctx, fmt.Sprintf(`PRAGMA max_page_count = %d`, pages))
	return err
}

// Listed tells which of several bundles a receipt can list, by how much each of
// them lacks.
func Listed(lacks ...int) []bool {
	left := room(mostLacks)
	var listed []bool
	for _, n := range lacks {
		listed = append(listed, left.take(n))
	}
	return listed
}
