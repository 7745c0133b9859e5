package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// Exporter turns a Lock into a signed bundle on a medium.
type Exporter struct {
	Sources  map[string]Source
	Store    *cas.Store
	Scanner  *ScanProgram // nil: make no SBOMs
	NoScan   string       // why Scanner is nil; goes into the manifest
	Signer   signing.Signer
	Trust    *TrustFolder
	Ledger   *Ledger
	Gates    *Gates
	Dir      string // folder of packhof.yaml, where the paths of documents begin
	Progress Progress
	Now      time.Time

	AllowIncomplete bool // seal without artifacts that could not be fetched; the manifest says which
	NoReadback      bool
	Since           []*bundle.Receipt   // bring only what these gates have not
	Want            *bundle.Want        // bring only what it asks for
	Again           *Shipped            // write the set again that went out like this; instead of Since and Want
	Volumes         []int               // write only these volumes of the set; none for all
	VolumeSizes     []int64             // largest sizes of the volumes, as bundle.SetOptions.Limits; none for one volume
	Recipients      []agefile.Recipient // whom the volumes are encrypted to, as Recipients gives them; none for volumes in the clear

	// Warn is told of what is worth knowing and no error, with evidence; nil
	// tells nobody.
	Warn func(what string, evidence []string)

	pieces []bundle.Piece // that the planned set brings; nil for all content
}

// Summary is what an export did.
type Summary struct {
	Manifest   cas.Digest        `json:"manifest"`
	Channel    string            `json:"channel"`
	Epoch      int64             `json:"epoch"`
	Serial     int64             `json:"serial"`
	Resealed   bool              `json:"sealedBefore"` // the serial was sealed by an earlier export
	Set        cas.Digest        `json:"set"`          // id of the volume set
	Complete   bool              `json:"complete"`     // the set brings all content
	Path       string            `json:"path"`         // of the first volume
	Bytes      int64             `json:"bytes"`        // of all volumes
	Volumes    []bundle.Written  `json:"volumes"`
	Recipients []string          `json:"recipients,omitempty"` // whom the volumes are encrypted to
	Artifacts  int               `json:"artifacts"`
	Documents  int               `json:"documents"` // of a control bundle
	Blobs      int64             `json:"blobs"`
	NoSBOM     []bundle.SBOM     `json:"withoutSBOM,omitempty"`
	Incomplete []bundle.Omission `json:"incomplete,omitempty"`
}

// Export does exactly the lock and writes <channel>-<serial>.tar, or the volumes
// of a set, and <channel>-<serial>.packhof.json into dir; of encrypted volumes
// nothing but these, under names that tell nothing. The serial is bound to its
// manifest in the ledger before the first byte is written, so that no second
// content can ever go out under it. Running it again gives the same bytes.
func (e *Exporter) Export(ctx context.Context, l *Lock, dir string) (*Summary, error) {
	if err := e.check(l); err != nil {
		return nil, err
	}
	if err := bundle.CheckWritable(dir); err != nil {
		return nil, err
	}
	if _, err := e.checkRoom(l); err != nil {
		return nil, err
	}
	if err := e.checkMedium(l, dir); err != nil {
		return nil, err
	}
	e.warnOfLocked(l)
	s := &Summary{Channel: l.Channel, Epoch: l.Epoch, Serial: l.Serial, Recipients: textsOf(e.Recipients)}
	if err := e.export(ctx, l, dir, s); err != nil {
		return nil, e.heal(ctx, err)
	}
	return s, nil
}

