package mirror

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// Cache is what the store holds, by what it is kept for. Each blob counts once,
// for the first reason that holds.
type Cache struct {
	Metadata Amount `json:"metadata"` // manifests and metadata of sealed serials: never removed
	Locked   Amount `json:"locked"`   // what packhof.lock needs
	Awaited  Amount `json:"awaited"`  // content that some gate has not acknowledged
	Free     Amount `json:"free"`     // content that every gate of its audience has acknowledged
	Others   Amount `json:"others"`   // what no sealed serial names: locks, results of scans, plans that were given up

	Prunable []PrunableBlob `json:"prunable"` // what Free counts
}

// Amount counts blobs.
type Amount struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}

func (a *Amount) add(size int64) { a.Blobs, a.Bytes = a.Blobs+1, a.Bytes+size }

// PrunableBlob is content that the store can do without.
type PrunableBlob struct {
	Digest cas.Digest `json:"digest"`
	Size   int64      `json:"size"`
	Serial int64      `json:"serial"` // the newest that names it
}

// keeper finds out what the store has to keep.
type keeper struct {
	store    *cas.Store
	ledger   *Ledger
	held     map[string]map[cas.Digest]bool // by gate: content that its receipt proves there
	metadata map[cas.Digest]bool
	awaited  map[cas.Digest]bool
	newest   map[cas.Digest]int64 // of all content of sealed serials: the newest serial that names it
}

// Survey tells what the store holds and what of it can go. lock is what is
// planned; it may be nil. The caller keeps other processes out of the store.
//
// What may go is known from manifests alone, so a sealed serial whose manifest
// the store has lost is an error.
func Survey(store *cas.Store, ledger *Ledger, gates *Gates, lock *Lock) (*Cache, error) {
	k := &keeper{store: store, ledger: ledger, metadata: map[cas.Digest]bool{}, awaited: map[cas.Digest]bool{}, newest: map[cas.Digest]int64{}}
	manifests, err := k.manifests()
	if err != nil {
		return nil, err
	}
	k.held = gates.heldContent(ledger.channel, manifests)
	for _, e := range ledger.entries {
		if e.isSealing() {
			k.serial(e, manifests[e.Manifest])
		}
	}
	if err := k.strangers(manifests); err != nil {
		return nil, err
	}
	locked, err := lockedBlobs(store, lock)
	if err != nil {
		return nil, err
	}
	return k.sort(locked)
}

// manifests reads the manifest of every sealed serial of the ledger.
func (k *keeper) manifests() (map[cas.Digest]*bundle.Manifest, error) {
	found := map[cas.Digest]*bundle.Manifest{}
	for _, e := range k.ledger.entries {
		if !e.isSealing() {
			continue
		}
		m, err := sealedManifest(k.store, e.Manifest)
		if isMissing(err) {
			return nil, problem.New("cache/manifest-lost", "the store has lost the manifest of serial %d, so nobody knows what must stay", e.Serial).
				Hint("packhof resend --serial %d --to FOLDER  makes it again", e.Serial)
		}
		if err != nil {
			return nil, err
		}
		found[e.Manifest] = m
	}
	return found, nil
}

func sealedManifest(store *cas.Store, d cas.Digest) (*bundle.Manifest, error) {
	b, err := store.ReadAll(d, bundle.MaxManifestSize)
	if err != nil {
		return nil, err
	}
	return bundle.ParseManifestUnsafe(b) // our own
}

// serial notes what one sealed serial needs. Nobody waits for the content of one
// that was given up.
func (k *keeper) serial(e LedgerEntry, m *bundle.Manifest) {
	_, abandoned := k.ledger.Abandonment(e.Epoch, e.Serial)
	k.metadata[e.Manifest], k.metadata[e.Lock] = true, true
	for _, b := range m.Blobs {
		if b.Role == bundle.RoleMetadata {
			k.metadata[b.Digest] = true
			continue
		}
		k.newest[b.Digest] = max(k.newest[b.Digest], e.Serial)
		if !abandoned && slices.ContainsFunc(m.Audience, func(gate string) bool { return !k.held[gate][b.Digest] }) {
			k.awaited[b.Digest] = true
		}
	}
}

