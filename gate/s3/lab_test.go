package s3_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	destination "github.com/packhof/packhof/gate/s3"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/s3"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/policy"
)

const (
	mib      = 1 << 20
	partSize = 5 * mib
	password = "correct horse battery"
)

var operator = gate.Console("otto")

// library is the judge of these tests: the rules that ship, without the child
// process around them.
type library struct{ policy *policy.Policy }

func (l library) Evaluate(ctx context.Context, in *policy.Input) (*policy.Decision, error) {
	return l.policy.Evaluate(ctx, in)
}

// rules compiles the library once for all tests.
var rules = sync.OnceValues(func() (*policy.Policy, error) {
	source, err := policy.Library()
	if err != nil {
		return nil, err
	}
	return policy.Compile(context.Background(), source)
})

// lab is a small real gate, and bundles that are meant for it.
type lab struct {
	t        testing.TB
	dir      string
	media    string
	id       string
	gate     *gate.Gate
	handed   *handing
	previous *bundle.Digest
	serial   int64
}

// handing is the destination of the lab's gate: it takes the releases, with
// which a test does the rest.
type handing struct{ releases []*gate.Release }

func (h *handing) Plan(context.Context, *gate.Release) ([]gate.Action, error) { return nil, nil }
func (h *handing) Put(context.Context, *gate.Release, bundle.Artifact) (gate.Receipt, error) {
	return gate.Receipt{}, nil
}

func (h *handing) Publish(_ context.Context, r *gate.Release, _ []gate.Name) error {
	h.releases = append(h.releases, r)
	return nil
}
func (h *handing) Verify(context.Context, *gate.Release, bundle.Artifact) error { return nil }

