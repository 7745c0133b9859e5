package mirror_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
	"github.com/packhof/packhof/mirror"
)

func TestExportRoundTrip(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	s, volume := y.export(t, l)
	b := y.verify(t, volume)
	m := b.Manifest()
	if s.Manifest != b.Digest() || s.Serial != 1 || s.Resealed || s.Artifacts != 2 || s.Blobs != m.Totals.Files || s.Bytes != int64(len(volume)) || len(s.NoSBOM) != 2 {
		t.Errorf("summary %+v", s)
	}
	if m.Note != "a note" || m.Channel != channel || m.Artifacts[0].Labels["team"] != "paint" || m.Artifacts[0].SBOM[0].Reason != "not asked to" {
		t.Errorf("manifest %+v", m)
	}
	for _, a := range y.shelf.trees {
		for path, want := range a {
			if got, err := b.ReadAll(cas.DigestOf(want), 1<<20); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes, %v", path, len(got), err)
			}
		}
	}
	beside, err := os.ReadFile(strings.TrimSuffix(s.Path, ".tar") + ".packhof.json")
	if err != nil || cas.DigestOf(beside) != s.Manifest {
		t.Errorf("the manifest beside the volume: %v", err)
	}
	if last, ok := y.ledger(t).Last(); !ok || last.Manifest != s.Manifest {
		t.Errorf("the ledger has %+v", last)
	}
}

// TestExportRoles: the config.json of b is a file with the bytes of the empty
// config of a, so one digest is both, and metadata.
func TestExportRoles(t *testing.T) {
	y := newYard(t)
	_, volume := y.export(t, y.plan(t))
	m := y.verify(t, volume).Manifest()
	both, ok := m.Blob(cas.DigestOf([]byte("{}")))
	if !ok || both.Role != bundle.RoleMetadata {
		t.Errorf("a digest used as both is %+v", both)
	}
	shared := cas.DigestOf(testkit.Bytes("values", 5000))
	if b, _ := m.Blob(shared); b.Role != bundle.RoleContent {
		t.Errorf("a file is %+v", b)
	}
	for _, a := range m.Artifacts {
		want := int64(0)
		d := bundle.OCIDescriptor{MediaType: a.Root.MediaType, Digest: a.Root.Digest, Size: a.Root.Size}
		read := func(d bundle.OCIDescriptor) ([]byte, error) { return y.store.ReadAll(d.Digest, 1<<20) }
		if err := bundle.Walk(d, read, func(d bundle.OCIDescriptor, _ bundle.Role) error { want += d.Size; return nil }); err != nil {
			t.Fatal(err)
		}
		if a.Size != want {
			t.Errorf("%s has %d bytes, its blobs %d", a.Name, a.Size, want)
		}
	}
}

func TestExportAgainFromTheStore(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	first, volume := y.export(t, l)
	y.shelf.broken["a"], y.shelf.broken["b"] = errors.New("gone"), errors.New("gone")
	y.now = y.now.Add(time.Hour)
	again, same := y.export(t, l)
	if !again.Resealed || again.Manifest != first.Manifest || !bytes.Equal(volume, same) {
		t.Errorf("exported again: %+v", again)
	}
	if b, err := os.ReadFile(y.ledgerPath()); err != nil || bytes.Count(b, []byte("\n")) != 2 {
		t.Errorf("the ledger is\n%s%v", b, err)
	}
}

func TestExportAnotherLockOfTheSameSerial(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	y.export(t, l)
	changed := *l
	changed.Note = "another note"
	_, err := y.exporter(t).Export(t.Context(), &changed, t.TempDir())
	wantCode(t, "another lock for a sealed serial", err, "serial/changed")
}

