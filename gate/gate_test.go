package gate_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

// shared compiles the library once for all tests.
var shared = func() func(testing.TB) *policy.Policy {
	var once sync.Once
	var p *policy.Policy
	return func(t testing.TB) *policy.Policy {
		once.Do(func() { p = compileLibrary(t) })
		return p
	}
}()

func TestOneParcelInward(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	c := l.mustReceive(f)
	if c.State != gate.Awaiting || c.Verdict != policy.Review || c.Progress != c.Size {
		t.Fatalf("received: %s, verdict %s, problem %+v", c.State, c.Verdict, c.Problem)
	}
	if _, err := l.gate.Release(t.Context(), operator, c.ID, nil); problem.CodeOf(err) != "case/waiting" {
		t.Errorf("released before anybody approved: %v", err)
	}
	l.approve(c.ID)
	c = l.mustRelease(c.ID)
	if c.State != gate.Loaded || len(c.Loads) != 1 || c.Loads[0].State != gate.LoadVerified {
		t.Fatalf("released: %s, %+v", c.State, c.Loads)
	}
	tag, err := l.gate.Depot().Tag(t.Context(), "notes", "1.0")
	if err != nil || tag.Digest != f.Manifest.Artifacts[0].Root.Digest {
		t.Errorf("depot: %+v, %v", tag, err)
	}
	files, err := l.gate.Depot().Files(t.Context(), tag, "", 10)
	if err != nil || len(files) != 2 || files[0].Path != "README.md" {
		t.Errorf("files: %+v, %v", files, err)
	}
	var types []string
	for _, e := range c.History {
		types = append(types, e.Type)
	}
	want := []string{"case.received", "case.verified", "case.inspected", "case.judged", "case.approved", "load.intent", "load.put", "load.published", "load.verified", "case.loaded"}
	if !slices.Equal(types, want) {
		t.Errorf("history:\n got %v\nwant %v", types, want)
	}
}

func TestReceivingTwiceIsOneCase(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	first, second := l.mustReceive(f), l.mustReceive(f)
	if first.Known || !second.Known {
		t.Errorf("known the first time: %v, the second: %v", first.Known, second.Known)
	}
	if first.ID != second.ID {
		t.Errorf("cases %d and %d", first.ID, second.ID)
	}
	list, err := l.gate.Cases(t.Context(), operator)
	if err != nil || len(list) != 1 {
		t.Errorf("%d cases, %v", len(list), err)
	}
}

func TestNothingIsReachableBeforeItsRelease(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	c := l.mustReceive(f)
	unreachable := func(when string) {
		t.Helper()
		depot := l.gate.Depot()
		if names, err := depot.Repositories(t.Context(), "", 10); err != nil || len(names) > 0 {
			t.Errorf("%s: repositories %v, %v", when, names, err)
		}
		for _, b := range f.Manifest.Blobs {
			if _, err := depot.Blob(t.Context(), "notes", b.Digest); problem.CodeOf(err) != "depot/not-found" {
				t.Errorf("%s: blob %s: %v", when, b.Digest, err)
			}
			if r, err := depot.Open(t.Context(), b.Digest); problem.CodeOf(err) != "depot/not-found" {
				t.Errorf("%s: open %s: %v, %v", when, b.Digest, r, err)
			}
		}
	}
	unreachable("received")
	l.approve(c.ID)
	unreachable("approved")
	l.sink.fail = errors.New("the destination is on fire")
	if _, err := l.gate.Release(t.Context(), operator, c.ID, nil); err == nil {
		t.Fatal("the release did not fail")
	}
	unreachable("failed")
	l.sink.fail = nil
	l.mustRelease(c.ID)
	if _, err := l.gate.Depot().Blob(t.Context(), "notes", f.Manifest.Artifacts[0].Root.Digest); err != nil {
		t.Errorf("released: %v", err)
	}
}

// refused is a bundle that must not come in.
type refused struct {
	name  string
	make  func(*lab) *testkit.Forged
	code  string
	state gate.State // "" if it makes no case
}

