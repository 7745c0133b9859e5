// Package sourcetest is what every mirror.Source must pass: one suite, run by
// each implementation against a real server or a real tree.
//
// It knows nothing of any upstream: the case says how to move it and how to
// count what it sends. Only tests import it.
package sourcetest

import (
	"context"
	"encoding/json/v2"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/mirror"
)

// Case is a source together with something it can bring.
type Case struct {
	Source mirror.Source
	// Request is for something with at least one blob below its root, named so
	// that Mutate makes it something else: by tag, not by digest.
	Request mirror.Request
	// Unknown asks for something that upstream does not have.
	Unknown mirror.Request
	// Mutate changes what upstream has under the name in Request. It runs last.
	Mutate func(t *testing.T)
	// Fetches counts the transfers of bulk data (blobs, not manifests) that
	// upstream has seen so far; nil where nothing can count them.
	Fetches func() int
	// Asked counts all requests that upstream has seen so far; nil where
	// nothing can count them.
	Asked func() int
	// Interrupt has cancel called once while the next Fetch moves bytes; nil
	// where nothing can tell. Then only calls that begin cancelled are tried.
	Interrupt func(cancel context.CancelFunc)
}

// Test runs the suite. Its parts run one after the other: they share upstream.
func Test(t *testing.T, c Case) {
	t.Helper()
	var pinned mirror.Pinned
	ok := t.Run("resolving twice gives the same", func(t *testing.T) { pinned = c.resolvesTheSame(t) })
	if !ok {
		return // nothing else can be said
	}
	t.Run("fetch brings exactly the closure, once", func(t *testing.T) { c.bringsTheClosure(t, pinned) })
	t.Run("fetch heals what the store lost", func(t *testing.T) { c.heals(t, pinned) })
	t.Run("a cancelled resolve ends", func(t *testing.T) { c.resolveEnds(t) })
	t.Run("a cancelled fetch ends", func(t *testing.T) { c.fetchEnds(t, pinned) })
	t.Run("an interrupted fetch leaves nothing half done", func(t *testing.T) { c.interrupted(t, pinned) })
	t.Run("the unknown is an error with a code", func(t *testing.T) { c.unknown(t) })
	t.Run("a moved upstream is an error with a code", func(t *testing.T) { c.moved(t, pinned) })
}

func (c Case) resolvesTheSame(t *testing.T) mirror.Pinned {
	before := c.fetches()
	first := c.resolve(t, newStore(t))
	second := c.resolve(t, newStore(t))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("resolved a second time (-first +second):\n%s", diff)
	}
	if moved := c.fetches() - before; moved > maxSmallFetches {
		t.Errorf("resolving moved bulk data: %d transfers", moved)
	}
	checkPinned(t, c.Request, first)
	return throughLock(t, first)
}

// maxSmallFetches allows for the small blobs that say what an artifact is,
// such as the config of an image, in two times Resolve.
const maxSmallFetches = 8

func (c Case) resolve(t *testing.T, into *cas.Store) mirror.Pinned {
	t.Helper()
	p, err := c.Source.Resolve(t.Context(), c.Request, into)
	if err != nil {
		t.Fatalf("resolve: %v", err)
	}
	checkStore(t, into)
	return p
}

func checkPinned(t *testing.T, want mirror.Request, p mirror.Pinned) {
	t.Helper()
	if p.Source == "" || p.Kind != want.Kind || p.Name != want.Name || p.Version == "" || p.From == "" || p.Transport == "" || p.Verified == "" {
		t.Errorf("pinned lacks something or names another thing than asked for: %+v", p)
	}
	if want.Version != "" && p.Version != want.Version {
		t.Errorf("version %q, want %q", p.Version, want.Version)
	}
	if p.Root.Digest.IsZero() || p.Root.Size <= 0 || !bundle.IsManifest(p.Root.MediaType) {
		t.Errorf("the root is no manifest: %+v", p.Root)
	}
	if len(p.Subjects) == 0 {
		t.Error("nothing for an SBOM to describe")
	}
}

