package gate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
	"github.com/packhof/packhof/signing"
)

// TestTheClockDoesNotVoidAnApproval lets hours pass between approval and
// release, with findings that are about the time.
func TestTheClockDoesNotVoidAnApproval(t *testing.T) {
	l := newLab(t)
	f := l.forge(func(m *bundle.Manifest) { m.Expires = bundle.At(testkit.Noon().Add(90 * time.Minute)) })
	l.trust(f)
	l.clock.Advance(time.Hour) // past its end, which nothing signed says yet
	c := l.mustReceive(f)
	if !slices.ContainsFunc(mustReview(l, c.ID).Review.Findings, func(f policy.Finding) bool { return strings.Contains(f.Rule, "freshness_clock") }) {
		t.Fatal("the policy says nothing about a clock that is past the end")
	}
	l.approve(c.ID)
	l.clock.Advance(5 * time.Hour)
	l.mustRelease(c.ID)
}

// killedAt runs a release that ends at a point, without anything being cleaned
// up, as it is when a process is killed.
func killedAt(t *testing.T, l *lab, point string, id gate.CaseID) {
	t.Helper()
	l.fault = func(at string) error {
		if at == point {
			panic(point)
		}
		return nil
	}
	func() {
		defer func() {
			if got := recover(); got != point {
				t.Fatalf("the release was not killed: %v", got)
			}
		}()
		_, err := l.gate.Release(t.Context(), operator, id, nil)
		t.Errorf("it came to an end: %v", err)
	}()
	l.fault = nil
	if c, err := l.gate.Case(t.Context(), operator, id); err != nil || c.State != gate.Loading {
		t.Fatalf("%+v, %v", c, err)
	}
}

