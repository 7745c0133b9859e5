package gate

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/policy"
)

// Check is one line of what doctor found.
type Check struct {
	Name   string `json:"name"`
	Result string `json:"result"` // ok, warning or failed
	Detail string `json:"detail"`
	Remedy string `json:"remedy"` // one thing to do; "" if ok
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
		g.doctorDirectory, g.doctorSpace, g.doctorTrust, g.doctorClock, g.doctorLog, g.doctorPolicy, g.doctorPeople, g.doctorDestinations, g.doctorCases,
	}
	found := make([]Check, len(checks))
	for i, check := range checks {
		found[i] = check(ctx)
	}
	return found, nil
}

func ok(name, format string, args ...any) Check {
	return Check{Name: name, Result: CheckOK, Detail: fmt.Sprintf(format, args...)}
}

func failedCheck(name string, err error) Check {
	p := asProblem(err)
	return Check{Name: name, Result: CheckBad, Detail: p.What, Remedy: p.Remedy}
}

func (g *Gate) doctorDirectory(context.Context) Check {
	const name = "data directory"
	for path, forbidden := range map[string]fs.FileMode{g.dir: 0o077, filepath.Join(g.dir, dirKeys): 0o077, filepath.Join(g.dir, dirKeys, "receipt.pem"): 0o077, filepath.Join(g.dir, dirKeys, "log.pem"): 0o077} {
		info, err := os.Stat(path)
		if err != nil {
			return failedCheck(name, err)
		}
		if info.Mode()&forbidden != 0 {
			return Check{name, CheckBad, fmt.Sprintf("others may use %s (%s)", path, info.Mode()), "chmod go= " + path}
		}
	}
	return ok(name, "%s, for its owner only", g.dir)
}

const littleSpace = 5 << 30

func (g *Gate) doctorSpace(context.Context) Check {
	const name = "space"
	free, err := bundle.FreeSpace(g.store.Dir())
	if err != nil {
		return failedCheck(name, err)
	}
	if free < littleSpace {
		return Check{name, CheckWarning, fmt.Sprintf("%d MiB free in %s", free>>20, g.store.Dir()), "free space, or move the data directory to a larger disk"}
	}
	return ok(name, "%d GiB free", free>>30)
}

const soonExpires = 60 * 24 * time.Hour

func (g *Gate) doctorTrust(ctx context.Context) Check {
	const name = "trust root"
	trust, err := needTrust(ctx, g.db.read)
	if err != nil {
		return failedCheck(name, err)
	}
	root, now := trust.Root(), g.clock()
	switch {
	case root.Expired(now):
		return Check{name, CheckBad, fmt.Sprintf("version %d is out of date since %s", root.Version(), bundle.At(root.Expires())), "bring a new version: packhof-gate trust update FILE"}
	case root.Expired(now.Add(soonExpires)):
		return Check{name, CheckWarning, fmt.Sprintf("version %d ends at %s", root.Version(), bundle.At(root.Expires())), "ask for a new version"}
	}
	if _, known := root.Gate(g.id); !known {
		return Check{name, CheckWarning, "it does not know this gate yet", "give enrol.json to the connected side: packhof trust add-gate enrol.json"}
	}
	return ok(name, "version %d, revocations version %d, until %s", root.Version(), trust.Revocations().Version(), bundle.At(root.Expires()))
}

func (g *Gate) doctorClock(ctx context.Context) Check {
	const name = "clock"
	floor, err := floorOf(ctx, g.db.read)
	if err != nil {
		return failedCheck(name, err)
	}
	if wall := g.clock(); wall.Add(slack).Before(floor) {
		return Check{name, CheckBad, fmt.Sprintf("it says %s, and it is certainly %s or later", bundle.At(wall), bundle.At(floor)), "set the clock of this machine"}
	}
	if floor.Unix() <= 0 {
		return ok(name, "nothing signed says anything about the time yet")
	}
	return ok(name, "not before %s", bundle.At(floor))
}

func (g *Gate) doctorLog(ctx context.Context) Check {
	size, root, err := g.checkedLog(ctx)
	if err != nil {
		return failedCheck("audit log", err)
	}
	return ok("audit log", "%d entries, tree %s", size, root)
}

func (g *Gate) doctorPolicy(context.Context) Check {
	return ok("policy", "%d rules, %s", len(g.policy.Rules()), g.policy.Digest())
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
		return Check{name, CheckBad, fmt.Sprintf("%d may decide, and %d approvals are needed: nothing could ever be released", deciders, need), "packhof-gate user add NAME --role officer"}
	}
	return ok(name, "%d may decide", deciders)
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
		return Check{name, CheckBad, "there is none: nothing can be released", "configure destinations in gate.yaml"}
	}
	return ok(name, "%s", strings.Join(names, ", "))
}

func (g *Gate) doctorCases(ctx context.Context) Check {
	const name = "cases"
	states, err := rowsOf(ctx, g.db.read, func(s scanner) (string, error) {
		var state string
		var n int
		err := s.Scan(&state, &n)
		return fmt.Sprintf("%d %s", n, state), err
	}, `SELECT state, count(*) FROM cases WHERE state IN ('partly loaded', 'check failed', 'damaged', 'loading') GROUP BY state ORDER BY state`)
	if err != nil {
		return failedCheck(name, err)
	}
	if len(states) > 0 {
		return Check{name, CheckWarning, strings.Join(states, ", "), "packhof-gate list"}
	}
	return ok(name, "none is stuck")
}
