package gate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

// lab is a gate in a folder of its own, with bundles that are meant for it.
type lab struct {
	t       testing.TB
	dir     string
	id      string
	clock   *testkit.Clock
	media   string
	sink    *shelf
	fault   func(string) error
	more    []gate.Destination
	needs   gate.Approvals
	judge   gate.Judge    // nil: the library
	accepts []bundle.Kind // of the shelf; nil: everything
	program string
	gate    *gate.Gate
}

const password = "correct horse battery"

var operator = gate.Console("otto")

// library is the judge of these tests: the rules that ship, without the child
// process around them.
type library struct{ policy *policy.Policy }

func (l library) Evaluate(ctx context.Context, in *policy.Input) (*policy.Decision, error) {
	return l.policy.Evaluate(ctx, in)
}

func compileLibrary(t testing.TB) *policy.Policy {
	t.Helper()
	source, err := policy.Library()
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(context.Background(), source)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{t: t, dir: filepath.Join(t.TempDir(), "gate"), media: t.TempDir(), clock: testkit.NewClock(testkit.Noon().Add(time.Hour)), program: "packhof-gate test", needs: gate.Approvals{Allow: 1, Review: 1}}
	l.sink = newShelf()
	enrolment, err := gate.Init(t.Context(), l.dir, gate.InitParams{
		Owner: "plant@example", Account: "anna", Password: []byte(password), Program: "packhof-gate test", Now: l.clock.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	l.id = enrolment.Gate
	l.open()
	return l
}

func allKinds() []bundle.Kind { return bundle.Kinds() }

func (l *lab) options() gate.Options {
	return gate.Options{
		Dir: l.dir, Clock: l.clock.Now, Program: l.program, Approvals: l.needs,
		Policy: shared(l.t), Judge: l.judgeOr(library{shared(l.t)}), Faults: func(point string) error {
			if l.fault == nil {
				return nil
			}
			return l.fault(point)
		},
		Destinations: append([]gate.Destination{{Name: gate.DepotName, Accepts: l.kinds(), Naming: gate.DefaultNaming(), Sink: l.sink}}, l.more...),
	}
}

func (l *lab) judgeOr(standard gate.Judge) gate.Judge {
	if l.judge != nil {
		return l.judge
	}
	return standard
}

func (l *lab) kinds() []bundle.Kind {
	if l.accepts != nil {
		return l.accepts
	}
	return allKinds()
}

func (l *lab) open() {
	l.t.Helper()
	g, err := gate.Open(l.t.Context(), l.options())
	if err != nil {
		l.t.Fatal(err)
	}
	l.gate = g
	l.t.Cleanup(func() { _ = g.Close() })
}

// restart gives the directory to a new process, so to say.
func (l *lab) restart() {
	l.t.Helper()
	if err := l.gate.Close(); err != nil {
		l.t.Fatal(err)
	}
	l.open()
}

// forge makes a small bundle for this gate: a file set whose SBOM is absent,
// which the library leaves to people.
func (l *lab) forge(change func(*bundle.Manifest)) *testkit.Forged {
	l.t.Helper()
	return testkit.Forge(l.t, func(m *bundle.Manifest) {
		m.Audience = []string{l.id}
		if change != nil {
			change(m)
		}
	})
}

func (l *lab) trust(f *testkit.Forged) {
	l.t.Helper()
	if _, err := l.gate.InitTrust(l.t.Context(), gate.Console("root"), f.Root.Bytes, f.Revoked.Bytes); err != nil {
		l.t.Fatal(err)
	}
}

// medium writes a volume to the medium and gives its path.
func (l *lab) medium(volume []byte) string {
	l.t.Helper()
	path := filepath.Join(l.media, fmt.Sprintf("%s.tar", cas.DigestOf(volume).Short()))
	if err := os.WriteFile(path, volume, 0o644); err != nil {
		l.t.Fatal(err)
	}
	return path
}

func (l *lab) receive(f *testkit.Forged) (*gate.Case, error) {
	return l.gate.Receive(l.t.Context(), operator, l.medium(f.Volume), nil)
}

func (l *lab) mustReceive(f *testkit.Forged) *gate.Case {
	l.t.Helper()
	c, err := l.receive(f)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func (l *lab) anna() gate.Actor {
	l.t.Helper()
	actor, err := l.gate.Authenticate(l.t.Context(), "test", "anna", []byte(password))
	if err != nil {
		l.t.Fatal(err)
	}
	return actor
}

func (l *lab) approve(id gate.CaseID) {
	l.t.Helper()
	anna := l.anna()
	page, err := l.gate.Review(l.t.Context(), anna, id)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.gate.Decide(l.t.Context(), anna, id, gate.Approve, page.Digest, "the supplier is known"); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) mustRelease(id gate.CaseID) *gate.Case {
	l.t.Helper()
	c, err := l.gate.Release(l.t.Context(), operator, id, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

// next makes the bundle that follows f in its channel.
func (l *lab) next(f *testkit.Forged, serial int64) *testkit.Forged {
	l.t.Helper()
	head := f.Head
	digest := head.Digest()
	return l.forge(func(m *bundle.Manifest) { m.Serial, m.Previous = serial, &digest })
}

// shelf is a destination in memory. The conformance suite is about real ones;
// this is about what the gate does with any.
type shelf struct {
	content map[string]bundle.Digest // by name
	put     []bundle.Digest
	fail    error // of Put
	refuse  string
	rotten  bool // Verify fails
	foreign bool // something of others stands under every name
}

func newShelf() *shelf { return &shelf{content: map[string]bundle.Digest{}} }

func (s *shelf) Plan(_ context.Context, r *gate.Release) ([]gate.Action, error) {
	var actions []gate.Action
	for _, n := range r.Names() {
		a := gate.Action{Name: n, Effect: gate.EffectCreate}
		if s.foreign {
			a.Effect = gate.EffectReplace
		}
		if s.refuse != "" {
			a.Effect, a.Reason = gate.EffectBlocked, s.refuse
		}
		actions = append(actions, a)
	}
	return actions, nil
}

func (s *shelf) Put(ctx context.Context, r *gate.Release, a bundle.Artifact) (gate.Receipt, error) {
	if s.fail != nil {
		return gate.Receipt{}, s.fail
	}
	for _, blob := range r.Manifest().Blobs {
		rc, err := r.Open(ctx, blob.Digest)
		if err != nil {
			return gate.Receipt{}, err
		}
		_, err = io.Copy(io.Discard, rc)
		if err := errors.Join(err, rc.Close()); err != nil {
			return gate.Receipt{}, err
		}
	}
	if slices.Contains(s.put, a.Root.Digest) {
		return gate.Receipt{Location: "shelf/" + r.Name(a).String(), Kept: 1}, nil
	}
	s.put = append(s.put, a.Root.Digest)
	return gate.Receipt{Location: "shelf/" + r.Name(a).String(), Blobs: 1, Bytes: a.Size}, nil
}

func (s *shelf) Publish(_ context.Context, _ *gate.Release, names []gate.Name) error {
	for _, n := range names {
		s.content[n.String()] = n.Digest
	}
	return nil
}

func (s *shelf) Verify(_ context.Context, r *gate.Release, a bundle.Artifact) error {
	if s.rotten || s.content[r.Name(a).String()] != a.Root.Digest {
		return errors.New("the shelf holds something else")
	}
	return nil
}

// stranger signs the forged bundle anew with a key that nobody knows.
func stranger(t testing.TB, f *testkit.Forged) {
	t.Helper()
	s, err := testkit.NewSigner("stranger")
	if err != nil {
		t.Fatal(err)
	}
	f.Signer = s
	if err := f.Seal(t.Context(), f.Head.Manifest); err != nil {
		t.Fatal(err)
	}
}