func TestExportFetchesLostContentBack(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	_, volume := y.export(t, l)
	lost := cas.DigestOf(testkit.Bytes("weights", 9000))
	remove(t, y.store.Path(lost))
	if _, again := y.export(t, l); !bytes.Equal(volume, again) || !y.shelf.settled {
		t.Errorf("after content was lost: the same bytes %v, settled %v", bytes.Equal(volume, again), y.shelf.settled)
	}
	remove(t, y.store.Path(lost))
	y.shelf.trees["b"]["weights.safetensors"] = []byte("other weights")
	_, err := y.exporter(t).Export(t.Context(), l, t.TempDir())
	wantCode(t, "the source has something else now", err, "export/incomplete")
}

func TestExportRebuildsLostMetadata(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	s, volume := y.export(t, l)
	remove(t, y.store.Path(s.Manifest))
	again, same := y.export(t, l)
	if !again.Resealed || !bytes.Equal(volume, same) || !y.shelf.settled {
		t.Errorf("rebuilt: %+v", again)
	}
	if err := os.RemoveAll(y.store.Dir()); err != nil {
		t.Fatal(err)
	}
	fresh := openYard(t, y.dir)
	if _, same := fresh.export(t, l); !bytes.Equal(volume, same) {
		t.Error("rebuilt from nothing it differs")
	}
	remove(t, y.store.Path(s.Manifest))
	e := fresh.exporter(t)
	e.NoScan = "another reason" // makes another manifest
	_, err := e.Export(t.Context(), l, t.TempDir())
	wantCode(t, "rebuilt, it comes out differently", err, "serial/changed")
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestExportNeverShipsRottenContent(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	_, volume := y.export(t, l)
	path := y.store.Path(cas.DigestOf(testkit.Bytes("weights", 9000)))
	remove(t, path)
	write(t, path, make([]byte, 9000)) // right size, wrong bytes
	dir := t.TempDir()
	_, err := y.exporter(t).Export(t.Context(), l, dir)
	wantCode(t, "a rotten blob", err, "store/rotten")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	if _, again := y.export(t, l); !bytes.Equal(volume, again) {
		t.Error("fetched again it differs")
	}
}

func TestAllowIncomplete(t *testing.T) {
	for code, allowed := range map[string]bool{
		"source/unreachable": true, "source/failed": true, "source/rate-limited": true,
		"source/not-found": false, "source/moved": false, "source/wrong-content": false, "content/corrupt": false, "auth/required": false, "oci/malformed": false, "": false,
	} {
		t.Run("code "+code, func(t *testing.T) {
			y := newYard(t)
			l := y.plan(t)
			y.shelf.broken["b"] = problem.New(code, "the shelf fails")
			if code == "" {
				y.shelf.broken["b"] = errors.New("the shelf fails")
			}
			if _, err := y.exporter(t).Export(t.Context(), l, t.TempDir()); problem.CodeOf(err) != "export/incomplete" {
				t.Errorf("not allowed: %v", err)
			}
			e := y.exporter(t)
			e.AllowIncomplete = true
			s, err := e.Export(t.Context(), l, t.TempDir())
			_, sealed := y.ledger(t).Last()
			if allowed != (err == nil) || allowed != sealed {
				t.Fatalf("allowed: %v, sealed %v", err, sealed)
			}
			if allowed && (len(s.Incomplete) != 1 || s.Incomplete[0].Name != "b" || s.Artifacts != 1) {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

func TestAllowIncompleteIsSealedThatWay(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	y.shelf.broken["b"] = problem.New("source/unreachable", "no route")
	e := y.exporter(t)
	e.AllowIncomplete = true
	_, volume := exportWith(t, e, l)
	if m := y.verify(t, volume).Manifest(); len(m.Incomplete) != 1 || m.Incomplete[0].Reason != "source/unreachable: b" {
		t.Errorf("incomplete: %+v", m.Incomplete)
	}
	remove(t, y.store.Path(cas.DigestOf([]byte("about a"))))
	if _, again := y.export(t, l); !bytes.Equal(volume, again) { // b is still out of reach, and not needed
		t.Error("exported again it differs")
	}
	y.shelf.broken["a"] = y.shelf.broken["b"]
	remove(t, y.store.Path(cas.DigestOf([]byte("about a"))))
	_, err := y.exporter(t).Export(t.Context(), l, t.TempDir())
	wantCode(t, "content is missing and out of reach", err, "export/incomplete")
	fresh := newYard(t)
	fresh.shelf.broken = y.shelf.broken
	e = fresh.exporter(t)
	e.AllowIncomplete = true
	_, err = e.Export(t.Context(), l, t.TempDir())
	if _, sealed := fresh.ledger(t).Last(); err == nil || sealed {
		t.Errorf("an export of nothing at all: %v", err)
	}
}

func TestExportChecksBeforeItWorks(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, y *yard, e *mirror.Exporter, l *mirror.Lock)
		code   string
	}{
		"expired":         {func(_ *testing.T, _ *yard, e *mirror.Exporter, l *mirror.Lock) { e.Now = l.Expires.Time }, "lock/expired"},
		"another channel": {func(_ *testing.T, _ *yard, _ *mirror.Exporter, l *mirror.Lock) { l.Channel = "plant-8" }, "lock/foreign"},
		"another root": {func(_ *testing.T, _ *yard, _ *mirror.Exporter, l *mirror.Lock) {
			l.TrustRoot.Digest = cas.DigestOf(nil)
		}, "lock/trust-changed"},
		"a root to come":    {func(_ *testing.T, _ *yard, _ *mirror.Exporter, l *mirror.Lock) { l.TrustRoot.Version = 3 }, "lock/trust-changed"},
		"other revocations": {func(_ *testing.T, _ *yard, _ *mirror.Exporter, l *mirror.Lock) { l.Revocations.Version = 2 }, "lock/trust-changed"},
		"a stranger's key":  {func(t *testing.T, _ *yard, e *mirror.Exporter, _ *mirror.Lock) { e.Signer = stranger(t) }, "trust/not-a-signer"},
		"no source":         {func(_ *testing.T, _ *yard, e *mirror.Exporter, _ *mirror.Lock) { e.Sources = nil }, "export/incomplete"},
		"a serial gone by":  {func(t *testing.T, y *yard, e *mirror.Exporter, _ *mirror.Lock) { sealLater(t, e.Ledger) }, "lock/position"},
		"a subject far away": {func(_ *testing.T, _ *yard, _ *mirror.Exporter, l *mirror.Lock) {
			l.Artifacts[0].Subjects[0].Digest = cas.DigestOf(nil)
		}, ""},
	} {
		y := newYard(t)
		l := y.plan(t)
		e := y.exporter(t)
		c.change(t, y, e, l)
		before, _ := e.Ledger.Last()
		dir := t.TempDir()
		if _, err := e.Export(t.Context(), l, dir); problem.CodeOf(err) != c.code || err == nil {
			t.Errorf("%s: %v (%s), want %s", name, err, problem.CodeOf(err), c.code)
		}
		if after, _ := e.Ledger.Last(); after != before {
			t.Errorf("%s: sealed all the same", name)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("%s: the folder holds %v, %v", name, left, err)
		}
	}
}

func sealLater(t *testing.T, l *mirror.Ledger) {
	t.Helper()
	if err := l.Seal(entry(1, 5, "five")); err != nil {
		t.Fatal(err)
	}
}

func TestExportEndsWithItsContext(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	cause := errors.New("stopped by a person")
	ctx, cancel := context.WithCancelCause(t.Context())
	y.shelf.step = func() { cancel(cause) }
	if _, err := y.exporter(t).Export(ctx, l, t.TempDir()); !errors.Is(err, cause) {
		t.Errorf("stopped while fetching: %v", err)
	}
	if _, sealed := y.ledger(t).Last(); sealed {
		t.Error("sealed all the same")
	}
	y.shelf.step = nil
	y.export(t, l)
	remove(t, y.store.Path(cas.DigestOf([]byte("about a"))))
	if _, err := y.exporter(t).Export(ctx, l, t.TempDir()); !errors.Is(err, cause) {
		t.Errorf("stopped while fetching back: %v", err)
	}
}

func TestDryRun(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	dir := t.TempDir()
	d, err := y.exporter(t).DryRun(t.Context(), l, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := &mirror.DryRun{Channel: channel, Serial: 1, Path: filepath.Join(dir, "plant-7-000001.tar"), Artifacts: 2, Bytes: l.Artifacts[0].Bytes + l.Artifacts[1].Bytes, Free: d.Free, Volumes: []bundle.Written{}, Complete: true}
	want.Fetch = want.Bytes
	if diff := cmp.Diff(want, d); diff != "" || d.Free <= 0 {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	if _, sealed := y.ledger(t).Last(); sealed || len(y.shelf.asked) > 0 {
		t.Error("a dry run did something")
	}
	y.export(t, l)
	if d, err = y.exporter(t).DryRun(t.Context(), l, dir); err != nil || d.Fetch != 0 {
		t.Errorf("after an export %d bytes would be fetched, %v", d.Fetch, err)
	}
	remove(t, y.store.Path(cas.DigestOf([]byte("about a"))))
	if d, err = y.exporter(t).DryRun(t.Context(), l, dir); err != nil || d.Fetch != int64(len("about a")) {
		t.Errorf("with a blob of a lost %d bytes would be fetched, %v", d.Fetch, err)
	}
	l.Channel = "plant-8"
	_, err = y.exporter(t).DryRun(t.Context(), l, dir)
	wantCode(t, "another channel", err, "lock/foreign")
}

// TestChunkListsOfLargeContent sends content over 64 MiB through an export.
func TestChunkListsOfLargeContent(t *testing.T) {
	large := make([]byte, bundle.ChunkSize+1)
	large[0], large[len(large)-1] = 1, 2
	y := newYard(t)
	y.shelf.trees["b"]["large.bin"] = large
	l := y.plan(t)
	_, volume := y.export(t, l)
	b := y.verify(t, volume)
	blob, ok := b.Manifest().Blob(cas.DigestOf(large))
	if !ok || blob.Chunks == nil {
		t.Fatalf("the large blob is %+v", blob)
	}
	list, err := b.ReadAll(*blob.Chunks, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	chunks, err := bundle.ParseChunkList(list, blob.Digest, blob.Size)
	if err != nil {
		t.Fatal(err)
	}
	want := []cas.Digest{cas.DigestOf(large[:bundle.ChunkSize]), cas.DigestOf(large[bundle.ChunkSize:])}
	if !slices.Equal(chunks.Chunks, want) {
		t.Errorf("chunks %v, want %v", chunks.Chunks, want)
	}
	notes := filepath.Join(y.store.Dir(), "notes", "chunks", blob.Digest.Hex())
	if _, err := os.Stat(notes); err != nil {
		t.Errorf("the chunks were not noted while the blob came in: %v", err)
	}
	remove(t, notes) // then they are computed again, to the same end
	remove(t, y.store.Path(b.Digest()))
	if _, again := y.export(t, l); !bytes.Equal(volume, again) {
		t.Error("without the note it differs")
	}
}

// changing is a signer that fails at will.
type failingSigner struct {
	*testkit.Signer
	err error
}

func (s failingSigner) SignDigest(context.Context, [32]byte) ([]byte, error) { return nil, s.err }

func TestExportSealsNothingUnsigned(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	signer, err := testkit.NewSigner("release")
	if err != nil {
		t.Fatal(err)
	}
	e := y.exporter(t)
	e.Signer = failingSigner{signer, io.ErrClosedPipe}
	dir := t.TempDir()
	if _, err := e.Export(t.Context(), l, dir); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a signer that fails: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	if last, sealed := y.ledger(t).Last(); sealed {
		t.Errorf("serial %d was sealed without a signature", last.Serial)
	}
}