func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{t: t, dir: filepath.Join(t.TempDir(), "gate"), media: t.TempDir(), handed: &handing{}}
	enrolment, err := gate.Init(t.Context(), l.dir, gate.InitParams{
		Owner: "plant@example", Account: "anna", Password: []byte(password), Program: "packhof-gate test", Now: now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	l.id = enrolment.Gate
	l.open(l.handed)
	return l
}

func now() time.Time { return testkit.Noon().Add(time.Hour) }

// open opens a gate whose one destination is sink.
func open(ctx context.Context, dir string, sink gate.Sink) (*gate.Gate, error) {
	p, err := rules()
	if err != nil {
		return nil, err
	}
	return gate.Open(ctx, gate.Options{
		Dir: dir, Clock: now, Program: "packhof-gate test", Approvals: gate.Approvals{Allow: 1, Review: 1},
		Policy: p, Judge: library{p},
		Destinations: []gate.Destination{{Name: "store", Accepts: bundle.Kinds(), Naming: gate.DefaultNaming(), Sink: sink}},
	})
}

func (l *lab) open(sink gate.Sink) {
	l.t.Helper()
	g, err := open(l.t.Context(), l.dir, sink)
	if err != nil {
		l.t.Fatal(err)
	}
	l.gate = g
	l.t.Cleanup(func() { _ = g.Close() })
}

// contents are files by path.
type contents map[string]string

// add adds a tree of files to a bundle.
func (c contents) add(t testing.TB, f *testkit.Forged, kind bundle.Kind, name string) {
	t.Helper()
	var files []bundle.File
	for path, text := range c {
		files = append(files, bundle.File{Path: path, Size: int64(len(text)), Digest: f.Content.Add([]byte(text))})
	}
	f.AddTree(t, kind, name, files)
}

// approved brings in the next bundle of the channel, with what add puts into
// it, up to its approval.
func (l *lab) approved(add func(*testkit.Forged)) gate.CaseID {
	l.t.Helper()
	l.serial++
	f := testkit.Forge(l.t, func(m *bundle.Manifest) {
		m.Audience, m.Serial, m.Previous = []string{l.id}, l.serial, l.previous
		m.Artifacts, m.Blobs, m.Totals = nil, nil, bundle.Totals{}
		holder := &testkit.Forged{Manifest: m, Content: testkit.Memory{}}
		add(holder)
	}, l.content(add)...)
	if l.serial == 1 {
		if _, err := l.gate.InitTrust(l.t.Context(), gate.Console("root"), f.Root.Bytes, f.Revoked.Bytes); err != nil {
			l.t.Fatal(err)
		}
	}
	digest := f.Head.Digest()
	l.previous = &digest
	path := filepath.Join(l.media, fmt.Sprintf("%d.tar", l.serial))
	if err := os.WriteFile(path, f.Volume, 0o600); err != nil {
		l.t.Fatal(err)
	}
	c, err := l.gate.Receive(l.t.Context(), operator, path, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	anna, err := l.gate.Authenticate(l.t.Context(), "test", "anna", []byte(password))
	if err != nil {
		l.t.Fatal(err)
	}
	page, err := l.gate.Review(l.t.Context(), anna, c.ID)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.gate.Decide(l.t.Context(), anna, c.ID, gate.Approve, page.Digest, "the supplier is known"); err != nil {
		l.t.Fatal(err)
	}
	return c.ID
}

// content is what add puts into a bundle.
func (l *lab) content(add func(*testkit.Forged)) [][]byte {
	holder := &testkit.Forged{Manifest: &bundle.Manifest{}, Content: testkit.Memory{}}
	add(holder)
	var all [][]byte
	for _, b := range holder.Content {
		all = append(all, b)
	}
	return all
}

// release makes the proof that the next bundle of the channel may be loaded.
func (l *lab) release(add func(*testkit.Forged)) *gate.Release {
	l.t.Helper()
	id := l.approved(add)
	if _, err := l.gate.Release(l.t.Context(), operator, id, nil); err != nil {
		l.t.Fatal(err)
	}
	return l.handed.releases[len(l.handed.releases)-1]
}

// dataset is a release of one tree of files, called set:1.0.
func (l *lab) dataset(c contents) *gate.Release {
	l.t.Helper()
	return l.release(func(f *testkit.Forged) { c.add(l.t, f, bundle.Dataset, "set") })
}

func settings(server *testkit.S3, prefix string) s3.Config {
	return s3.Config{
		Endpoint: server.URL(), CA: server.CAPEM(), Region: testkit.S3Region, Bucket: testkit.S3Bucket, Prefix: prefix,
		AccessKey: testkit.S3AccessKey, SecretKey: testkit.S3SecretKey, PartSize: partSize, InFlight: destination.InFlight,
		UserAgent: "packhof-test/1", Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

func newClient(t testing.TB, c s3.Config) *s3.Client {
	t.Helper()
	client, err := s3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

// store is a server and the destination that is tested.
type store struct {
	t      testing.TB
	server *testkit.S3
	prefix string
	client *s3.Client
	sink   *destination.Sink
	fresh  int
}

func newStore(t testing.TB) *store { return storeAt(t, testkit.NewS3(t), "plant/a") }

func storeAt(t testing.TB, server *testkit.S3, prefix string) *store {
	client := newClient(t, settings(server, prefix))
	return &store{t: t, server: server, prefix: prefix, client: client, sink: destination.New(destination.Config{Client: client})}
}

// empty is another destination at the same server, below a prefix of its own.
func (s *store) empty(t testing.TB) *store {
	s.fresh++
	s.server.SetFault(nil)
	return storeAt(t, s.server, fmt.Sprintf("%s-%d", s.prefix, s.fresh))
}

// path is where the server keeps an object.
func (s *store) path(key string) string {
	return filepath.Join(s.server.Files(), filepath.FromSlash(s.prefix), filepath.FromSlash(key))
}

// put puts every artifact of a release and returns what was done in all.
func (s *store) put(r *gate.Release) gate.Receipt {
	s.t.Helper()
	var total gate.Receipt
	for _, a := range r.Artifacts() {
		receipt, err := s.sink.Put(s.t.Context(), r, a)
		if err != nil {
			s.t.Fatal(err)
		}
		total.Location = receipt.Location
		total.Blobs += receipt.Blobs
		total.Bytes += receipt.Bytes
		total.Kept += receipt.Kept
	}
	return total
}

func (s *store) publish(r *gate.Release) {
	s.t.Helper()
	if err := s.sink.Publish(s.t.Context(), r, r.Names()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) verify(r *gate.Release) error {
	for _, a := range r.Artifacts() {
		if err := s.sink.Verify(s.t.Context(), r, a); err != nil {
			return err
		}
	}
	return nil
}

// load does all that a gate does with a release.
func (s *store) load(r *gate.Release) {
	s.t.Helper()
	s.put(r)
	s.publish(r)
	if err := s.verify(r); err != nil {
		s.t.Fatal(err)
	}
}

// plan asks for the one action of a release.
func (s *store) plan(r *gate.Release) gate.Action {
	s.t.Helper()
	actions, err := s.sink.Plan(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(actions) != 1 {
		s.t.Fatalf("%d actions", len(actions))
	}
	return actions[0]
}

// objects are all that the server keeps below our prefix, read from its disk.
func (s *store) objects() contents {
	s.t.Helper()
	all := contents{}
	root := s.path("")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == root {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		all[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// files are those of objects that clients look for: below dir, without what
// Packhof adds.
func (c contents) files(dir string) contents {
	named := contents{}
	for key, text := range c {
		if path, ok := strings.CutPrefix(key, dir+"/"); ok && !strings.HasPrefix(path, ".packhof/") && path != "SHA256SUMS" {
			named[path] = text
		}
	}
	return named
}

// keys are the names of objects, sorted.
func (c contents) keys() []string {
	var keys []string
	for key := range c {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (s *store) wantNoUploads() {
	s.t.Helper()
	uploads, err := s.client.Unfinished(context.WithoutCancel(s.t.Context()), "")
	if err != nil || len(uploads) > 0 {
		s.t.Errorf("uploads left: %v, %v", uploads, err)
	}
}

// foreign makes an object as others do.
func (s *store) foreign(key, text string) {
	s.t.Helper()
	path := s.path(key)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		s.t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, want string) {
	t.Helper()
	if got := problem.CodeOf(err); err == nil || got != want {
		t.Errorf("error %v has code %q, want %q", err, got, want)
	}
}

func blobKey(b []byte) string { return ".packhof/blobs/sha256/" + cas.DigestOf(b).Hex() }

func parse[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