func TestWhatIsNotLetIn(t *testing.T) {
	cases := []refused{
		{"T-30 a foreign signer", func(l *lab) *testkit.Forged { f := l.forge(nil); stranger(l.t, f); return f }, "signing/not-genuine", gate.NotGenuine},
		{"T-37 meant for another gate", func(l *lab) *testkit.Forged { return testkit.Forge(l.t, nil) }, "audience/other", gate.Blocked},
		{"an old epoch", func(l *lab) *testkit.Forged { return l.forge(func(m *bundle.Manifest) { m.Epoch = 2 }) }, "freshness/epoch", gate.Blocked},
		{"a serial far ahead", func(l *lab) *testkit.Forged { return l.forge(func(m *bundle.Manifest) { m.Serial = 20_000 }) }, "freshness/too-far", gate.Blocked},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.trust(l.forge(nil))
			f := c.make(l)
			for range 2 {
				got, err := l.receive(f)
				if problem.CodeOf(err) != c.code {
					t.Fatalf("refused with %v, want %s", err, c.code)
				}
				if got == nil || got.State != c.state || got.Problem == nil || got.Problem.Code != c.code {
					t.Fatalf("the case says %+v", got)
				}
			}
			if list, _ := l.gate.Cases(t.Context(), operator); len(list) != 1 {
				t.Errorf("the same refusal made %d cases", len(list))
			}
			blobs, err := os.ReadDir(l.dir + "/store/blobs/sha256")
			if err != nil || len(blobs) > 0 {
				t.Errorf("something was copied: %d blobs, %v", len(blobs), err)
			}
		})
	}
}

func TestWithoutATrustRootNobodyIsTrusted(t *testing.T) {
	l := newLab(t)
	if _, err := l.receive(l.forge(nil)); problem.CodeOf(err) != "trust/not-initialised" {
		t.Errorf("%v", err)
	}
}

// TestAForgeryDoesNotStandInTheWay receives a forgery with the very manifest of
// a genuine bundle, and then that.
func TestAForgeryDoesNotStandInTheWay(t *testing.T) {
	l := newLab(t)
	genuine := l.forge(nil)
	l.trust(genuine)
	forged := l.forge(nil)
	stranger(t, forged)
	if _, err := l.receive(forged); problem.CodeOf(err) != "signing/not-genuine" {
		t.Fatal(err)
	}
	if c := l.mustReceive(genuine); c.State != gate.Awaiting {
		t.Errorf("%s", c.State)
	}
}

func TestDamagedMediumIsMendedByAnother(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	payload := testkit.Bytes("data/values.csv", 700)
	broken := *f
	broken.Volume = []byte(strings.Replace(string(f.Volume), string(payload[:100]), strings.Repeat("x", 100), 1))
	c, err := l.receive(&broken)
	if problem.CodeOf(err) != "volume/damaged" || c == nil || c.State != gate.Damaged {
		t.Fatalf("%v, %+v", err, c)
	}
	if c = l.mustReceive(f); c.State != gate.Awaiting {
		t.Errorf("the whole one: %s", c.State)
	}
}

func TestFreshness(t *testing.T) {
	l := newLab(t)
	one := l.forge(nil)
	l.trust(one)
	l.mustReceive(one)
	two := l.next(one, 2)
	l.mustReceive(two)
	if c, err := l.receive(one); err != nil || c.ID != 1 {
		t.Errorf("serial 1 again: %v", err)
	}
	other := l.forge(func(m *bundle.Manifest) { d := one.Head.Digest(); m.Serial, m.Previous, m.Note = 2, &d, "another" })
	if _, err := l.receive(other); problem.CodeOf(err) != "freshness/equivocation" {
		t.Errorf("another serial 2: %v", err)
	}
	fork := l.forge(func(m *bundle.Manifest) { d := one.Head.Digest(); m.Serial, m.Previous = 3, &d })
	if _, err := l.receive(fork); problem.CodeOf(err) != "freshness/equivocation" {
		t.Errorf("a serial 3 that follows serial 1: %v", err)
	}
	skipped := l.next(two, 4)
	if c := l.mustReceive(skipped); len(mustReview(l, c.ID).Review.Missing) != 0 {
		t.Error("serial 3 was abandoned by the sender, and counts as missing")
	} else if abandoned := mustReview(l, c.ID).Review.Abandoned; !slices.Equal(abandoned, []int64{3}) {
		t.Errorf("abandoned %v, want serial 3", abandoned)
	}
	gap := l.forge(func(m *bundle.Manifest) { d := other.Head.Digest(); m.Serial, m.Previous = 7, &d })
	c := l.mustReceive(gap)
	if missing := mustReview(l, c.ID).Review.Missing; !slices.Equal(missing, []int64{5, 6}) {
		t.Errorf("missing %v", missing)
	}
	late := l.next(skipped, 5)
	if c := l.mustReceive(late); c.State != gate.Awaiting {
		t.Errorf("a missing serial that arrived: %s", c.State)
	}
	old := l.forge(func(m *bundle.Manifest) { d := one.Head.Digest(); m.Serial, m.Previous, m.Note = 3, &d, "late" })
	if _, err := l.receive(old); problem.CodeOf(err) != "freshness/older" {
		t.Errorf("a serial that was abandoned: %v", err)
	}
	status, err := l.gate.TrustStatus(t.Context(), operator)
	if err != nil || len(status.Channels) != 1 || status.Channels[0].Serial != 7 || !slices.Equal(status.Channels[0].Missing, []int64{6}) || !slices.Equal(status.Channels[0].Abandoned, []int64{3}) {
		t.Errorf("%+v, %v", status.Channels, err)
	}
}