func (e *Exporter) export(ctx context.Context, l *Lock, dir string, s *Summary) error {
	manifest, err := e.sealed(ctx, l, s)
	if err == nil && manifest == nil {
		manifest, err = e.make(ctx, l)
	}
	if err != nil {
		return err
	}
	head, err := e.head(ctx, l, manifest)
	if err != nil {
		return err
	}
	// What a gate would refuse must not take up a serial.
	if err := e.prove(head); err != nil {
		return err
	}
	if err := e.isRead(l, head.Manifest); err != nil {
		return err
	}
	set, err := e.planSet(head, dir, l)
	if err != nil {
		return err
	}
	// A medium that cannot take it shall not cost a serial either.
	if err := set.CheckRoom(dir, e.Volumes); err != nil {
		return err
	}
	if err := e.seal(l, head.Digest()); err != nil {
		return err
	}
	if err := e.remember(ctx, l, set); err != nil {
		return err
	}
	return e.write(ctx, set, dir, s)
}

// isRead makes sure that every gate reads what the artifacts turned out to be.
func (e *Exporter) isRead(l *Lock, manifest []byte) error {
	m, err := bundle.ParseManifestUnsafe(manifest) // our own
	if err != nil {
		return err
	}
	needs, err := bundle.ContentNeeds(m, bundle.StoreContent(e.Store))
	if err != nil {
		return err
	}
	return e.Gates.Read(l.Audience, needs...)
}

// check finds what would make all the work useless, before any of it.
func (e *Exporter) check(l *Lock) error {
	if l.Channel != e.Ledger.channel {
		return problem.New("lock/foreign", "the lock is for the channel %s, the ledger for %s", l.Channel, e.Ledger.channel).Hint("packhof plan")
	}
	if !e.Now.Before(l.Expires.Time) {
		return problem.New("lock/expired", "the lock made a bundle that expired at %s", l.Expires).Hint("packhof plan")
	}
	if life := l.Expires.Sub(l.Created.Time); life <= 0 || life > maxValidFor {
		return problem.New("lock/malformed", "the lock was created at %s and expires at %s, which is no time that plan would write", l.Created, l.Expires).Hint("packhof plan")
	}
	if err := e.checkPosition(l); err != nil {
		return err
	}
	if _, err := e.trustOf(l); err != nil {
		return err
	}
	if err := e.Gates.Read(l.Audience, l.needs()...); err != nil {
		return err
	}
	return e.Trust.CheckSigner(l.kind(), l.Channel, e.Signer.Public(), e.Now)
}

// checkPosition makes sure that a serial which is not sealed has the place
// that the ledger leaves for it: a lock is a file, and may have been merged.
func (e *Exporter) checkPosition(l *Lock) error {
	if err := e.Ledger.CheckStanding(l.Epoch, l.Serial); err != nil {
		return err
	}
	if _, sealed := e.Ledger.Find(l.Epoch, l.Serial); sealed {
		return nil
	}
	serial, previous, err := e.Ledger.next(l.Epoch)
	if err != nil {
		return err
	}
	if l.Serial != serial || (l.Previous == nil) != (previous == nil) || previous != nil && *l.Previous != *previous {
		return problem.New("lock/position", "the lock has serial %d, and the ledger leaves room for serial %d after %s", l.Serial, serial, orNone(previous)).
			With("previous in the lock:  " + orNone(l.Previous)).Hint("packhof plan")
	}
	return nil
}

func orNone(d *cas.Digest) string {
	if d == nil {
		return "none"
	}
	return d.String()
}

// trustOf finds the trust documents that travel with the lock: roots without a
// gap up to the one that the manifest names, and the revocations.
func (e *Exporter) trustOf(l *Lock) (bundle.Head, error) {
	var h bundle.Head
	changed := problem.New("lock/trust-changed", "the trust documents that the lock names are not the ones here").Hint("packhof plan")
	for i, version := range l.Roots {
		if i > 0 && version != l.Roots[i-1]+1 || version < 1 || version > int64(len(e.Trust.Roots)) {
			return h, changed.With("roots:  " + versionsText(l.Roots))
		}
		h.Roots = append(h.Roots, e.Trust.Roots[version-1])
	}
	if len(h.Roots) == 0 || versioned(newest(h.Roots)) != l.TrustRoot {
		return h, changed.With(fmt.Sprintf("root:  version %d, %s", l.TrustRoot.Version, l.TrustRoot.Digest))
	}
	for _, list := range e.Trust.Revocations {
		if versioned(list) == l.Revocations {
			h.Revocations = list
			return h, nil
		}
	}
	return h, changed.With(fmt.Sprintf("revocations:  version %d, %s", l.Revocations.Version, l.Revocations.Digest))
}