// strangers keeps all that other projects with the same store have sealed: what
// their gates have acknowledged is not known here.
func (k *keeper) strangers(own map[cas.Digest]*bundle.Manifest) error {
	return k.store.EachNote(noteSealed, func(note []byte) error {
		d, err := cas.ParseDigest(string(note))
		if err != nil || own[d] != nil {
			return err
		}
		m, err := sealedManifest(k.store, d)
		if isMissing(err) {
			return problem.New("cache/manifest-lost", "the store has lost the manifest %s of another project, so nobody knows what must stay", d.Short()).
				Hint("have that project resend it, or give it a store of its own")
		}
		if err != nil {
			return err
		}
		k.metadata[d] = true
		for _, b := range m.Blobs {
			k.awaited[b.Digest] = true
		}
		return nil
	})
}

// lockedBlobs is everything below the artifacts and documents of a lock.
func lockedBlobs(store *cas.Store, l *Lock) (map[cas.Digest]bool, error) {
	locked := map[cas.Digest]bool{}
	if l == nil {
		return locked, nil
	}
	for _, p := range l.Artifacts {
		parts := newAssembly(store)
		// What is missing below it is fetched by the export; the rest is kept.
		if _, _, err := parts.artifact(p, bundle.Instant{}); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for d := range parts.blobs {
			locked[d] = true
		}
		if p.Listing != nil {
			locked[p.Listing.Digest] = true
		}
	}
	for _, d := range l.Documents {
		locked[d.Blob] = true
	}
	return locked, nil
}

// sort goes through the store and counts.
func (k *keeper) sort(locked map[cas.Digest]bool) (*Cache, error) {
	c := &Cache{Prunable: []PrunableBlob{}}
	err := k.store.Each(func(d cas.Digest, size int64) {
		serial, isContent := k.newest[d]
		switch {
		case k.metadata[d]:
			c.Metadata.add(size)
		case locked[d]:
			c.Locked.add(size)
		case k.awaited[d]:
			c.Awaited.add(size)
		case isContent:
			c.Free.add(size)
			c.Prunable = append(c.Prunable, PrunableBlob{Digest: d, Size: size, Serial: serial})
		default:
			c.Others.add(size)
		}
	})
	slices.SortFunc(c.Prunable, func(a, b PrunableBlob) int { return a.Digest.Compare(b.Digest) })
	return c, err
}

// Prune removes what a survey found that the store can do without. What is
// removed is fetched again if it is ever needed.
func (c *Cache) Prune(ctx context.Context, store *cas.Store) error {
	for _, b := range c.Prunable {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := store.Remove(b.Digest); err != nil {
			return err
		}
	}
	return store.SyncNames()
}

// heldContent tells, by gate, which blobs its newest receipt proves there:
// those of the listed bundles that were sealed here, less what is lacking.
func (g *Gates) heldContent(channel string, manifests map[cas.Digest]*bundle.Manifest) map[string]map[cas.Digest]bool {
	held := map[string]map[cas.Digest]bool{}
	for id, words := range g.known {
		held[id] = map[cas.Digest]bool{}
		if words.receipt == nil {
			continue
		}
		for _, c := range words.receipt.Channels {
			if c.Channel == channel {
				addHeld(held[id], c, manifests)
			}
		}
	}
	return held
}

func addHeld(held map[cas.Digest]bool, c bundle.ReceiptChannel, manifests map[cas.Digest]*bundle.Manifest) {
	lacking := map[cas.Digest]bool{}
	for _, entry := range c.Bundles {
		m := manifests[entry.Manifest]
		if m == nil || entry.State == bundle.HoldsNone || m.Epoch != entry.Epoch || m.Serial != entry.Serial {
			continue
		}
		for _, b := range m.Blobs {
			held[b.Digest] = true
		}
		for _, p := range entry.Lacks {
			lacking[p.Blob] = true
		}
	}
	maps.DeleteFunc(held, func(d cas.Digest, _ bool) bool { return lacking[d] })
}
