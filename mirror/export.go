package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/packhof/packhof/bundle"
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
	Progress Progress
	Now      time.Time

	AllowIncomplete bool // seal without artifacts that could not be fetched; the manifest says which
	NoReadback      bool
}

// Summary is what an export did.
type Summary struct {
	Manifest   cas.Digest        `json:"manifest"`
	Channel    string            `json:"channel"`
	Epoch      int64             `json:"epoch"`
	Serial     int64             `json:"serial"`
	Resealed   bool              `json:"sealedBefore"` // the serial was sealed by an earlier export
	Path       string            `json:"path"`
	Bytes      int64             `json:"bytes"` // of the file at Path
	Artifacts  int               `json:"artifacts"`
	Blobs      int64             `json:"blobs"`
	NoSBOM     []bundle.SBOM     `json:"withoutSBOM,omitempty"`
	Incomplete []bundle.Omission `json:"incomplete,omitempty"`
}

// Export does exactly the lock and writes <channel>-<serial>.tar and
// <channel>-<serial>.packhof.json into dir. The serial is bound to its
// manifest in the ledger before the first byte is written, so that no second
// content can ever go out under it. Running it again gives the same bytes.
func (e *Exporter) Export(ctx context.Context, l *Lock, dir string) (*Summary, error) {
	if err := e.check(l); err != nil {
		return nil, err
	}
	s := &Summary{Channel: l.Channel, Epoch: l.Epoch, Serial: l.Serial}
	manifest, err := e.sealed(ctx, l, s)
	if err == nil && manifest == nil {
		manifest, err = e.seal(ctx, l)
	}
	if err != nil {
		return nil, err
	}
	head, err := e.head(ctx, l, manifest)
	if err != nil {
		return nil, err
	}
	return s, e.write(ctx, head, dir, s)
}

// check finds what would make all the work useless, before any of it.
func (e *Exporter) check(l *Lock) error {
	if l.Channel != e.Ledger.channel {
		return problem.New("lock/foreign", "the lock is for the channel %s, the ledger for %s", l.Channel, e.Ledger.channel).Hint("packhof plan")
	}
	if !e.Now.Before(l.Expires.Time) {
		return problem.New("lock/expired", "the lock made a bundle that expired at %s", l.Expires).Hint("packhof plan")
	}
	for _, pair := range []struct {
		what string
		want bundle.Versioned
		docs []bundle.TrustDocument
	}{{"root", l.TrustRoot, e.Trust.Roots}, {"revocations", l.Revocations, []bundle.TrustDocument{e.Trust.Revocations}}} {
		found := false
		for _, doc := range pair.docs {
			found = found || doc.Version == pair.want.Version && cas.DigestOf(doc.Bytes) == pair.want.Digest
		}
		if !found {
			return problem.New("lock/trust-changed", "the lock names version %d of the trust document %s, which is not the one here", pair.want.Version, pair.what).
				Hint("packhof plan")
		}
	}
	return e.Trust.CheckSigner(l.Channel, e.Signer.Public(), e.Now)
}