// throughLock is p as Fetch meets it: read back from a lock file.
func throughLock(t *testing.T, p mirror.Pinned) mirror.Pinned {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatalf("write to a lock: %v", err)
	}
	var back mirror.Pinned
	if err := json.Unmarshal(b, &back, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("read from a lock: %v", err)
	}
	if diff := cmp.Diff(p, back); diff != "" {
		t.Errorf("after a lock (-before +after):\n%s", diff)
	}
	return back
}

func (c Case) bringsTheClosure(t *testing.T, p mirror.Pinned) {
	store := newStore(t)
	if err := c.Source.Fetch(t.Context(), p, store); err != nil {
		t.Fatalf("fetch: %v", err)
	}
	closure := walk(t, p, store)
	held := checkStore(t, store)
	for d := range held {
		if !closure[d] && !isProof(p, d) {
			t.Errorf("the store has %s, which is not below the root", d)
		}
	}
	for _, s := range p.Subjects {
		if !closure[s.Digest] {
			t.Errorf("the subject %s is not below the root", s.Digest)
		}
	}
	before := c.fetches()
	if err := c.Source.Fetch(t.Context(), p, store); err != nil {
		t.Fatalf("fetch again: %v", err)
	}
	if again := c.fetches() - before; again != 0 {
		t.Errorf("fetching again moved %d blobs", again)
	}
	if diff := cmp.Diff(held, checkStore(t, store)); diff != "" {
		t.Errorf("fetching again changed the store (-before +after):\n%s", diff)
	}
}

// isProof reports a document that is not below the root, but says how the root
// came about.
func isProof(p mirror.Pinned, d cas.Digest) bool {
	return p.Listing != nil && d == p.Listing.Digest || p.Derived != nil && d == p.Derived.From
}

func (c Case) heals(t *testing.T, p mirror.Pinned) {
	store := newStore(t)
	if err := c.Source.Fetch(t.Context(), p, store); err != nil {
		t.Fatalf("fetch: %v", err)
	}
	held := checkStore(t, store)
	for d := range held {
		if err := os.Remove(store.Path(d)); err != nil {
			t.Fatal(err)
		}
		if err := c.Source.Fetch(t.Context(), p, store); err != nil {
			t.Fatalf("fetch without %s: %v", d, err)
		}
		walk(t, p, store)
	}
}

func (c Case) resolveEnds(t *testing.T) {
	store := newStore(t)
	_, err := c.Source.Resolve(cancelled(t), c.Request, store)
	checkCancelled(t, err, store)
}

func (c Case) fetchEnds(t *testing.T, p mirror.Pinned) {
	store := newStore(t)
	checkCancelled(t, c.Source.Fetch(cancelled(t), p, store), store)
}

