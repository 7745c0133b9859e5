package depot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

// lab is a real gate whose only destination is the depot.
type lab struct {
	t     *testing.T
	dir   string
	clock *testkit.Clock
	gate  *gate.Gate
	tap   tap
}

// tap is the Sink under test; it keeps the Release, so that a test can call
// what the gate calls.
type tap struct {
	*Sink
	release *gate.Release
	holds   bool // the next Put fails, once there is a Release
}

var errHeld = errors.New("held back by the test")

func (t *tap) Put(ctx context.Context, r *gate.Release, a bundle.Artifact) (gate.Receipt, error) {
	t.release = r
	if t.holds {
		t.holds = false
		return gate.Receipt{}, errHeld
	}
	return t.Sink.Put(ctx, r, a)
}

const password = "correct horse battery"

// judge is the library of rules without the child process around it.
type judge struct{ policy *policy.Policy }

// library compiles the rules once for all tests.
var library = sync.OnceValue(func() *policy.Policy {
	return must(policy.Compile(context.Background(), must(policy.Library())))
})

func (j judge) Evaluate(ctx context.Context, in *policy.Input) (*policy.Decision, error) {
	return j.policy.Evaluate(ctx, in)
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, dir: filepath.Join(t.TempDir(), "gate"), clock: testkit.NewClock(testkit.Noon().Add(time.Hour))}
	must(gate.Init(t.Context(), l.dir, gate.InitParams{Owner: "plant@example", Account: "anna", Password: []byte(password), Program: "packhof-gate test", Now: l.clock.Now()}))
	l.tap.Sink = New(func() gate.DepotStore { return l.gate.Depot() })
	l.gate = must(gate.Open(t.Context(), gate.Options{
		Dir: l.dir, Clock: l.clock.Now, Program: "packhof-gate test", Approvals: gate.Approvals{Allow: 1, Review: 1}, Policy: library(), Judge: judge{library()},
		Destinations: []gate.Destination{{Name: gate.DepotName, Accepts: bundle.Kinds(), Naming: gate.DefaultNaming(), Sink: &l.tap}},
	}))
	t.Cleanup(func() {
		if err := l.gate.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// bundle makes the bundle of a serial with an image and a file set.
func (l *lab) bundle(serial int64, previous *testkit.Forged, imageSeed string) *testkit.Forged {
	l.t.Helper()
	f := testkit.Forge(l.t, func(m *bundle.Manifest) {
		m.Audience, m.Serial = []string{l.gate.ID()}, serial
		if previous != nil {
			d := previous.Head.Digest()
			m.Previous = &d
		}
	})
	f.AddImage(l.t, "registry.example/team/app", "1", testkit.ImageSpec{Seed: imageSeed, PayloadSize: 2 << 20}, "amd64", "arm64")
	if err := f.Seal(l.t.Context(), must(bundle.EncodeManifest(f.Manifest))); err != nil {
		l.t.Fatal(err)
	}
	return f
}

// receive takes a bundle in and has it approved.
func (l *lab) receive(f *testkit.Forged) gate.CaseID {
	l.t.Helper()
	ctx := l.t.Context()
	path := filepath.Join(l.t.TempDir(), "bundle.tar")
	if err := os.WriteFile(path, f.Volume, 0o644); err != nil {
		l.t.Fatal(err)
	}
	c := must(l.gate.Receive(ctx, gate.Console("otto"), path, nil))
	anna := must(l.gate.Authenticate(ctx, "test", "anna", []byte(password)))
	page := must(l.gate.Review(ctx, anna, c.ID))
	must(l.gate.Decide(ctx, anna, c.ID, gate.Approve, page.Digest, "the supplier is known"))
	return c.ID
}

func (l *lab) trust(f *testkit.Forged) {
	l.t.Helper()
	must(l.gate.InitTrust(l.t.Context(), gate.Console("root"), f.Root.Bytes, f.Revoked.Bytes))
}

func (l *lab) effects(id gate.CaseID) map[string]gate.Effect {
	l.t.Helper()
	effects := map[string]gate.Effect{}
	for _, d := range must(l.gate.Plan(l.t.Context(), gate.Console("otto"), id)) {
		for _, a := range d.Actions {
			effects[a.Name.String()] = a.Effect
			if loads := a.Bytes > 0 && a.Blobs > 0; loads == (a.Effect == gate.EffectKeep) {
				l.t.Errorf("%s: %s, %d bytes in %d blobs", a.Name, a.Effect, a.Bytes, a.Blobs)
			}
		}
	}
	return effects
}

// Nothing of a bundle is there before its release, and everything after it,
// for clients that know nothing of us.
func TestReleasedContentIsServed(t *testing.T) {
	l := newLab(t)
	server := httptestServer(t, Handler(l.gate.Depot(), Options{Clock: l.clock.Now}))
	one := l.bundle(1, nil, "one")
	l.trust(one)
	id := l.receive(one)
	image := one.Manifest.Artifacts[1]
	for _, path := range []string{"/v2/registry.example/team/app/manifests/1", "/v2/registry.example/team/app/blobs/" + image.Root.Digest.String(), "/files/notes/1.0/README.md"} {
		if got := ask(t, "GET", server+path); got.StatusCode != 404 {
			t.Errorf("before its release %s: %d", path, got.StatusCode)
		}
	}
	created := map[string]gate.Effect{"notes:1.0": gate.EffectCreate, "registry.example/team/app:1": gate.EffectCreate}
	if diff := cmp.Diff(created, l.effects(id)); diff != "" {
		t.Error(diff)
	}
	c := must(l.gate.Release(t.Context(), gate.Console("otto"), id, nil))
	if c.State != gate.Loaded {
		t.Fatalf("%s: %+v", c.State, c.Problem)
	}
	for _, load := range c.Loads {
		if load.Bytes != 0 || load.Blobs != 0 || load.Kept == 0 || load.Location != "depot "+load.Name {
			t.Errorf("%+v", load)
		}
	}
	if got := pulled(t, server, "registry.example/team/app:1"); got != image.Root.Digest.String() {
		t.Errorf("pulled %s, want %s", got, image.Root.Digest)
	}
	if got := ask(t, "GET", server+"/files/notes/1.0/data/values.csv"); got.body != string(testkit.Bytes("data/values.csv", 700)) {
		t.Errorf("%d, %d bytes", got.StatusCode, len(got.body))
	}
	for _, r := range image.Referrers {
		found := ask(t, "GET", server+"/v2/registry.example/team/app/referrers/"+r.Subject.String())
		if !strings.Contains(found.body, r.Descriptor.Digest.String()) {
			t.Errorf("the referrer %s is not in %s", r.Descriptor.Digest, found.body)
		}
	}

	two := l.bundle(2, one, "two")
	second := l.receive(two)
	changed := map[string]gate.Effect{"notes:1.0": gate.EffectKeep, "registry.example/team/app:1": gate.EffectReplace}
	if diff := cmp.Diff(changed, l.effects(second)); diff != "" {
		t.Error(diff)
	}
	if got := pulled(t, server, "registry.example/team/app:1"); got != image.Root.Digest.String() {
		t.Errorf("before the second release the name means %s", got)
	}
	must(l.gate.Release(t.Context(), gate.Console("otto"), second, nil))
	if got, want := pulled(t, server, "registry.example/team/app:1"), two.Manifest.Artifacts[1].Root.Digest.String(); got != want {
		t.Errorf("after the second release the name means %s, want %s", got, want)
	}
	if got := pulled(t, server, "registry.example/team/app@"+image.Root.Digest.String()); got != image.Root.Digest.String() {
		t.Errorf("what was released before cannot be pulled by digest any more: %s", got)
	}
}

// pulled pulls an index with all its images and gives its digest.
func pulled(t *testing.T, server, ref string) string {
	t.Helper()
	parsed := must(name.ParseReference(strings.TrimPrefix(server, "http://")+"/"+ref, name.Insecure))
	index := must(must(remote.Get(parsed, remote.WithContext(t.Context()))).ImageIndex())
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	return must(index.Digest()).String()
}

// What rotted between approval and release is not released.
func TestRottenContentIsNotReleased(t *testing.T) {
	l := newLab(t)
	f := l.bundle(1, nil, "one")
	l.trust(f)
	id := l.receive(f)
	var layer bundle.Blob
	for _, b := range f.Manifest.Blobs {
		if b.Size > layer.Size {
			layer = b
		}
	}
	spoilFile(t, filepath.Join(l.dir, "store", "blobs", "sha256", layer.Digest.Hex()), 100)
	c, err := l.gate.Release(t.Context(), gate.Console("otto"), id, nil)
	var corrupt *cas.CorruptError
	if !errors.As(err, &corrupt) || c.State == gate.Loaded {
		t.Fatalf("%v, %+v", err, c)
	}
	if _, err := l.gate.Depot().Tag(t.Context(), "registry.example/team/app", "1"); err == nil {
		t.Error("its name is there")
	}
}

// The methods may be called in any state, and see what is wrong.
func TestSinkAgain(t *testing.T) {
	l := newLab(t)
	f := l.bundle(1, nil, "one")
	l.trust(f)
	id := l.receive(f)
	l.tap.holds = true
	if _, err := l.gate.Release(t.Context(), gate.Console("otto"), id, nil); !errors.Is(err, errHeld) {
		t.Fatal(err)
	}
	r, image := l.tap.release, f.Manifest.Artifacts[1]
	for range 2 {
		receipt := must(l.tap.Put(t.Context(), r, image))
		if receipt.Bytes != 0 || receipt.Kept < 7 {
			t.Errorf("%+v", receipt)
		}
		if err := l.tap.Publish(t.Context(), r, r.Names()); err != nil {
			t.Error(err)
		}
	}
	if err := l.tap.Verify(t.Context(), r, image); problem.CodeOf(err) != "destination/mismatch" {
		t.Errorf("before its name is there: %v", err)
	}
	must(l.gate.Release(t.Context(), gate.Console("otto"), id, nil))
	if err := l.tap.Verify(t.Context(), r, image); err != nil {
		t.Error(err)
	}
	two := l.bundle(2, f, "two")
	must(l.gate.Release(t.Context(), gate.Console("otto"), l.receive(two), nil))
	if err := l.tap.Verify(t.Context(), r, image); problem.CodeOf(err) != "destination/mismatch" {
		t.Errorf("after another took its name: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.tap.Put(ended, r, image); !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v", err)
	}
	if _, err := l.tap.Sink.Plan(ended, r); !errors.Is(err, context.Canceled) {
		t.Errorf("Plan: %v", err)
	}
	if err := l.tap.Publish(ended, r, r.Names()); !errors.Is(err, context.Canceled) {
		t.Errorf("Publish: %v", err)
	}
	if err := l.tap.Verify(ended, r, image); !errors.Is(err, context.Canceled) {
		t.Errorf("Verify: %v", err)
	}
}
