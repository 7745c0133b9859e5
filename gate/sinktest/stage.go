package sinktest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

// stage is a real gate with one destination.
type stage struct {
	dir     string
	gate    *gate.Gate
	harness Harness
	sink    *recorder
	officer gate.Actor
	faults  faults
}

// carrier is who brings bundles in and has them loaded.
func carrier() gate.Actor { return gate.Console("carrier") }

// errKilled stands for the end of the process.
var errKilled = errors.New("killed")

// faults stops the gate at a point, once.
type faults struct {
	mu    sync.Mutex
	point string
}

func (f *faults) arm(point string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.point = point
}

func (f *faults) at(point string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.point == "" || f.point != point {
		return nil
	}
	f.point = ""
	return errKilled
}

func openStage(t *testing.T, newHarness Make) *stage {
	t.Helper()
	s := &stage{dir: filepath.Join(t.TempDir(), "gate")}
	password := []byte("correct horse battery staple")
	if _, err := gate.Init(t.Context(), s.dir, gate.InitParams{
		Owner: "sinktest", Hosts: []string{"127.0.0.1"}, Account: "officer", Password: password, Program: "sinktest 1", Now: testkit.Noon(),
	}); err != nil {
		t.Fatalf("init: %v", err)
	}
	s.harness = newHarness(t, func() *gate.Gate { return s.gate })
	if s.harness.Name == "" {
		s.harness.Name = "plant"
	}
	if s.harness.Accepts == nil {
		s.harness.Accepts = bundle.Kinds()
	}
	s.sink = &recorder{inner: s.harness.Sink}
	s.open(t)
	var err error
	if s.officer, err = s.gate.Authenticate(t.Context(), "test", "officer", password); err != nil {
		t.Fatalf("log in: %v", err)
	}
	return s
}

func (s *stage) open(t *testing.T) {
	t.Helper()
	judge, err := policy.Compile(t.Context(), policy.Source{Modules: map[string]string{"somebody_looks.rego": somebodyLooks}})
	if err != nil {
		t.Fatalf("policy: %v", err)
	}
	s.gate, err = gate.Open(t.Context(), gate.Options{
		Dir: s.dir, Clock: testkit.NewClock(testkit.Noon()).Now, Program: "sinktest 1",
		Destinations: []gate.Destination{{Name: s.harness.Name, Accepts: s.harness.Accepts, Naming: gate.DefaultNaming(), Sink: s.sink}},
		Approvals:    gate.Approvals{Allow: 1, Review: 1}, Policy: judge, Judge: judge, Faults: s.faults.at,
	})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.gate.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// somebodyLooks is a policy that wants everything to be looked at, so that the
// suite depends on no rule that ships.
const somebodyLooks = `# METADATA
# title: Somebody looks at it
# custom:
#   kinds: [image, chart, model, dataset, files, packages]
#   title_de: "Jemand sieht es an"
#   message: "somebody has to look at it"
#   message_de: "Jemand muss es ansehen"
#   remedy: "look at it"
#   remedy_de: "Ansehen"
package packhof.rules.somebody_looks

checked contains a.digest if some a in input.artifacts

findings contains {"artifact": a.digest, "level": "review", "params": {}} if some a in input.artifacts
`

// receive brings a serial in and approves it.
func (s *stage) receive(t *testing.T, b *serial) gate.CaseID {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.tar")
	if err := os.WriteFile(path, b.Volume, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := s.gate.Receive(t.Context(), carrier(), path, nil)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	page, err := s.gate.Review(t.Context(), carrier(), c.ID)
	if err != nil {
		t.Fatalf("review: %v", err)
	}
	if _, err := s.gate.Decide(t.Context(), s.officer, c.ID, gate.Approve, page.Digest, "looked at"); err != nil {
		t.Fatalf("approve: %v", err)
	}
	return c.ID
}

func (s *stage) trust(t *testing.T, b *serial) {
	t.Helper()
	if _, err := s.gate.InitTrust(t.Context(), carrier(), b.Root.Bytes, b.Revoked.Bytes); err != nil {
		t.Fatalf("trust: %v", err)
	}
}

// releaseOf gives what the gate let through as the serial of this number.
func (s *stage) releaseOf(t *testing.T, number int64) *gate.Release {
	t.Helper()
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	i := slices.IndexFunc(s.sink.released, func(r *gate.Release) bool { return r.Manifest().Serial == number })
	if i < 0 {
		t.Fatalf("serial %d was never released", number)
	}
	return s.sink.released[i]
}

// recorder hands a gate's calls on and remembers them.
type recorder struct {
	inner gate.Sink

	mu       sync.Mutex
	released []*gate.Release // with which Put was called
	receipts []gate.Receipt
	planned  []gate.Action // of the last Plan
}

// Plan implements gate.Sink.
func (k *recorder) Plan(ctx context.Context, r *gate.Release) ([]gate.Action, error) {
	actions, err := k.inner.Plan(ctx, r)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.planned = actions
	return actions, err
}

// Put implements gate.Sink.
func (k *recorder) Put(ctx context.Context, r *gate.Release, a bundle.Artifact) (gate.Receipt, error) {
	receipt, err := k.inner.Put(ctx, r, a)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.released = append(k.released, r)
	k.receipts = append(k.receipts, receipt)
	return receipt, err
}

// Publish implements gate.Sink.
func (k *recorder) Publish(ctx context.Context, r *gate.Release, names []gate.Name) error {
	return k.inner.Publish(ctx, r, names)
}

// Verify implements gate.Sink.
func (k *recorder) Verify(ctx context.Context, r *gate.Release, a bundle.Artifact) error {
	return k.inner.Verify(ctx, r, a)
}

// takeReceipts gives those since it was last called.
func (k *recorder) takeReceipts() []gate.Receipt {
	k.mu.Lock()
	defer k.mu.Unlock()
	taken := k.receipts
	k.receipts = nil
	return taken
}

func (k *recorder) plan() []gate.Action {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.planned)
}