// sealed gives the manifest of a serial that was sealed before, from the
// store, and makes sure that its blobs are there. It gives nil when the serial
// is new, or when the store lost documents of it and they have to be made
// again; the ledger then makes sure that they come out the same.
func (e *Exporter) sealed(ctx context.Context, l *Lock, s *Summary) ([]byte, error) {
	var b []byte
	var err error
	s.Resealed, b, err = e.sealedManifest(l)
	if err != nil || b == nil {
		return nil, err // a rotten one is dropped by heal, and made again the next time
	}
	complete, err := e.bringBack(ctx, l, b)
	if err != nil || !complete {
		return nil, err
	}
	return b, nil
}

// sealedManifest tells whether the serial of a lock was sealed before, and gives
// its manifest where the store still has it.
func (e *Exporter) sealedManifest(l *Lock) (sealed bool, manifest []byte, err error) {
	entry, ok := e.Ledger.Find(l.Epoch, l.Serial)
	if !ok {
		return false, nil, nil
	}
	digest, err := l.Digest()
	if err != nil {
		return true, nil, err
	}
	if digest != entry.Lock {
		return true, nil, serialChanged(l.Serial, "lock", entry.Lock, digest)
	}
	b, err := e.Store.ReadAll(entry.Manifest, bundle.MaxManifestSize)
	if isMissing(err) {
		return true, nil, nil
	}
	return true, b, err
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// bringBack fetches content of a sealed serial that the store lost, and
// reports whether all of it is there now.
func (e *Exporter) bringBack(ctx context.Context, l *Lock, manifest []byte) (bool, error) {
	missing, err := bundle.Missing(manifest, bundle.StoreContent(e.Store))
	if err != nil || missing == 0 {
		return err == nil, err
	}
	failures := make([]error, len(l.Artifacts), len(l.Artifacts)+1)
	for i, p := range l.Artifacts {
		failures[i] = e.fetch(ctx, l, p)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
	}
	if len(l.Documents) > 0 {
		failures = append(failures, e.fetchDocuments(ctx, l))
	}
	missing, err = bundle.Missing(manifest, bundle.StoreContent(e.Store))
	if err != nil || missing == 0 {
		return err == nil, err // what failed was left out when the serial was sealed
	}
	return false, together("could not be fetched again", failures)
}

func (e *Exporter) fetch(ctx context.Context, l *Lock, p Pinned) error {
	_, p.Settled = e.Ledger.Find(l.Epoch, l.Serial)
	source, ok := e.Sources[p.Source]
	if !ok {
		return problem.New("lock/malformed", "the lock names the source %q, which does not exist", p.Source).Hint("packhof plan")
	}
	return source.Fetch(ctx, p, e.Store)
}

// make fetches and describes everything and makes the manifest.
func (e *Exporter) make(ctx context.Context, l *Lock) ([]byte, error) {
	m, err := e.build(ctx, l)
	if err != nil {
		return nil, err
	}
	b, err := bundle.EncodeManifest(m)
	if err != nil {
		return nil, err
	}
	// The store before the ledger: what the ledger names must be there.
	if _, err := e.Store.PutBytes(ctx, b); err != nil {
		return nil, err
	}
	return b, e.Store.SyncNames()
}

// noteSealed keeps, for a serial, which manifest it was sealed with: a second
// witness beside the ledger, which version control can take back.
const noteSealed = "sealed"

// seal binds the serial to its manifest, for good.
func (e *Exporter) seal(l *Lock, manifest cas.Digest) error {
	place := cas.DigestOf(fmt.Appendf(nil, "%s\n%d\n%d", l.Channel, l.Epoch, l.Serial))
	note, ok, err := e.Store.Note(noteSealed, place)
	if err != nil {
		return err
	}
	if ok && string(note) != manifest.String() {
		sealed, err := cas.ParseDigest(string(note))
		if err != nil {
			return err
		}
		return serialChanged(l.Serial, "manifest", sealed, manifest).
			With("the store remembers it; the ledger seems to be an older one").Hint("bring the newest packhof.ledger back from version control")
	}
	lock, err := l.Digest()
	if err != nil {
		return err
	}
	if err := e.Ledger.Seal(LedgerEntry{Epoch: l.Epoch, Serial: l.Serial, Manifest: manifest, Lock: lock, Created: l.Created}); err != nil {
		return err
	}
	return e.Store.SetNote(noteSealed, place, []byte(manifest.String()))
}

// prove judges the bundle as a gate would: from the first root that travels,
// and by everything that is known here.
func (e *Exporter) prove(head bundle.Head) error {
	first, err := signing.ParseRoot(head.Roots[0].Bytes)
	if err != nil {
		return err
	}
	sealed := bundle.OpenSealed("the new bundle", head, bundle.StoreContent(e.Store))
	carried, err := sealed.Trust(signing.NewTrust(first, nil), e.Now)
	if err != nil {
		return err
	}
	for _, trust := range []*signing.Trust{carried, e.Trust.Trust} {
		if _, err := sealed.Verify(trust, e.Now); err != nil {
			return err
		}
	}
	return nil
}

// heal drops a blob that rotted in the store, so that the next run brings it
// again instead of meeting it for ever.
func (e *Exporter) heal(ctx context.Context, err error) error {
	var corrupt *cas.CorruptError
	if !errors.As(err, &corrupt) {
		return err
	}
	dropped, dropErr := e.Store.DropIfRotten(ctx, corrupt.Blob())
	if dropErr != nil {
		return errors.Join(err, dropErr)
	}
	if !dropped {
		return err // the store's copy is sound, or there is none: the source is to blame
	}
	return problem.New("store/rotten", "the blob %s in the store was damaged; it is dropped now", corrupt.Blob()).
		With(corrupt.Evidence()...).Hint("run the same command again: it is fetched again; look after the disk of %s", e.Store.Dir())
}

func (e *Exporter) build(ctx context.Context, l *Lock) (*bundle.Manifest, error) {
	here, omitted, err := e.fetchAll(ctx, l)
	if err != nil {
		return nil, err
	}
	m := &bundle.Manifest{
		Format: bundle.FormatV1, Kind: l.kind(), Channel: l.Channel, Epoch: l.Epoch, Serial: l.Serial, Previous: l.Previous,
		Audience: l.Audience, Created: l.Created, Expires: l.Expires, TrustRoot: l.TrustRoot, Revocations: l.Revocations,
		Note: l.Note, Incomplete: omitted, Answers: l.Answers, Withdraws: l.Withdraws, Artifacts: []bundle.Artifact{},
	}
	describe, err := newDescriber(ctx, e)
	if err != nil {
		return nil, err
	}
	parts := newAssembly(e.Store)
	for _, p := range here {
		entry, manifests, err := parts.artifact(p, l.Created)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", p.Kind, p.Name, err)
		}
		var referrers []bundle.Referrer
		entry.SBOM, referrers, err = describe.describe(ctx, p, manifests)
		if err != nil {
			return nil, err
		}
		if err := parts.attach(entry, referrers); err != nil {
			return nil, err
		}
		m.Artifacts = append(m.Artifacts, *entry)
	}
	if m.Documents, err = parts.documents(l.Documents); err != nil {
		return nil, err
	}
	m.Blobs, m.Totals, err = parts.finish(ctx)
	return m, err
}

