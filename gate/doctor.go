package gate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

// Check is one line of what doctor found.
type Check struct {
	Name   string `json:"name"`
	Result string `json:"result"` // ok, warning or failed
	Detail string `json:"detail"`
	Remedy string `json:"remedy"` // one thing to do; "" if ok

	Said Sentence `json:"said,omitzero"` // Detail, where the gate itself says it
	Code string   `json:"code,omitzero"` // of the problem, where Detail tells of one
}

// Results of a Check.
const (
	CheckOK      = "ok"
	CheckWarning = "warning"
	CheckBad     = "failed"
)

// Doctor looks at everything that a gate needs to do its work. It changes
// nothing.
func (g *Gate) Doctor(ctx context.Context, by Actor) ([]Check, error) {
	if err := by.needs(MayRead); err != nil {
		return nil, err
	}
	checks := []func(context.Context) Check{
		g.doctorDirectory, g.doctorSpace, g.doctorDatabase, g.doctorTrust, g.doctorClock, g.doctorLog, g.doctorPolicy, g.doctorPeople, g.doctorDestinations, g.doctorCases,
	}
	found := make([]Check, len(checks))
	for i, check := range checks {
		found[i] = check(ctx)
	}
	return found, nil
}

func ok(name string, s Sentence) Check { return found(name, CheckOK, s, "") }

// found is a check of which the gate itself says what it found.
func found(name, result string, s Sentence, remedy string) Check {
	return Check{Name: name, Result: result, Detail: s.String(), Remedy: remedy, Said: s}
}

func failedCheck(name string, err error) Check {
	p := asProblem(err)
	return Check{Name: name, Result: CheckBad, Detail: p.What, Remedy: p.Remedy, Code: p.Code}
}

func (g *Gate) doctorDirectory(context.Context) Check {
	const name = "data directory"
	paths := []string{g.dir, filepath.Join(g.dir, dirKeys)}
	for _, key := range []string{fileReceiptKey, fileLogKey, fileAgeKey} {
		paths = append(paths, filepath.Join(g.dir, dirKeys, key))
	}
	identity, err := readIdentity(g.dir)
	if err == nil {
		_, err = g.receiptSigner()
	}
	if err != nil {
		return failedCheck(name, err)
	}
	if identity == nil { // of a gate that has not been opened since there are such keys
		paths = paths[:len(paths)-1]
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return failedCheck(name, err)
		}
		if info.Mode()&0o077 != 0 {
			return found(name, CheckBad, said("others may use {path} ({mode})", "path", path, "mode", info.Mode()), "chmod go= "+path)
		}
	}
	return ok(name, said("{path}, for its owner only", "path", g.dir))
}

const littleSpace = 5 << 30

// doctorSpace looks at the disk of the database, and at the one of the store:
// on the first there must be room to write anything down.
func (g *Gate) doctorSpace(context.Context) Check {
	const name = "space"
	free, err := bundle.FreeSpace(g.dir)
	if err != nil {
		return failedCheck(name, err)
	}
	if free < roomForSteps {
		return found(name, CheckBad, said("{bytes} bytes free in {path}, and up to {needed} are needed to write anything down", "bytes", free, "path", g.dir, "needed", roomForSteps), "free space, or move the data directory to a larger disk")
	}
	path := filepath.Join(g.dir, dirStore)
	if free, err = bundle.FreeSpace(path); err != nil {
		return failedCheck(name, err)
	}
	if free < littleSpace {
		return found(name, CheckWarning, said("{n} MiB free in {path}", "n", free>>20, "path", path), "free space, or move the data directory to a larger disk")
	}
	return ok(name, said("{n} GiB free", "n", free>>30))
}

// doctorDatabase asks whether the file is the one that is open, whether it is
// whole, and whether it can be written.
func (g *Gate) doctorDatabase(ctx context.Context) Check {
	const name = "database"
	err := g.db.alone(ctx, func(writer *sql.Conn) error {
		tx, err := writer.BeginTx(ctx, nil) // which is what a file that can only be read refuses
		if err == nil {
			err = rolledBack(tx)
		}
		return err
	})
	if err == nil {
		err = wholeDatabase(ctx, g.db.read)
	}
	if err != nil {
		return failedCheck(name, g.trouble(err))
	}
	return ok(name, said("{path} is whole", "path", g.db.path))
}