// TestAnInterruptedReleaseSaysSo interrupts a release, as Ctrl-C does: nothing
// is left in a state of which nobody is working, and the next start goes on.
func TestAnInterruptedReleaseSaysSo(t *testing.T) {
	l, _, id, _ := waiting(t, 1)
	l.approve(id)
	ctx, stop := context.WithCancel(t.Context())
	l.fault = func(at string) error {
		if at == "published:after" {
			stop()
			return context.Canceled
		}
		return nil
	}
	c, err := l.gate.Release(ctx, operator, id, nil)
	if problem.CodeOf(err) != "interrupted" || c.State != gate.PartlyLoaded || c.Problem == nil || c.Problem.Code != "interrupted" {
		t.Fatalf("%v: %+v", err, c)
	}
	l.fault = nil
	if err := l.gate.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, err := l.gate.Case(t.Context(), operator, id); err != nil || c.State != gate.Loaded {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestChangesWhileLoading kills a release and changes something before it goes
// on: what was not approved is not loaded, and the gate always starts.
func TestChangesWhileLoading(t *testing.T) {
	for name, c := range map[string]struct {
		point  string
		change func(*lab, *testkit.Forged)
		state  gate.State
		code   string // of another release
	}{
		"nothing":                      {"published:after", func(*lab, *testkit.Forged) {}, gate.Loaded, ""},
		"another destination":          {"put:after", addDestination, gate.Awaiting, "case/waiting"},
		"another destination, later":   {"published:after", addDestination, gate.PartlyLoaded, "case/waiting"},
		"revoked before it was named":  {"put:after", revokeBundle, gate.Blocked, "bundle/revoked"},
		"revoked after it was named":   {"published:after", revokeBundle, gate.PartlyLoaded, "bundle/revoked"},
		"more approvals, after a name": {"published:after", func(l *lab, _ *testkit.Forged) { l.needs.Review = 2 }, gate.PartlyLoaded, "case/waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			l, f, id, _ := waiting(t, 1)
			l.approve(id)
			killedAt(t, l, c.point, id)
			c.change(l, f)
			l.restart()
			if err := l.gate.Resume(t.Context()); err != nil {
				t.Fatalf("the gate does not start: %v", err)
			}
			got, err := l.gate.Case(t.Context(), operator, id)
			if err != nil || got.State != c.state {
				t.Fatalf("it is %s (%+v), want %s: %v", got.State, got.Problem, c.state, err)
			}
			if _, err := l.gate.Release(t.Context(), operator, id, nil); problem.CodeOf(err) != c.code {
				t.Errorf("released again: %v, want %q", err, c.code)
			}
		})
	}
}

func addDestination(l *lab, _ *testkit.Forged) {
	l.more = append(l.more, gate.Destination{Name: "second", Accepts: allKinds(), Naming: gate.DefaultNaming(), Sink: newShelf()})
}

func revokeBundle(l *lab, f *testkit.Forged) {
	if _, err := l.gate.UpdateTrust(l.t.Context(), gate.Console("root"), revoke(l.t, f, "plant-7")); err != nil {
		l.t.Fatal(err)
	}
}

// TestPartlyLoadedIsApprovedAnew goes on with a case whose approval became
// void while names of it were published.
func TestPartlyLoadedIsApprovedAnew(t *testing.T) {
	l, _, id, digest := waiting(t, 1)
	l.approve(id)
	killedAt(t, l, "published:after", id)
	addDestination(l, nil)
	l.restart()
	if err := l.gate.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.gate.Decide(t.Context(), l.anna(), id, gate.Reject, mustReview(l, id).Digest, "too late"); problem.CodeOf(err) != "case/live" {
		t.Errorf("rejected while it can be pulled: %v", err)
	}
	if now := mustReview(l, id).Digest; now == digest {
		t.Error("the review is the same, with one destination more")
	}
	l.approve(id)
	if c := l.mustRelease(id); c.State != gate.Loaded || len(c.Loads) != 2 {
		t.Errorf("%s, %+v", c.State, c.Loads)
	}
}

func TestAnApproverWhoLostTheRoleIsReplaced(t *testing.T) {
	l, _, id, digest := waiting(t, 1)
	berta := l.user("berta", gate.RoleReviewer)
	if _, err := l.gate.Decide(t.Context(), berta, id, gate.Approve, digest, "known"); err != nil {
		t.Fatal(err)
	}
	l.dropRole("berta")
	if _, err := l.gate.Release(t.Context(), operator, id, nil); problem.CodeOf(err) != "case/waiting" {
		t.Fatal(err)
	}
	l.approve(id)
	l.mustRelease(id)
}

// failingJudge reaches no verdict for a while.
type failingJudge struct {
	library
	fails *bool
}

func (j failingJudge) Evaluate(ctx context.Context, in *policy.Input) (*policy.Decision, error) {
	if *j.fails {
		return policy.FailedDecision("", "", policy.Failure{Message: "out of time"}), nil
	}
	return j.library.Evaluate(ctx, in)
}

func TestNoVerdictAtTheReleaseChangesNothing(t *testing.T) {
	l := newLab(t)
	fails := false
	l.judge = failingJudge{library{shared(t)}, &fails}
	l.restart()
	f := l.forge(nil)
	l.trust(f)
	id := l.mustReceive(f).ID
	l.approve(id)
	fails = true
	if _, err := l.gate.Release(t.Context(), operator, id, nil); problem.CodeOf(err) != "policy/error" {
		t.Fatalf("released: %v", err)
	}
	fails = false
	l.mustRelease(id)
}

func TestNoVerdictAtFirstIsTriedAgain(t *testing.T) {
	l := newLab(t)
	fails := true
	l.judge = failingJudge{library{shared(t)}, &fails}
	l.restart()
	f := l.forge(nil)
	l.trust(f)
	c, err := l.receive(f)
	if problem.CodeOf(err) != "policy/error" || c.State != gate.CheckFailed {
		t.Fatalf("%v, %+v", err, c)
	}
	fails = false
	if c := l.mustReceive(f); c.State != gate.Awaiting {
		t.Errorf("%s", c.State)
	}
}

// TestAGapIsNotForgotten: neither a damaged copy nor the next bundle hides
// that serials never arrived.
func TestAGapIsNotForgotten(t *testing.T) {
	l := newLab(t)
	one := l.forge(nil)
	l.trust(one)
	l.mustReceive(one)
	lost := cas.DigestOf([]byte("lost"))
	five := l.forge(func(m *bundle.Manifest) { m.Serial, m.Previous, m.Note = 5, &lost, "five" })
	broken := *five
	broken.Volume = []byte(strings.Replace(string(five.Volume), string(testkit.Bytes("README.md", 700)[:100]), strings.Repeat("x", 100), 1))
	blob := five.Manifest.Artifacts[0].Root.Digest
	if err := os.Remove(filepath.Join(l.dir, "store", "blobs", "sha256", blob.Hex())); err != nil {
		t.Fatal(err)
	}
	for _, b := range five.Manifest.Blobs { // so that the damaged bytes are read at all
		_ = os.Remove(filepath.Join(l.dir, "store", "blobs", "sha256", b.Digest.Hex()))
	}
	if c, err := l.receive(&broken); problem.CodeOf(err) != "volume/damaged" || c.State != gate.Damaged {
		t.Fatal(err)
	}
	c := l.mustReceive(five)
	if missing := mustReview(l, c.ID).Review.Missing; !slices.Equal(missing, []int64{2, 3, 4}) {
		t.Errorf("serial 5: missing %v", missing)
	}
	six := l.next(five, 6)
	c = l.mustReceive(six)
	if missing := mustReview(l, c.ID).Review.Missing; !slices.Equal(missing, []int64{2, 3, 4}) {
		t.Errorf("serial 6: missing %v", missing)
	}
	l.approve(c.ID)
	l.mustRelease(c.ID)
	c = l.mustReceive(l.next(six, 7))
	if missing := mustReview(l, c.ID).Review.Missing; len(missing) != 0 {
		t.Errorf("serial 7, after people went on: missing %v", missing)
	}
}

func TestTwoHistories(t *testing.T) {
	l := newLab(t)
	one := l.forge(nil)
	l.trust(one)
	l.mustReceive(one)
	head := one.Head
	first := head.Digest()
	two := l.forge(func(m *bundle.Manifest) { m.Serial, m.Previous = 2, &first })
	twoHead := two.Head
	second := twoHead.Digest()
	l.mustReceive(l.forge(func(m *bundle.Manifest) { m.Serial, m.Previous = 3, &second }))
	other := l.forge(func(m *bundle.Manifest) { m.Serial, m.Previous, m.Note = 2, &first, "another two" })
	if _, err := l.receive(other); problem.CodeOf(err) != "freshness/equivocation" {
		t.Errorf("a serial 2 that serial 3 does not follow: %v", err)
	}
	fork := l.forge(func(m *bundle.Manifest) { m.Serial, m.Previous = 7, &first })
	if _, err := l.receive(fork); problem.CodeOf(err) != "freshness/equivocation" {
		t.Errorf("a serial 7 that follows serial 1, though 3 was accepted: %v", err)
	}
	if _, err := l.receive(two); err != nil {
		t.Errorf("the serial 2 that serial 3 follows: %v", err)
	}
}

// TestRottenContentIsBroughtAgain spoils a blob in the store after the case was
// judged.
func TestRottenContentIsBroughtAgain(t *testing.T) {
	l, f, id, _ := waiting(t, 1)
	l.approve(id)
	blob := filepath.Join(l.dir, "store", "blobs", "sha256", cas.DigestOf(testkit.Bytes("README.md", 700)).Hex())
	if err := errors.Join(os.Chmod(blob, 0o644), os.WriteFile(blob, []byte(strings.Repeat("x", 700)), 0o644)); err != nil {
		t.Fatal(err)
	}
	c, err := l.gate.Release(t.Context(), operator, id, nil)
	if problem.CodeOf(err) != "content/corrupt" || c.State != gate.Damaged && c.State != gate.PartlyLoaded {
		t.Fatalf("%v: %s", err, c.State)
	}
	l.mustReceive(f)
	l.mustRelease(id)
}

func TestRottenContentIsFoundByTheNextBundle(t *testing.T) {
	l := newLab(t)
	one := l.forge(nil)
	l.trust(one)
	l.mustReceive(one)
	blob := filepath.Join(l.dir, "store", "blobs", "sha256", cas.DigestOf(testkit.Bytes("README.md", 700)).Hex())
	if err := errors.Join(os.Chmod(blob, 0o644), os.WriteFile(blob, []byte(strings.Repeat("x", 700)), 0o644)); err != nil {
		t.Fatal(err)
	}
	l.mustReceive(l.next(one, 2))
	if b, err := os.ReadFile(blob); err != nil || cas.DigestOf(b) != cas.DigestOf(testkit.Bytes("README.md", 700)) {
		t.Errorf("the blob is still rotten: %v", err)
	}
}

// delta writes a set that brings what of f is not in one, and returns where.
func delta(t *testing.T, one, f *testkit.Forged) string {
	t.Helper()
	held := map[bundle.Digest]bool{}
	for _, b := range one.Manifest.Blobs {
		held[b.Digest] = true
	}
	only := []bundle.Piece{}
	for _, b := range f.Manifest.Blobs {
		if !held[b.Digest] {
			only = append(only, bundle.Piece{Blob: b.Digest, Length: b.Size})
		}
	}
	return shipped(t, f, only)
}

// shipped writes a set that brings some content of a bundle, and returns where.
func shipped(t *testing.T, f *testkit.Forged, only []bundle.Piece) string {
	t.Helper()
	set, err := bundle.PlanSet(f.Head, bundle.SetOptions{Only: only})
	if err != nil {
		t.Fatal(err)
	}
	written, err := set.WriteTo(t.Context(), t.TempDir(), f.Content, bundle.SetWriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return written[0].Path
}

// TestRottenContentIsNotVerified: what a difference leaves out is read before
// the case counts as verified. What has rotted is asked for, and its repair
// makes the case go on; nobody decides before.
func TestRottenContentIsNotVerified(t *testing.T) {
	l := newLab(t)
	one := l.forge(nil)
	l.trust(one)
	l.mustReceive(one)
	spoil := func() {
		blob := filepath.Join(l.dir, "store", "blobs", "sha256", cas.DigestOf(testkit.Bytes("README.md", 700)).Hex())
		if err := errors.Join(os.Chmod(blob, 0o644), os.WriteFile(blob, []byte(strings.Repeat("x", 700)), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	two := l.next(one, 2)
	spoil()
	var phases []string
	c, err := l.gate.Receive(t.Context(), operator, delta(t, one, two), func(p gate.Progress) {
		if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
	})
	if err != nil || c.State != gate.Received || c.Lacks == nil || c.Lacks.Bytes != 700 || !slices.Equal(phases, []string{"copy", "prove"}) {
		t.Fatalf("%+v, %v, phases %q", c, err, phases)
	}
	raw, err := l.gate.WantList(t.Context(), operator, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	want, err := bundle.ParseWant(raw)
	if err != nil || len(want.Pieces) != 1 || want.Pieces[0].Blob != cas.DigestOf(testkit.Bytes("README.md", 700)) {
		t.Fatalf("%+v, %v", want, err)
	}
	c, err = l.gate.Receive(t.Context(), operator, shipped(t, two, want.Pieces), nil)
	if err != nil || c.State != gate.Awaiting || c.Lacks != nil {
		t.Errorf("with the repair: %+v, %v", c, err)
	}
}

// TestProvingIsInterrupted stops the gate while it reads what a difference left
// out: the case waits, and the same file makes it go on there.
func TestProvingIsInterrupted(t *testing.T) {
	l := newLab(t)
	one := l.forge(nil)
	l.trust(one)
	l.mustReceive(one)
	two := l.next(one, 2)
	path := delta(t, one, two)
	ctx, stop := context.WithCancel(t.Context())
	c, err := l.gate.Receive(ctx, operator, path, func(p gate.Progress) {
		if p.Phase == "prove" {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || c == nil || c.State != gate.Received {
		t.Fatalf("%+v, %v", c, err)
	}
	c, err = l.gate.Receive(t.Context(), operator, path, nil)
	if err != nil || c.State != gate.Awaiting {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestNothingIsProvenTwice: of volumes that come one by one, the last has
// nobody read again what the others brought, and of a complete set nothing is
// read at all.
func TestNothingIsProvenTwice(t *testing.T) {
	l := newLab(t)
	_, paths := inVolumes(t, l)
	for _, path := range paths {
		if _, err := l.gate.Receive(t.Context(), operator, path, func(p gate.Progress) {
			if p.Phase == "prove" {
				t.Errorf("%s: %+v", filepath.Base(path), p)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := l.gate.Case(t.Context(), operator, 1); err != nil || c.State != gate.Awaiting {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestANewProgramInspectsOnce: after an update, whoever comes first has the
// content read; approving, trying and releasing then go by what was found.
func TestANewProgramInspectsOnce(t *testing.T) {
	l, _, id, _ := waiting(t, 1)
	l.program = "packhof-gate test, the next one"
	l.restart()
	inspections := func() (n int) {
		c, err := l.gate.Case(t.Context(), operator, id)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.History {
			if e.Type == "case.inspected" {
				n++
			}
		}
		return n
	}
	if n := inspections(); n != 1 {
		t.Fatalf("inspected %d times before", n)
	}
	l.approve(id)
	if n := inspections(); n != 2 {
		t.Errorf("inspected %d times when it was approved", n)
	}
	if _, err := l.gate.Plan(t.Context(), operator, id); err != nil {
		t.Error(err)
	}
	l.mustRelease(id)
	if n := inspections(); n != 2 {
		t.Errorf("inspected %d times in the end", n)
	}
}

// TestAClockThatIsWrong: a first trust root that seems to have ended is not
// taken.
func TestAClockThatIsWrong(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.clock.Advance(10 * 365 * 24 * time.Hour)
	if _, err := l.gate.InitTrust(t.Context(), gate.Console("root"), f.Root.Bytes, f.Revoked.Bytes); problem.CodeOf(err) != "trust/clock" {
		t.Errorf("%v", err)
	}
}

// TestNothingIsLackingOfWhatWasRefused: a case that was never accepted has
// nothing that could be asked for.
func TestNothingIsLackingOfWhatWasRefused(t *testing.T) {
	l := newLab(t)
	l.trust(l.forge(nil))
	c, err := l.receive(l.forge(func(m *bundle.Manifest) { m.Epoch = 2 }))
	if err == nil || c == nil || c.State != gate.Blocked {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := l.gate.WantList(t.Context(), operator, c.ID); problem.CodeOf(err) != "case/not-accepted" {
		t.Errorf("%v", err)
	}
}

// TestFileNamesOfAMedium: the name of a file is data of strangers as well.
func TestFileNamesOfAMedium(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	path := filepath.Join(l.media, "a\xff\u202e\n.tar")
	if err := os.WriteFile(path, f.Volume, 0o644); errors.Is(err, syscall.EILSEQ) {
		t.Skip("this file system takes no such name")
	} else if err != nil {
		t.Fatal(err)
	}
	c, err := l.gate.Receive(t.Context(), operator, path, nil)
	if err != nil || c.File != "a???.tar" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWhoBroughtThePartsInDoesNotDecide(t *testing.T) {
	l, f, id, digest := waiting(t, 1)
	if _, err := l.gate.Receive(t.Context(), gate.Console("anna"), l.medium(f.Volume), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := l.gate.Decide(t.Context(), l.anna(), id, gate.Approve, digest, "known"); problem.CodeOf(err) != "case/own" {
		t.Errorf("%v", err)
	}
}

func TestNothingIsLoadedWithoutAPlaceForIt(t *testing.T) {
	l := newLab(t)
	l.accepts = []bundle.Kind{bundle.Image}
	l.restart()
	f := l.forge(nil)
	l.trust(f)
	id := l.mustReceive(f).ID
	l.approve(id)
	if c, err := l.gate.Release(t.Context(), operator, id, nil); problem.CodeOf(err) != "destination/none" || c.State != gate.Approved || c.Problem == nil {
		t.Errorf("%v: %+v", err, c)
	}
}

// TestTagsThatAreWithdrawnDoNotEndAPage lists one tag at a time, the first of
// which was revoked.
func TestTagsThatAreWithdrawnDoNotEndAPage(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	note := testkit.Bytes("another", 40)
	f.AddTree(t, bundle.Files, "more", []bundle.File{{Path: "a", Size: 40, Digest: f.Content.Add(note)}})
	for i := range f.Manifest.Artifacts {
		f.Manifest.Artifacts[i].Name, f.Manifest.Artifacts[i].Version = "notes", []string{"1.0", "2.0"}[i]
	}
	b, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Seal(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	l.trust(f)
	id := l.mustReceive(f).ID
	l.approve(id)
	l.mustRelease(id)
	list, err := signing.ParseRevocations(f.Revoked.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	draft := list.Next(testkit.Noon())
	if err := draft.RevokeDigest(f.Manifest.Artifacts[0].Root.Digest.String(), "a backdoor"); err != nil {
		t.Fatal(err)
	}
	raw, err := draft.Sign(t.Context(), f.Signer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.gate.UpdateTrust(t.Context(), gate.Console("root"), raw); err != nil {
		t.Fatal(err)
	}
	tags, err := l.gate.Depot().Tags(t.Context(), "notes", "", 1)
	if err != nil || len(tags) != 1 || tags[0].Tag != "2.0" {
		t.Errorf("%+v, %v", tags, err)
	}
}

// TestNamesBelongToTheirChannel: another channel cannot take a name over, with
// whatever content, and can carry the same content under it.
func TestNamesBelongToTheirChannel(t *testing.T) {
	l := newLab(t)
	ours := l.forge(nil)
	signer := ours.Signer
	root, err := signing.ParseRoot(ours.Root.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	rule, _ := root.Role(signing.BundleRole("plant-7"))
	draft := root.Next(testkit.Noon().AddDate(2, 0, 0))
	rule.Role = signing.BundleRole("plant-8")
	if err := errors.Join(draft.AddChannel(signing.Channel{Name: "plant-8", Epoch: 1}), draft.SetRole(rule)); err != nil {
		t.Fatal(err)
	}
	next, err := draft.Sign(t.Context(), signer)
	if err != nil {
		t.Fatal(err)
	}
	l.trust(ours)
	first := l.mustReceive(ours)
	l.approve(first.ID)
	l.mustRelease(first.ID)
	theirs := func(serial int64, change bool) *testkit.Forged {
		f := l.forge(nil)
		f.Root = bundle.TrustDocument{Version: 2, Bytes: next}
		m := f.Manifest
		m.Channel, m.Serial = "plant-8", serial
		m.TrustRoot = bundle.Versioned{Version: 2, Digest: cas.DigestOf(next)}
		if change {
			m.Artifacts, m.Blobs, m.Totals = nil, nil, bundle.Totals{}
			note := testkit.Bytes("theirs", 60)
			f.AddTree(t, bundle.Files, "notes", []bundle.File{{Path: "README.md", Size: 60, Digest: f.Content.Add(note)}})
			d := cas.DigestOf([]byte("before"))
			m.Previous = &d
		}
		b, err := bundle.EncodeManifest(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Seal(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return f
	}
	same := l.mustReceive(theirs(1, false))
	l.approve(same.ID)
	l.mustRelease(same.ID)
	other := l.mustReceive(theirs(3, true))
	if plan := mustReview(l, other.ID).Review.Artifacts[0].Plan; len(plan) != 1 || plan[0].Owner != "plant-7" {
		t.Errorf("the review does not say whose name it is: %+v", plan)
	}
	l.approve(other.ID)
	if _, err := l.gate.Release(t.Context(), operator, other.ID, nil); problem.CodeOf(err) != "destination/name-taken" {
		t.Errorf("released: %v", err)
	}
	tag, err := l.gate.Depot().Tag(t.Context(), "notes", "1.0")
	if err != nil || tag.Digest != ours.Manifest.Artifacts[0].Root.Digest || tag.Case != first.ID {
		t.Errorf("notes:1.0 is %+v, %v", tag, err)
	}
}

func TestRevokedSerialIsWithdrawn(t *testing.T) {
	l, f, id, _ := waiting(t, 1)
	l.approve(id)
	l.mustRelease(id)
	revokeBundle(l, f)
	depot := l.gate.Depot()
	if _, err := depot.Tag(t.Context(), "notes", "1.0"); problem.CodeOf(err) != "depot/withdrawn" {
		t.Errorf("by tag: %v", err)
	}
	for _, b := range f.Manifest.Blobs {
		if _, err := depot.Open(t.Context(), b.Digest); problem.CodeOf(err) != "depot/withdrawn" {
			t.Errorf("blob %s: %v", b.Digest, err)
		}
	}
	if tags, err := depot.Tags(t.Context(), "notes", "", 10); err != nil || len(tags) != 0 {
		t.Errorf("listed: %v, %v", tags, err)
	}
}

func TestPlansGiveNoContentAway(t *testing.T) {
	l, f, id, _ := waiting(t, 1)
	spy := &planSpy{shelf: newShelf()}
	l.more = append(l.more, gate.Destination{Name: "spy", Accepts: allKinds(), Naming: gate.DefaultNaming(), Sink: spy})
	l.restart()
	if _, err := l.gate.Plan(t.Context(), operator, id); err != nil {
		t.Fatal(err)
	}
	for _, b := range f.Manifest.Blobs {
		_, err := spy.seen.Open(t.Context(), b.Digest)
		if allowed := b.Role == bundle.RoleMetadata; allowed != (err == nil) {
			t.Errorf("%s blob %s: %v", b.Role, b.Digest, err)
		}
	}
	var none gate.Release
	if _, err := none.Open(t.Context(), f.Manifest.Blobs[0].Digest); err == nil {
		t.Error("the zero value lets something through")
	}
}

type planSpy struct {
	*shelf
	seen *gate.Release
}

func (s *planSpy) Plan(ctx context.Context, r *gate.Release) ([]gate.Action, error) {
	s.seen = r
	return s.shelf.Plan(ctx, r)
}

// TestWhatTheGateHasNotSetIsNotOverwritten finds something under a name that
// nobody has seen in a review.
func TestWhatTheGateHasNotSetIsNotOverwritten(t *testing.T) {
	l, _, id, _ := waiting(t, 1)
	l.sink.foreign = true
	l.approve(id)
	c, err := l.gate.Release(t.Context(), operator, id, nil)
	if problem.CodeOf(err) != "destination/refused" || c.State != gate.Approved {
		t.Errorf("%v: %s", err, c.State)
	}
}

// TestTreesDoNotLieInOneAnother: "notes" 1.0 with a file data/values.csv and
// "notes/1.0" data with a file values.csv would be one path.
func TestTreesDoNotLieInOneAnother(t *testing.T) {
	l := newLab(t)
	first := l.forge(nil)
	l.trust(first)
	id := l.mustReceive(first).ID
	l.approve(id)
	l.mustRelease(id)
	nested := func(names ...string) *testkit.Forged {
		head := first.Head
		before := head.Digest()
		f := l.forge(nil)
		m := f.Manifest
		m.Serial, m.Previous = 2, &before
		m.Artifacts, m.Blobs, m.Totals = nil, nil, bundle.Totals{}
		for _, name := range names {
			f.AddTree(t, bundle.Files, name, []bundle.File{{Path: "values.csv", Size: 60, Digest: f.Content.Add(testkit.Bytes(name, 60))}})
		}
		b, err := bundle.EncodeManifest(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Seal(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return f
	}
	c := l.mustReceive(nested("notes/1.0/data"))
	l.approve(c.ID)
	if _, err := l.gate.Release(t.Context(), operator, c.ID, nil); problem.CodeOf(err) != "destination/name-taken" {
		t.Errorf("inside what is there: %v", err)
	}
	l = newLab(t)
	first = l.forge(nil)
	l.trust(first)
	l.mustReceive(first)
	c = l.mustReceive(nested("a", "a/1.0/b"))
	l.approve(c.ID)
	if _, err := l.gate.Release(t.Context(), operator, c.ID, nil); problem.CodeOf(err) != "destination/collision" {
		t.Errorf("inside one another: %v", err)
	}
}

func TestAGateWithoutItsDatabaseDoesNotBeginAnew(t *testing.T) {
	l := newLab(t)
	if err := l.gate.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gate.db", "gate.db-wal", "gate.db-shm"} {
		if err := os.Remove(filepath.Join(l.dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if _, err := gate.Open(t.Context(), l.options()); problem.CodeOf(err) != "gate/no-database" {
		t.Errorf("%v", err)
	}
}

func TestNamesWithoutALatinLetterStayApart(t *testing.T) {
	naming := gate.DefaultNaming()
	one := naming.Name(bundle.Artifact{Name: "日本", Version: "一"})
	two := naming.Name(bundle.Artifact{Name: "中国", Version: "二"})
	if one.Repository == two.Repository || one.Tag == two.Tag {
		t.Errorf("%s and %s", one, two)
	}
}