// fetchAll goes on after a failure, to report all of them together. Content
// that is wrong is never waved through; what is merely out of reach may be
// left out on request.
func (e *Exporter) fetchAll(ctx context.Context, l *Lock) (here []Pinned, omitted []bundle.Omission, err error) {
	if err := e.fetchDocuments(ctx, l); err != nil {
		return nil, nil, err
	}
	failures := make([]error, len(l.Artifacts))
	mayOmit := e.AllowIncomplete
	for i, p := range l.Artifacts {
		failures[i] = e.fetch(ctx, l, p)
		switch {
		case ctx.Err() != nil:
			return nil, nil, context.Cause(ctx)
		case failures[i] == nil:
			here = append(here, p)
		default:
			failures[i] = fmt.Errorf("%s %s: %w", p.Kind, p.Name, failures[i])
			// The code, not the whole chain: addresses and ports of this machine
			// have no place in a bundle, nor has what differs from run to run.
			omitted = append(omitted, bundle.Omission{Name: p.Name, Reason: fmt.Sprintf("%s: %s", cmp.Or(problem.CodeOf(failures[i]), "failed"), p.From)})
			mayOmit = mayOmit && outOfReach(failures[i])
		}
	}
	if len(omitted) == 0 || mayOmit && len(here) > 0 {
		return here, omitted, nil
	}
	return nil, nil, together("could not be fetched, and nothing was sealed", failures)
}