// wholeDatabase looks at tables and pages of a database.
func wholeDatabase(ctx context.Context, q queryer) error {
	if err := checkTables(ctx, q); err != nil {
		return err
	}
	return wholePages(ctx, q)
}

// wholePages looks at the pages of a database, of whatever version.
func wholePages(ctx context.Context, q queryer) error {
	var found string
	if err := q.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return problem.New(codeBroken, "the database cannot be read: %s", found).Hint("%s", restoreHint)
	}
	return nil
}

const soonExpires = 60 * 24 * time.Hour

func (g *Gate) doctorTrust(ctx context.Context) Check {
	const name = "trust root"
	trust, err := g.needTrust(ctx, g.db.read)
	if err != nil {
		return failedCheck(name, err)
	}
	root, now := trust.Root(), g.clock()
	switch {
	case root.Expired(now):
		return found(name, CheckBad, said("version {version} is out of date since {at}", "version", root.Version(), "at", root.Expires()), "bring a new version: packhof-gate trust update FILE")
	case root.Expired(now.Add(soonExpires)):
		return found(name, CheckWarning, said("version {version} ends at {at}", "version", root.Version(), "at", root.Expires()), "ask for a new version")
	}
	if _, known := root.Gate(g.id); !known {
		return found(name, CheckWarning, said("it does not know this gate yet"), "give enrol.json to the connected side: packhof trust add-gate enrol.json")
	}
	return ok(name, said("version {version}, revocations version {revocations}, until {at}", "version", root.Version(), "revocations", trust.Revocations().Version(), "at", root.Expires()))
}

func (g *Gate) doctorClock(ctx context.Context) Check {
	const name = "clock"
	floor, err := floorOf(ctx, g.db.read)
	if err != nil {
		return failedCheck(name, err)
	}
	if wall := g.clock(); wall.Add(slack).Before(floor) {
		return found(name, CheckBad, said("it says {wall}, and it is certainly {floor} or later", "wall", wall, "floor", floor), "set the clock of this machine")
	}
	if floor.Unix() <= 0 {
		return ok(name, said("nothing signed says anything about the time yet"))
	}
	return ok(name, said("not before {floor}", "floor", floor))
}

func (g *Gate) doctorLog(ctx context.Context) Check {
	size, root, err := g.checkedLog(ctx)
	if err == nil {
		err = g.checkRows(ctx)
	}
	if err != nil {
		return failedCheck("audit log", err)
	}
	return ok("audit log", counted(size, "{n} entry, tree {root}", "{n} entries, tree {root}", "root", root))
}

func (g *Gate) doctorPolicy(context.Context) Check {
	return ok("policy", counted(len(g.policy.Rules()), "{n} rule, {digest}", "{n} rules, {digest}", "digest", g.policy.Digest()))
}

// doctorPeople asks whether anything could ever be released: whether as many
// people may decide as have to.
func (g *Gate) doctorPeople(ctx context.Context) Check {
	const name = "people"
	roles, err := rowsOf(ctx, g.db.read, func(s scanner) (string, error) {
		var text string
		return text, s.Scan(&text)
	}, `SELECT roles FROM account`)
	if err != nil {
		return failedCheck(name, err)
	}
	deciders := 0
	for _, text := range roles {
		if (Actor{account: true, name: "x", roles: parseRoles(text)}).May(MayDecide) {
			deciders++
		}
	}
	if need := max(g.needed(policy.Allow), g.needed(policy.Review)); deciders < need {
		return found(name, CheckBad, said("{n} may decide, and {needed} approvals are needed: nothing could ever be released", "n", deciders, "needed", need), "packhof-gate user add NAME --role officer")
	}
	return ok(name, counted(deciders, "{n} person may decide", "{n} people may decide"))
}

func (g *Gate) doctorDestinations(ctx context.Context) Check {
	const name = "destinations"
	var names []string
	for i := range g.destinations {
		d := &g.destinations[i]
		// With nothing to plan, a Sink still asks whether it would be let in.
		if _, err := d.Sink.Plan(ctx, &Release{destination: d.Name}); err != nil {
			c := failedCheck(name, err)
			c.Detail = d.Name + ": " + c.Detail
			return c
		}
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		return found(name, CheckBad, said("there is none: nothing can be released"), "configure destinations in gate.yaml")
	}
	return ok(name, said("{destinations}", "destinations", strings.Join(names, ", ")))
}

