package gate_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/signing"
)

func (l *lab) user(name string, roles ...gate.Role) gate.Actor {
	l.t.Helper()
	if err := l.gate.AddUser(l.t.Context(), gate.Console("root"), name, roles, []byte(password)); err != nil {
		l.t.Fatal(err)
	}
	actor, err := l.gate.Authenticate(l.t.Context(), "test", name, []byte(password))
	if err != nil {
		l.t.Fatal(err)
	}
	return actor
}

// waiting is a gate with one case that people have to decide about.
func waiting(t *testing.T, needs int) (*lab, *testkit.Forged, gate.CaseID, string) {
	l := newLab(t)
	l.needs.Review = needs
	l.restart()
	f := l.forge(nil)
	l.trust(f)
	id := l.mustReceive(f).ID
	return l, f, id, mustReview(l, id).Digest
}

func TestT46WhoMayNotDecide(t *testing.T) {
	l, _, id, digest := waiting(t, 1)
	otto := l.user("otto", gate.RoleOfficer) // the account of the one who brought it in
	for _, c := range []struct {
		name   string
		by     gate.Actor
		choice gate.Choice
		review string
		reason string
		code   string
	}{
		{"nobody", gate.Actor{}, gate.Approve, digest, "x", "login/needed"},
		{"the console", gate.Console("root"), gate.Approve, digest, "x", "login/account-needed"},
		{"the submitter's account", otto, gate.Approve, digest, "x", "case/own"},
		{"an auditor", l.user("auditor", gate.RoleAuditor), gate.Approve, digest, "x", "login/forbidden"},
		{"an operator", l.user("operator", gate.RoleOperator), gate.Reject, digest, "x", "login/forbidden"},
		{"another page", l.anna(), gate.Approve, "sha256:00", "x", "case/review-changed"},
		{"without a reason", l.anna(), gate.Approve, digest, " ", "case/reason"},
		{"no choice", l.anna(), "maybe", digest, "x", "case/choice"},
	} {
		if _, err := l.gate.Decide(t.Context(), c.by, id, c.choice, c.review, c.reason); problem.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
	if c, err := l.gate.Case(t.Context(), operator, id); err != nil || c.State != gate.Awaiting || c.Approvals != 0 {
		t.Errorf("after all that: %+v, %v", c, err)
	}
}

func TestT46TwoPeopleOrNone(t *testing.T) {
	l, _, id, digest := waiting(t, 2)
	anna, berta := l.anna(), l.user("berta", gate.RoleReviewer)
	approve := func(by gate.Actor) error {
		_, err := l.gate.Decide(t.Context(), by, id, gate.Approve, digest, "known")
		return err
	}
	var wait sync.WaitGroup
	results := make([]error, 20)
	for i := range results {
		wait.Go(func() { results[i] = approve(anna) })
	}
	wait.Wait()
	good := slices.DeleteFunc(results, func(err error) bool { return problem.CodeOf(err) == "case/decided-already" })
	if len(good) != 1 || good[0] != nil {
		t.Fatalf("twenty approvals of one person: %v", good)
	}
	if _, err := l.gate.Release(t.Context(), operator, id, nil); problem.CodeOf(err) != "case/waiting" {
		t.Errorf("released with one of two: %v", err)
	}
	if err := approve(berta); err != nil {
		t.Fatal(err)
	}
	l.dropRole("berta")
	if _, err := l.gate.Release(t.Context(), operator, id, nil); problem.CodeOf(err) != "case/waiting" {
		t.Errorf("released with an approval by someone who may no longer decide: %v", err)
	}
}

func (l *lab) dropRole(name string) {
	l.t.Helper()
	if err := gate.DropRole(l.t.Context(), l.gate, name); err != nil {
		l.t.Fatal(err)
	}
}

// TestT46AnyChangeVoidsAnApproval approves, changes what was approved, and
// tries to release.
func TestT46AnyChangeVoidsAnApproval(t *testing.T) {
	for name, change := range map[string]func(*lab, *testkit.Forged){
		"more approvals are needed": func(l *lab, _ *testkit.Forged) {
			l.needs.Review = 2
			l.restart()
		},
		"a revocation came in": func(l *lab, f *testkit.Forged) {
			if _, err := l.gate.UpdateTrust(l.t.Context(), gate.Console("root"), revoke(l.t, f, "plant-9")); err != nil {
				l.t.Fatal(err)
			}
		},
		"another destination": func(l *lab, _ *testkit.Forged) {
			l.more = append(l.more, gate.Destination{Name: "second", Accepts: allKinds(), Naming: gate.DefaultNaming(), Sink: newShelf()})
			l.restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, f, id, digest := waiting(t, 1)
			l.approve(id)
			change(l, f)
			got, err := l.gate.Release(t.Context(), operator, id, nil)
			if problem.CodeOf(err) != "case/changed" || got.State != gate.Awaiting {
				t.Fatalf("%v: %+v", err, got)
			}
			if now := mustReview(l, id).Digest; now == digest {
				t.Error("the review is still the same")
			}
			if _, err := l.gate.Release(t.Context(), operator, id, nil); problem.CodeOf(err) != "case/waiting" {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// revoke makes the next list, with one serial of a channel in it.
func revoke(t testing.TB, f *testkit.Forged, channel string) []byte {
	t.Helper()
	list, err := signing.ParseRevocations(f.Revoked.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	draft := list.Next(testkit.Noon())
	if err := draft.RevokeBundle(channel, 1, 1, "lost"); err != nil {
		t.Fatal(err)
	}
	raw, err := draft.Sign(t.Context(), f.Signer)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestRevokedBetweenApprovalAndRelease: what was withdrawn is not loaded,
// whoever approved it, and what was loaded is refused to clients.
func TestRevokedBetweenApprovalAndRelease(t *testing.T) {
	l, f, id, _ := waiting(t, 1)
	l.approve(id)
	if _, err := l.gate.UpdateTrust(t.Context(), gate.Console("root"), revoke(t, f, "plant-7")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.gate.Release(t.Context(), operator, id, nil); problem.CodeOf(err) != "bundle/revoked" {
		t.Errorf("released: %v", err)
	}
	if _, err := l.gate.Depot().Tag(t.Context(), "notes", "1.0"); problem.CodeOf(err) != "depot/not-found" {
		t.Errorf("the depot: %v", err)
	}
}

func TestRevokedAfterItsRelease(t *testing.T) {
	l, f, id, _ := waiting(t, 1)
	l.approve(id)
	l.mustRelease(id)
	root := f.Manifest.Artifacts[0].Root.Digest
	list, err := signing.ParseRevocations(f.Revoked.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	draft := list.Next(testkit.Noon())
	if err := draft.RevokeDigest(root.String(), "a backdoor"); err != nil {
		t.Fatal(err)
	}
	raw, err := draft.Sign(t.Context(), f.Signer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.gate.UpdateTrust(t.Context(), gate.Console("root"), raw); err != nil {
		t.Fatal(err)
	}
	if _, err := l.gate.Depot().Tag(t.Context(), "notes", "1.0"); problem.CodeOf(err) != "depot/withdrawn" {
		t.Errorf("by tag: %v", err)
	}
	if _, err := l.gate.Depot().Open(t.Context(), root); problem.CodeOf(err) != "depot/withdrawn" {
		t.Errorf("by digest: %v", err)
	}
}

func TestRejectionIsTheEnd(t *testing.T) {
	l, f, id, digest := waiting(t, 1)
	l.approve(id)
	c, err := l.gate.Decide(t.Context(), l.anna(), id, gate.Reject, digest, "wrong supplier")
	if err != nil || c.State != gate.Rejected {
		t.Fatalf("%v, %v", c, err)
	}
	if _, err := l.gate.Release(t.Context(), operator, id, nil); problem.CodeOf(err) != "case/rejected" {
		t.Errorf("released: %v", err)
	}
	if _, err := l.receive(f); problem.CodeOf(err) != "case/rejected" {
		t.Errorf("received again: %v", err)
	}
}

// TestALaterSerialKeepsItsNames loads serial 2 and then the missing serial 1.
func TestALaterSerialKeepsItsNames(t *testing.T) {
	l := newLab(t)
	first := l.forge(nil)
	l.trust(first)
	head := first.Head
	before := head.Digest()
	note := testkit.Bytes("another note", 50)
	second := testkit.Forge(t, func(m *bundle.Manifest) {
		m.Audience, m.Serial, m.Previous = []string{l.id}, 3, &before
	})
	second.Manifest.Artifacts, second.Manifest.Blobs, second.Manifest.Totals = nil, nil, bundle.Totals{}
	second.AddTree(t, bundle.Files, "notes", []bundle.File{{Path: "README.md", Size: 50, Digest: second.Content.Add(note)}})
	manifest, err := bundle.EncodeManifest(second.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Seal(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*testkit.Forged{second, first} {
		c := l.mustReceive(f)
		l.approve(c.ID)
		l.mustRelease(c.ID)
	}
	tag, err := l.gate.Depot().Tag(t.Context(), "notes", "1.0")
	if err != nil || tag.Digest != second.Manifest.Artifacts[0].Root.Digest {
		t.Errorf("notes:1.0 is %v, %v", tag.Digest, err)
	}
}

func TestPermissions(t *testing.T) {
	l := newLab(t)
	table := map[string]struct {
		actor gate.Actor
		may   []gate.Permission
	}{
		"nobody":   {gate.Actor{}, nil},
		"console":  {gate.Console("root"), []gate.Permission{gate.MayRead, gate.MayReceive, gate.MayRelease, gate.MayAdminister}},
		"operator": {l.user("o", gate.RoleOperator), []gate.Permission{gate.MayRead, gate.MayReceive, gate.MayRelease}},
		"reviewer": {l.user("r", gate.RoleReviewer), []gate.Permission{gate.MayRead, gate.MayDecide}},
		"officer":  {l.user("s", gate.RoleOfficer), []gate.Permission{gate.MayRead, gate.MayDecide, gate.MayRelease}},
		"auditor":  {l.user("a", gate.RoleAuditor), []gate.Permission{gate.MayRead}},
		"admin":    {l.user("m", gate.RoleAdmin), []gate.Permission{gate.MayRead, gate.MayAdminister}},
	}
	for name, c := range table {
		for _, p := range []gate.Permission{gate.MayRead, gate.MayReceive, gate.MayDecide, gate.MayRelease, gate.MayAdminister} {
			if got, want := c.actor.May(p), slices.Contains(c.may, p); got != want {
				t.Errorf("%s may %s: %v, want %v", name, p, got, want)
			}
		}
	}
	for name, call := range map[string]func(context.Context, gate.Actor) error{
		"receive": func(ctx context.Context, a gate.Actor) error {
			_, err := l.gate.Receive(ctx, a, "/nowhere", nil)
			return err
		},
		"release": func(ctx context.Context, a gate.Actor) error { _, err := l.gate.Release(ctx, a, 1, nil); return err },
		"decide": func(ctx context.Context, a gate.Actor) error {
			_, err := l.gate.Decide(ctx, a, 1, gate.Approve, "", "x")
			return err
		},
		"users": func(ctx context.Context, a gate.Actor) error { _, err := l.gate.Users(ctx, a); return err },
		"trust": func(ctx context.Context, a gate.Actor) error { _, err := l.gate.UpdateTrust(ctx, a, nil); return err },
		"add": func(ctx context.Context, a gate.Actor) error {
			return l.gate.AddUser(ctx, a, "x", gate.Roles(), []byte(password))
		},
		"passwd": func(ctx context.Context, a gate.Actor) error {
			return l.gate.SetPassword(ctx, a, "anna", []byte(password))
		},
	} {
		if err := call(t.Context(), table["auditor"].actor); problem.CodeOf(err) != "login/forbidden" {
			t.Errorf("%s by an auditor: %v", name, err)
		}
		if err := call(t.Context(), gate.Actor{}); problem.CodeOf(err) != "login/needed" {
			t.Errorf("%s by nobody: %v", name, err)
		}
	}
}