// outOfReach tells an upstream that does not answer from one that answers
// with the wrong thing.
func outOfReach(err error) bool {
	switch problem.CodeOf(err) {
	case "source/unreachable", "source/failed", "source/rate-limited",
		"registry/unreachable", "registry/failed", "registry/rate-limited", "registry/interrupted":
		return true
	}
	return false
}

// head signs the manifest and puts the trust documents of the lock beside it.
func (e *Exporter) head(ctx context.Context, l *Lock, manifest []byte) (bundle.Head, error) {
	h, err := e.trustOf(l)
	if err != nil {
		return h, err
	}
	h.Manifest = manifest
	signature, err := signing.Sign(ctx, e.Signer, manifest)
	if err != nil {
		return h, err
	}
	h.Signatures = []bundle.Signature{{Key: e.Signer.Public().ID().Short(), Bytes: signature}}
	return h, nil
}

func (e *Exporter) write(ctx context.Context, set *bundle.SetPlan, dir string, s *Summary) error {
	var err error
	s.Volumes, err = set.WriteTo(ctx, dir, bundle.StoreContent(e.Store), bundle.SetWriteOptions{NoReadback: e.NoReadback, Only: e.Volumes, Begin: e.beginVolume})
	if err != nil {
		return err
	}
	for _, v := range s.Volumes {
		s.Bytes += v.Size
	}
	s.Path, s.Set, s.Complete, s.Manifest = s.Volumes[0].Path, set.ID(), set.IsComplete(), set.Manifest()
	m := set.ManifestUnsafe() // our own
	s.Artifacts, s.Documents, s.Blobs, s.Incomplete = len(m.Artifacts), len(m.Documents), m.Totals.Files, m.Incomplete
	for _, a := range m.Artifacts {
		for _, entry := range a.SBOM {
			if entry.Status != bundle.SBOMPresent {
				s.NoSBOM = append(s.NoSBOM, entry)
			}
		}
	}
	return set.WriteManifest(dir)
}

func (e *Exporter) beginVolume(what string, bytes int64) (observe func(int64), done func(error)) {
	item := e.Progress.Start(what, bytes)
	return item.Advance, item.Done
}

// versionsText writes versions for people: "1, 2, 3".
func versionsText(versions []int64) string {
	texts := make([]string, len(versions))
	for i, v := range versions {
		texts[i] = strconv.FormatInt(v, 10)
	}
	return strings.Join(texts, ", ")
}