func mustReview(l *lab, id gate.CaseID) *gate.ReviewPage {
	l.t.Helper()
	page, err := l.gate.Review(l.t.Context(), operator, id)
	if err != nil {
		l.t.Fatal(err)
	}
	return page
}

// TestTheFloorDecidesWhatIsTooOld: the clock on the wall alone never expires a
// bundle for good, the floor does.
func TestTheFloorDecidesWhatIsTooOld(t *testing.T) {
	l := newLab(t)
	one := l.forge(nil)
	l.trust(one)
	l.mustReceive(l.forge(func(m *bundle.Manifest) {
		d := one.Head.Digest()
		m.Serial, m.Previous, m.Created, m.Expires = 2, &d, bundle.At(testkit.Noon().AddDate(0, 0, 1)), bundle.At(testkit.Noon().AddDate(0, 3, 0))
	}))
	l.clock.Advance(60 * 24 * 3600 * 1e9)
	later := l.forge(func(m *bundle.Manifest) {
		d := one.Head.Digest()
		m.Serial, m.Previous, m.Created, m.Expires = 9, &d, bundle.At(testkit.Noon().AddDate(0, 2, 0)), bundle.At(testkit.Noon().AddDate(0, 6, 0))
	})
	l.mustReceive(later)
	if _, err := l.receive(l.forge(func(m *bundle.Manifest) { m.Serial = 5 })); problem.CodeOf(err) != "freshness/expired" {
		t.Errorf("%v", err)
	}
}

func TestDestinationsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		make  func(*shelf)
		state gate.State
	}{
		"Put fails":            {func(s *shelf) { s.fail = errors.New("on fire") }, gate.Approved},
		"something in the way": {func(s *shelf) { s.refuse = "the tag is immutable" }, gate.Approved},
		"read back wrong":      {func(s *shelf) { s.rotten = true }, gate.PartlyLoaded},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			f := l.forge(nil)
			l.trust(f)
			id := l.mustReceive(f).ID
			l.approve(id)
			c.make(l.sink)
			got, err := l.gate.Release(t.Context(), operator, id, nil)
			if err == nil || got.State != c.state || got.Problem == nil {
				t.Fatalf("%v: %+v", err, got)
			}
			*l.sink = shelf{content: l.sink.content}
			if c := l.mustRelease(id); c.State != gate.Loaded {
				t.Errorf("once it is mended: %s", c.State)
			}
		})
	}
}

func TestTwoReceivesOfOneBundleAtOnce(t *testing.T) {
	l := newLab(t)
	f := l.forge(nil)
	l.trust(f)
	path := l.medium(f.Volume)
	waiting, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l.fault = func(point string) error {
		if point == "copy:before" {
			once.Do(func() { close(waiting); <-proceed })
		}
		return nil
	}
	done := make(chan error)
	go func() { _, err := l.gate.Receive(context.Background(), operator, path, nil); done <- err }()
	<-waiting
	if _, err := l.gate.Receive(t.Context(), operator, path, nil); problem.CodeOf(err) != "case/busy" {
		t.Errorf("the second: %v", err)
	}
	close(proceed)
	if err := <-done; err != nil {
		t.Errorf("the first: %v", err)
	}
}

func TestOneProcessOwnsTheDirectory(t *testing.T) {
	l := newLab(t)
	if _, err := gate.Open(t.Context(), l.options()); problem.CodeOf(err) != "gate/busy" {
		t.Errorf("opened twice: %v", err)
	}
}