// doctorCases looks for rows that cannot be right, and for cases that are stuck.
func (g *Gate) doctorCases(ctx context.Context) Check {
	const name = "cases"
	ids, err := rowsOf(ctx, g.db.read, scanNumber, `SELECT id FROM cases ORDER BY id`)
	if err != nil {
		return failedCheck(name, g.trouble(err))
	}
	stuck, wrong, spoilt := map[State]int64{}, []string{}, []string{}
	for _, id := range ids {
		r, err := rowOf(ctx, g.db.read, id)
		switch {
		case isRowDamaged(err) && r.ended && g.sealed(ctx, g.db.read, caseSubject(id)) == nil: // people have seen to it
		case isRowDamaged(err):
			wrong = append(wrong, err.Error())
		case err != nil:
			return failedCheck(name, g.trouble(err))
		case r.State == PartlyLoaded || r.State == CheckFailed || r.State == Damaged || r.State == Loading:
			stuck[r.State]++
		}
		if err == nil && g.headSpoilt(ctx, id) != nil {
			spoilt = append(spoilt, fmt.Sprint(id))
		}
	}
	if len(wrong) > 0 {
		return failedCheck(name, damagedRow(problem.New(codeRowDamaged, "%s", someOf(wrong))))
	}
	if len(spoilt) > 0 {
		return failedCheck(name, problem.New(codeRowDamaged, "what was kept of the heads of these cases cannot be right: %s", strings.Join(spoilt, ", ")).
			Hint("receive their bundles again: that brings their heads back"))
	}
	forgotten, err := g.forgotten(ctx)
	if err != nil {
		return failedCheck(name, g.trouble(err))
	}
	if len(forgotten) > 0 {
		return found(name, CheckWarning, counted(len(forgotten), "case {cases} is all here and has not gone on", "cases {cases} are all here and have not gone on", "cases", numbersText(forgotten)),
			"receive any volume of it once more, or restart packhof-gate serve")
	}
	if len(stuck) == 0 {
		return ok(name, said("none is stuck"))
	}
	return found(name, CheckWarning, said("partly loaded: {partly}, check failed: {failed}, damaged: {damaged}, loading: {loading}",
		"partly", stuck[PartlyLoaded], "failed", stuck[CheckFailed], "damaged", stuck[Damaged], "loading", stuck[Loading]), "packhof-gate list")
}

// headSpoilt tells what of the head of a case is not what came. What else stands
// against its bundle, such as a revocation, is no matter of Doctor; nor are trust
// and floor here, of which it speaks elsewhere.
func (g *Gate) headSpoilt(ctx context.Context, id CaseID) error {
	_, err := headOf(ctx, g.db.read, id)
	if err == nil && g.anchor != nil { // or else the directory is only looked at
		_, trustErr := g.needTrust(ctx, g.db.read)
		_, floorErr := floorOf(ctx, g.db.read)
		if errors.Join(trustErr, floorErr) == nil {
			_, err = g.bundleOf(ctx, g.db.read, id)
		}
	}
	if isRowDamaged(err) {
		return err
	}
	return nil
}

// someOf is the first of many sentences, and how many there are.
func someOf(list []string) string {
	some := strings.Join(list[:min(len(list), maxEvidence)], "; ")
	if more := len(list) - maxEvidence; more > 0 {
		some += fmt.Sprintf("; and %d more", more)
	}
	return some
}

// DoctorClosed looks at a data directory that cannot be opened, because of
// failure: at all that can be looked at without. It changes nothing. Nobody
// else may have the directory.
func DoctorClosed(ctx context.Context, dir string, failure error) []Check {
	g := &Gate{dir: dir}
	checks := []Check{failedCheck("gate", failure), g.doctorDirectory(ctx), g.doctorSpace(ctx)}
	if err := hasDatabase(dir); err != nil {
		return append(checks, failedCheck("database", err))
	}
	path := filepath.Join(dir, fileDatabase)
	read, err := openSQLiteToLook(path)
	if err != nil {
		return append(checks, failedCheck("database", databaseTrouble(path, err)))
	}
	g.db = &database{read: read, path: path}
	if err := wholeDatabase(ctx, read); err != nil {
		checks = append(checks, failedCheck("database", g.trouble(err)))
	} else {
		checks = append(checks, ok("database", said("{path} is whole", "path", path)), g.doctorCases(ctx))
	}
	if err := read.Close(); err != nil {
		checks = append(checks, failedCheck("database", err))
	}
	return checks
}
