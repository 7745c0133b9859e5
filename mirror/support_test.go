package mirror_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
	"github.com/packhof/packhof/signing"
)

const channel = "plant-7"

// shelf is a source in memory: From names a set of files.
type shelf struct {
	mu      sync.Mutex
	trees   map[string]map[string][]byte
	broken  map[string]error // by From: what Resolve and Fetch return
	asked   []string         // From of every Fetch
	settled bool             // of the last Fetch
	step    func()           // before every blob; nil for nothing
}

func (s *shelf) tree(kind bundle.Kind, name, version, from string) (*bundle.Tree, map[cas.Digest][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.broken[from]; err != nil {
		return nil, nil, err
	}
	var files []bundle.File
	content := map[cas.Digest][]byte{}
	for path, b := range s.trees[from] {
		content[cas.DigestOf(b)] = b
		files = append(files, bundle.File{Path: path, Size: int64(len(b)), Digest: cas.DigestOf(b)})
	}
	tree, err := bundle.BuildTree(kind, name, version, files)
	return tree, content, err
}

func (s *shelf) Resolve(ctx context.Context, want mirror.Request, into *cas.Store) (mirror.Pinned, error) {
	tree, content, err := s.tree(want.Kind, want.Name, want.Version, want.From)
	if err != nil {
		return mirror.Pinned{}, err
	}
	p := mirror.Pinned{
		Kind: want.Kind, Name: want.Name, Version: want.Version, Labels: want.Labels, From: want.From,
		Transport: bundle.TransportLocal, Verified: bundle.VerifiedLock, Root: tree.Root, Subjects: []mirror.Subject{{Digest: tree.Root.Digest}},
	}
	for _, b := range content {
		p.Files++
		p.Bytes += int64(len(b))
	}
	return p, ctx.Err()
}

func (s *shelf) Fetch(ctx context.Context, p mirror.Pinned, into *cas.Store) error {
	s.mu.Lock()
	s.asked, s.settled = append(s.asked, p.From), p.Settled
	s.mu.Unlock()
	tree, content, err := s.tree(p.Kind, p.Name, p.Version, p.From)
	if err != nil {
		return err
	}
	if tree.Root.Digest != p.Root.Digest {
		return problem.New("source/moved", "%s is another one now", p.From)
	}
	for _, document := range tree.Documents {
		content[cas.DigestOf(document)] = document
	}
	for _, d := range slices.SortedFunc(keys(content), cas.Digest.Compare) {
		if s.step != nil {
			s.step()
		}
		if _, err := into.PutBytes(ctx, content[d]); err != nil {
			return err
		}
	}
	return nil
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// silent is a Progress that tells nobody.
type silent struct{}

func (silent) Start(string, int64) mirror.Item { return silent{} }
func (silent) Advance(int64)                   {}
func (silent) Done(error)                      {}

// yard is a project with everything real but its sources.
type yard struct {
	dir    string
	shelf  *shelf
	spec   *mirror.Spec
	signer signing.Signer
	store  *cas.Store
	now    time.Time
}

func newYard(t *testing.T) *yard {
	t.Helper()
	dir := t.TempDir()
	writeTrust(t, filepath.Join(dir, "trust"))
	if err := mirror.CreateLedger(filepath.Join(dir, "packhof.ledger"), channel); err != nil {
		t.Fatal(err)
	}
	return openYard(t, dir)
}

// openYard opens a project again, as another process would.
func openYard(t testing.TB, dir string) *yard {
	t.Helper()
	signer, err := testkit.NewSigner("release")
	if err != nil {
		t.Fatal(err)
	}
	store, err := mirror.OpenStore(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{dir: dir, signer: signer, store: store, now: testkit.Noon(), shelf: &shelf{broken: map[string]error{}, trees: map[string]map[string][]byte{
		"a": {"README.md": []byte("about a"), "data/values.csv": testkit.Bytes("values", 5000), "data/same.csv": testkit.Bytes("values", 5000)},
		"b": {"config.json": []byte("{}"), "weights.safetensors": testkit.Bytes("weights", 9000), "shared": testkit.Bytes("values", 5000)},
	}}}
	y.spec = &mirror.Spec{APIVersion: mirror.APIVersion, Kind: mirror.SpecKind, Channel: channel, Note: "a note", Artifacts: []mirror.ArtifactSpec{
		{Kind: bundle.Dataset, Name: "a", Version: "1", Dir: "a", Labels: map[string]string{"team": "paint"}},
		{Kind: bundle.Model, Name: "b", Version: "1", Dir: "b"},
	}}
	y.spec.SetDefaults()
	return y
}

// writeTrust writes root 1, root 2 with a gate, and revocations 1.
func writeTrust(t testing.TB, dir string, prefixes ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f := testkit.Forge(t, nil)
	first, root := f.Root.Bytes, f.Trust.Root()
	if len(prefixes) > 0 {
		var err error
		first, err = signing.NewRoot(context.Background(), signing.RootParams{
			Signer: f.Signer, Owner: "release@example", Channels: []signing.Channel{{Name: channel, Epoch: 1, Prefixes: prefixes}},
			Now: testkit.Noon(), Expires: testkit.Noon().AddDate(3, 0, 0),
		})
		if err == nil {
			root, err = signing.ParseRoot(first)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	draft := root.Next(time.Time{})
	receipt := testkit.Key("receipt")
	public, err := signing.NewPublicKey(&receipt.PublicKey)
	if err == nil {
		err = draft.AddGate(signing.Gate{ID: testkit.GateID, Owner: "gate@example"}, testkit.Noon(), testkit.Noon().AddDate(2, 0, 0), public)
	}
	if err != nil {
		t.Fatal(err)
	}
	second, err := draft.Sign(context.Background(), f.Signer)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"root-1.json": first, "root-2.json": second, "revocations-1.json": f.Revoked.Bytes} {
		write(t, filepath.Join(dir, name), b)
	}
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (y *yard) trust(t testing.TB) *mirror.TrustFolder {
	t.Helper()
	folder, err := mirror.ReadTrust(filepath.Join(y.dir, "trust"), y.now)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func (y *yard) ledgerPath() string { return filepath.Join(y.dir, "packhof.ledger") }

func (y *yard) ledger(t testing.TB) *mirror.Ledger {
	t.Helper()
	l, err := mirror.OpenLedger(y.ledgerPath(), channel)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (y *yard) planner(t testing.TB) *mirror.Planner {
	return &mirror.Planner{Sources: map[string]mirror.Source{"files": y.shelf, "oci": y.shelf}, Store: y.store, Trust: y.trust(t), Ledger: y.ledger(t), Gates: y.gates(t), Dir: y.dir, Now: y.now}
}

func (y *yard) gates(t testing.TB) *mirror.Gates {
	t.Helper()
	g, err := mirror.ReadGates(filepath.Join(y.dir, "trust"), y.trust(t), y.now)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (y *yard) plan(t testing.TB) *mirror.Lock {
	t.Helper()
	l, err := y.planner(t).Plan(context.Background(), y.spec)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (y *yard) exporter(t testing.TB) *mirror.Exporter {
	return &mirror.Exporter{
		Sources: map[string]mirror.Source{"files": y.shelf}, Store: y.store, NoScan: "not asked to", Signer: y.signer,
		Trust: y.trust(t), Ledger: y.ledger(t), Gates: y.gates(t), Dir: y.dir, Progress: silent{}, Now: y.now,
	}
}

// export exports and gives the bytes of the volume.
func (y *yard) export(t *testing.T, l *mirror.Lock) (*mirror.Summary, []byte) {
	t.Helper()
	return exportWith(t, y.exporter(t), l)
}

func exportWith(t *testing.T, e *mirror.Exporter, l *mirror.Lock) (*mirror.Summary, []byte) {
	t.Helper()
	s, err := e.Export(t.Context(), l, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// verify does what "packhof verify" does, and gives the manifest.
func (y *yard) verify(t *testing.T, volume []byte) *bundle.Bundle {
	t.Helper()
	sealed, err := bundle.Open(bytes.NewReader(volume), int64(len(volume)), "x.tar")
	if err != nil {
		t.Fatal(err)
	}
	anchor, err := signing.ParseRoot(y.trust(t).Roots[0].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := sealed.Trust(signing.NewTrust(anchor, nil), y.now)
	if err != nil {
		t.Fatal(err)
	}
	b, err := sealed.Verify(trust, y.now)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return b
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	if got := problem.CodeOf(err); got != code || err == nil {
		t.Errorf("%s: %v (%s), want %s", what, err, got, code)
	}
}