func (c Case) interrupted(t *testing.T, p mirror.Pinned) {
	if c.Interrupt == nil {
		t.Skip("this case cannot interrupt a fetch")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Interrupt(cancel)
	store := newStore(t)
	ended := make(chan error, 1)
	go func() { ended <- c.Source.Fetch(ctx, p, store) }()
	select {
	case err := <-ended:
		checkCancelled(t, err, store)
	case <-time.After(soon):
		t.Fatalf("still fetching after %s", soon)
	}
	if err := c.Source.Fetch(t.Context(), p, store); err != nil {
		t.Fatalf("fetch after an interrupted one: %v", err)
	}
	walk(t, p, store)
}

// soon is far longer than a machine under load needs to notice.
const soon = 30 * time.Second

func (c Case) unknown(t *testing.T) {
	store := newStore(t)
	_, err := c.Source.Resolve(t.Context(), c.Unknown, store)
	checkCoded(t, err)
	checkStore(t, store)
}

func (c Case) moved(t *testing.T, p mirror.Pinned) {
	if c.Mutate == nil {
		t.Fatal("the case has no Mutate")
	}
	full := newStore(t)
	if err := c.Source.Fetch(t.Context(), p, full); err != nil {
		t.Fatalf("fetch before it moves: %v", err)
	}
	c.Mutate(t)
	c.settled(t, p, full)
	store := newStore(t)
	checkCoded(t, c.Source.Fetch(t.Context(), p, store))
	checkStore(t, store)
	if now := c.resolve(t, store); now.Root.Digest == p.Root.Digest {
		t.Error("after upstream moved it still resolves to the same")
	}
}

// settled makes sure that nobody is asked for what a sealed serial has.
func (c Case) settled(t *testing.T, p mirror.Pinned, full *cas.Store) {
	p.Settled = true
	before := c.asked()
	if err := c.Source.Fetch(t.Context(), p, full); err != nil {
		t.Errorf("what is settled and there, after upstream moved: %v", err)
	}
	if asked := c.asked() - before; asked != 0 {
		t.Errorf("%d requests for what is settled and there", asked)
	}
}

func (c Case) asked() int {
	if c.Asked == nil {
		return 0
	}
	return c.Asked()
}

func (c Case) fetches() int {
	if c.Fetches == nil {
		return 0
	}
	return c.Fetches()
}

// walk reads everything below the root, verified, compares it with what was
// promised, and returns it.
func walk(t *testing.T, p mirror.Pinned, store *cas.Store) map[cas.Digest]bool {
	t.Helper()
	closure, manifests := map[cas.Digest]bool{}, map[cas.Digest]bool{}
	var size int64
	read := func(d bundle.OCIDescriptor) ([]byte, error) {
		manifests[d.Digest] = true
		size -= d.Size
		return store.ReadAll(d.Digest, bundle.MaxOCIManifestSize)
	}
	visit := func(d bundle.OCIDescriptor, _ bundle.Role) error {
		closure[d.Digest] = true
		size += d.Size
		if got, err := store.Size(d.Digest); err != nil || got != d.Size {
			t.Errorf("blob %s has %d bytes, %v; want %d", d.Digest, got, err, d.Size)
		}
		return nil
	}
	root := bundle.OCIDescriptor{MediaType: p.Root.MediaType, Digest: p.Root.Digest, Size: p.Root.Size}
	if err := bundle.Walk(root, read, visit); err != nil {
		t.Fatalf("walk from the root: %v", err)
	}
	if files := int64(len(closure) - len(manifests)); files != p.Files || size != p.Bytes {
		t.Errorf("the root has %d blobs of %d bytes below it, and %d of %d were promised", files, size, p.Files, p.Bytes)
	}
	if files := len(closure) - len(manifests); files == 0 {
		t.Error("the case has no blob to fetch")
	}
	return closure
}

// checkStore makes sure that every blob is what its name says and that nothing
// is half written. It returns what there is.
func checkStore(t *testing.T, store *cas.Store) map[cas.Digest]bool {
	t.Helper()
	entries, err := os.ReadDir(store.BlobsDir())
	if err != nil {
		t.Fatal(err)
	}
	held := map[cas.Digest]bool{}
	for _, entry := range entries {
		d, err := cas.ParseHex(entry.Name())
		if err != nil {
			t.Fatalf("in the store: %v", err)
		}
		if _, err := store.ReadAll(d, 1<<40); err != nil {
			t.Errorf("a wrong blob in the store: %v", err)
		}
		held[d] = true
	}
	left, err := os.ReadDir(filepath.Join(store.Dir(), "ingest"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%d files are left in ingest", len(left))
	}
	return held
}

func checkCancelled(t *testing.T, err error, store *cas.Store) {
	t.Helper()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled in its chain", err)
	}
	checkStore(t, store)
}

func checkCoded(t *testing.T, err error) {
	t.Helper()
	var coded interface {
		error
		Code() string
	}
	if err == nil || !errors.As(err, &coded) || coded.Code() == "" {
		t.Errorf("error %v, want one with a code", err)
	}
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func newStore(t *testing.T) *cas.Store {
	t.Helper()
	store, err := cas.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store
}