// sealed gives the manifest of a serial that was sealed before, from the
// store, and makes sure that its blobs are there. It gives nil when the serial
// is new, or when the store lost documents of it and they have to be made
// again; the ledger then makes sure that they come out the same.
func (e *Exporter) sealed(ctx context.Context, l *Lock, s *Summary) ([]byte, error) {
	entry, ok := e.Ledger.Find(l.Epoch, l.Serial)
	if !ok {
		return nil, nil
	}
	digest, err := l.Digest()
	if err != nil {
		return nil, err
	}
	if digest != entry.Lock {
		return nil, serialChanged(l.Serial, "lock", entry.Lock, digest)
	}
	s.Resealed = true
	b, err := e.Store.ReadAll(entry.Manifest, bundle.MaxManifestSize)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	complete, err := e.bringBack(ctx, l, b)
	if err != nil || !complete {
		return nil, err
	}
	return b, nil
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// bringBack fetches content of a sealed serial that the store lost, and
// reports whether all of it is there now.
func (e *Exporter) bringBack(ctx context.Context, l *Lock, manifest []byte) (bool, error) {
	missing, err := bundle.Missing(manifest, bundle.StoreContent(e.Store))
	if err != nil || missing == 0 {
		return err == nil, err
	}
	failures := make([]error, len(l.Artifacts))
	for i, p := range l.Artifacts {
		failures[i] = e.fetch(ctx, l, p)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
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

// seal fetches and describes everything, makes the manifest and binds the
// serial to it.
func (e *Exporter) seal(ctx context.Context, l *Lock) ([]byte, error) {
	m, err := e.build(ctx, l)
	if err != nil {
		return nil, err
	}
	b, err := bundle.EncodeManifest(m)
	if err != nil {
		return nil, err
	}
	lock, err := l.Digest()
	if err != nil {
		return nil, err
	}
	// The store first: what the ledger names must be there.
	digest, err := e.Store.PutBytes(ctx, b)
	if err != nil {
		return nil, err
	}
	return b, e.Ledger.Seal(LedgerEntry{Epoch: l.Epoch, Serial: l.Serial, Manifest: digest, Lock: lock})
}

func (e *Exporter) build(ctx context.Context, l *Lock) (*bundle.Manifest, error) {
	here, omitted, err := e.fetchAll(ctx, l)
	if err != nil {
		return nil, err
	}
	m := &bundle.Manifest{
		Format: bundle.FormatV1, Kind: bundle.KindContent, Channel: l.Channel, Epoch: l.Epoch, Serial: l.Serial, Previous: l.Previous,
		Audience: l.Audience, Created: l.Created, Expires: l.Expires, TrustRoot: l.TrustRoot, Revocations: l.Revocations,
		Note: l.Note, Incomplete: omitted,
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
	m.Blobs, m.Totals, err = parts.finish(ctx)
	return m, err
}

// fetchAll goes on after a failure, to report all of them together. Content
// that is wrong is never waved through; what is merely out of reach may be
// left out on request.
func (e *Exporter) fetchAll(ctx context.Context, l *Lock) (here []Pinned, omitted []bundle.Omission, err error) {
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
			omitted = append(omitted, bundle.Omission{Name: p.Name, Reason: failures[i].Error()})
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
	var coded interface{ Code() string }
	if !errors.As(err, &coded) {
		return false
	}
	switch coded.Code() {
	case "source/unreachable", "source/failed", "source/rate-limited",
		"registry/unreachable", "registry/failed", "registry/rate-limited", "registry/interrupted":
		return true
	}
	return false
}

// head signs the manifest and puts the trust documents of the lock beside it.
func (e *Exporter) head(ctx context.Context, l *Lock, manifest []byte) (bundle.Head, error) {
	h := bundle.Head{Manifest: manifest, Revocations: e.Trust.Revocations}
	for _, version := range l.Roots {
		for _, r := range e.Trust.Roots {
			if r.Version == version {
				h.Roots = append(h.Roots, r)
			}
		}
	}
	signature, err := signing.Sign(ctx, e.Signer, manifest)
	if err != nil {
		return h, err
	}
	h.Signatures = []bundle.Signature{{Key: e.Signer.Public().ID().Short(), Bytes: signature}}
	return h, nil
}

func (e *Exporter) write(ctx context.Context, head bundle.Head, dir string, s *Summary) error {
	plan, err := bundle.PlanComplete(head)
	if err != nil {
		return err
	}
	steps := plan.Size()
	if !e.NoReadback {
		steps *= 2
	}
	item := e.Progress.Start("write "+plan.FileName(), steps)
	s.Path, err = plan.WriteTo(ctx, dir, bundle.StoreContent(e.Store), bundle.WriteOptions{NoReadback: e.NoReadback, Observe: item.Advance})
	item.Done(err)
	if err != nil {
		return err
	}
	s.Bytes, s.Manifest = plan.Size(), head.Digest()
	m := plan.Manifest()
	s.Artifacts, s.Blobs, s.Incomplete = len(m.Artifacts), m.Totals.Files, m.Incomplete
	for _, a := range m.Artifacts {
		for _, entry := range a.SBOM {
			if entry.Status != bundle.SBOMPresent {
				s.NoSBOM = append(s.NoSBOM, entry)
			}
		}
	}
	return plan.WriteManifest(dir)
}
