package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

// Sealed is a bundle that has arrived. Nothing about it is proven; Claims is
// for display, and only Verify makes a *Bundle of it.
type Sealed struct {
	name    string // where it lies, for messages
	head    Head
	content Content
	volume  *volume // nil when the content is no volume
}

// OpenSealed makes a Sealed of a head and content kept elsewhere.
func OpenSealed(name string, h Head, content Content) *Sealed {
	sortHead(&h)
	return &Sealed{name: name, head: h, content: content}
}

// volume is one opened volume file.
type volume struct {
	name    string
	file    io.ReaderAt
	closer  io.Closer
	size    int64
	entries []entry
	byName  map[string]entry
	found   error // what is wrong with it as a file, when its head could be read all the same
}

// OpenFile opens a bundle in one volume. It reads headers and the head, not
// the blobs, and parses nothing of the manifest. When the file is damaged
// behind its head (cut off, say), it returns the Sealed together with the
// error, so that what is there can be shown; such a Sealed never verifies.
func OpenFile(path string) (*Sealed, error) {
	// Asked before it is opened: a named pipe would wait for ever.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, problem.New("volume/not-a-file", "%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s, err := Open(f, info.Size(), filepath.Base(path))
	if s == nil {
		return nil, errors.Join(err, f.Close())
	}
	s.volume.closer = f
	return s, err
}

// Open is OpenFile for something that is already open; name is for messages.
func Open(r io.ReaderAt, size int64, name string) (*Sealed, error) {
	v := &volume{name: name, file: r, size: size, byName: map[string]entry{}}
	v.entries, v.found = listEntries(r, size, name)
	if len(v.entries) == 0 || v.entries[0].name != nameManifest {
		return nil, notABundle(name, v)
	}
	for _, e := range v.entries {
		v.byName[e.name] = e
	}
	s := &Sealed{name: name, volume: v, content: v}
	if err := s.readHead(); err != nil {
		return nil, err
	}
	return s, v.found
}

func notABundle(name string, v *volume) error {
	if v.found != nil && len(v.entries) > 0 {
		return v.found
	}
	p := problem.New("volume/not-a-bundle", "%s is not a bundle", name).
		Hint("a bundle is a file such as plant-7-000042.tar, written by  packhof export")
	if v.found != nil {
		p = p.With("found:  " + v.found.Error())
	}
	return p
}

// Close closes the file, if OpenFile opened one.
func (s *Sealed) Close() error {
	if s.volume == nil || s.volume.closer == nil {
		return nil
	}
	return s.volume.closer.Close()
}

// Head gives the head as it arrived.
func (s *Sealed) Head() Head { return s.head }

// Name is where the bundle lies: its file name.
func (s *Sealed) Name() string { return s.name }

func (s *Sealed) readHead() error {
	for _, e := range s.volume.entries {
		limit, inHead := limitFor(e.name)
		if !inHead {
			break
		}
		if e.size > limit {
			return &DamagedError{Volume: s.name, Entry: e.name, Offset: e.offset, What: fmt.Sprintf("it has %d bytes, more than the %d allowed", e.size, limit)}
		}
		if e.name == nameVolume || e.name == nameLayout || e.name == nameIndex {
			continue
		}
		data, err := s.volume.read(e)
		if err != nil {
			return err
		}
		if err := s.head.add(headEntry{e.name, data}); err != nil {
			return err
		}
	}
	return nil
}

func (v *volume) read(e entry) ([]byte, error) {
	data := make([]byte, e.size)
	if n, err := v.file.ReadAt(data, e.offset); int64(n) < e.size {
		return nil, fmt.Errorf("read %s, entry %s: %w", v.name, e.name, err)
	}
	return data, nil
}

// checkOrder holds the volume against the one layout that a complete set of
// this manifest can have: every entry, in order, with its size.
func (v *volume) checkOrder(s *Sealed) error {
	plan, err := PlanComplete(s.head)
	if err != nil {
		return err
	}
	var want []plannedEntry
	for _, e := range plan.head {
		want = append(want, plannedEntry{e.name, int64(len(e.data))})
	}
	for _, b := range plan.blobs {
		want = append(want, b.entries...)
	}
	for i, w := range want {
		if i >= len(v.entries) {
			return &DamagedError{Volume: v.name, Offset: v.size, What: "the entry " + w.name + " is missing"}
		}
		got := v.entries[i]
		if got.name != w.name || got.size != w.size && w.name != nameVolume {
			return &DamagedError{Volume: v.name, Entry: got.name, Offset: got.offset - blockSize, What: "another entry belongs here",
				Want: fmt.Sprintf("%s, %d bytes", w.name, w.size), Got: fmt.Sprintf("%s, %d bytes", got.name, got.size)}
		}
	}
	if len(v.entries) != len(want)+1 || v.entries[len(want)].name != sumsName {
		return &DamagedError{Volume: v.name, Offset: v.size, What: "after the blobs there is not exactly the entry " + sumsName}
	}
	return v.checkDerived(s, plan)
}

// checkDerived compares what follows from the manifest with what is there.
func (v *volume) checkDerived(s *Sealed, plan *VolumePlan) error {
	for _, e := range plan.head {
		if e.name != nameVolume && e.name != nameLayout && e.name != nameIndex {
			continue
		}
		got, err := v.read(v.byName[e.name])
		if err != nil {
			return err
		}
		if e.name == nameVolume {
			if _, err := parseVolume(got, plan.manifest, s.head.Digest()); err != nil {
				return err
			}
		} else if string(got) != string(e.data) {
			return &DamagedError{Volume: v.name, Entry: e.name, Offset: v.byName[e.name].offset, What: "it is not what follows from the manifest"}
		}
	}
	return nil
}

// Has implements Content.
func (v *volume) Has(d Digest) (bool, error) {
	name := dirBlobs + d.Hex()
	_, whole := v.byName[name]
	_, cut := v.byName[name+".s0000"]
	return whole || cut, nil
}

// Open implements Content.
func (v *volume) Open(d Digest) (io.ReadCloser, error) {
	name := dirBlobs + d.Hex()
	if e, ok := v.byName[name]; ok {
		return io.NopCloser(v.section(e)), nil
	}
	var pieces []io.Reader
	for {
		e, ok := v.byName[fmt.Sprintf("%s.s%04d", name, len(pieces))]
		if !ok {
			break
		}
		pieces = append(pieces, v.section(e))
	}
	if len(pieces) == 0 {
		return nil, fmt.Errorf("blob %s in %s: %w", d, v.name, fs.ErrNotExist)
	}
	return io.NopCloser(io.MultiReader(pieces...)), nil
}

func (v *volume) section(e entry) io.Reader { return io.NewSectionReader(v.file, e.offset, e.size) }

// Trust applies the trust documents of the head to what the reader trusts
// already: each is judged by its own signatures. It holds even if the bundle
// is refused afterwards.
func (s *Sealed) Trust(known *signing.Trust, at time.Time) (*signing.Trust, error) {
	roots := make([][]byte, len(s.head.Roots))
	for i, r := range s.head.Roots {
		roots[i] = r.Bytes
	}
	updated, err := known.UpdateRoots(roots)
	if err != nil {
		return known, fmt.Errorf("%s: %w", s.name, err)
	}
	if len(s.head.Revocations.Bytes) == 0 {
		return updated, nil
	}
	revoked, err := updated.UpdateRevocations(s.head.Revocations.Bytes, at)
	if err != nil {
		return updated, fmt.Errorf("%s: %w", s.name, err)
	}
	return revoked, nil
}

// Bundle is a bundle that is vouched for: its manifest was signed by enough
// of the right keys. Its blobs are proven as they are read, or by Check.
type Bundle struct {
	sealed   *Sealed
	manifest *Manifest
	voucher  *signing.Voucher
}

// Verify checks the signatures over the manifest's bytes in the order of
// acceptance: first that any key of the plant's roles has signed them, then
// that the bytes parse strictly, then that enough distinct keys of the one
// role that kind and channel name have signed.
//
// It says nothing about audience, freshness or blobs: those come after it.
func (s *Sealed) Verify(trust *signing.Trust, at time.Time) (*Bundle, error) {
	if _, err := trust.Genuine(s.head.Manifest, s.head.raw()); err != nil {
		if s.volume != nil && s.volume.found != nil {
			return nil, s.volume.found // a torn copy is no forgery, and the remedy another one
		}
		return nil, fmt.Errorf("%s is not genuine: %w", s.name, err)
	}
	m, err := parseManifest(s.head.Manifest)
	if err != nil {
		return nil, err
	}
	role := signing.BundleRole(m.Channel)
	if m.Kind == KindControl {
		role = signing.ControlRole(m.Channel)
	}
	voucher, err := trust.Vouch(s.head.Manifest, s.head.raw(), role, at)
	if err != nil {
		return nil, fmt.Errorf("%s is not genuine: %w", s.name, err)
	}
	if err := s.checkSignatureNames(); err != nil {
		return nil, err
	}
	if err := s.checkTrustVersions(m); err != nil {
		return nil, err
	}
	if err := checkTrustInHand(m, trust); err != nil {
		return nil, err
	}
	if err := checkPrefixes(m, trust.Root()); err != nil {
		return nil, err
	}
	if err := checkRevoked(m, trust.Revocations()); err != nil {
		return nil, err
	}
	if err := s.checkVolume(); err != nil {
		return nil, err
	}
	return &Bundle{sealed: s, manifest: m, voucher: voucher}, nil
}

// checkTrustVersions makes sure that the trust documents in the head are the
// ones that the signed manifest names.
func (s *Sealed) checkTrustVersions(m *Manifest) error {
	for _, pair := range []struct {
		what string
		want Versioned
		docs []TrustDocument
	}{
		{"root", m.TrustRoot, s.head.Roots},
		{"revocations", m.Revocations, []TrustDocument{s.head.Revocations}},
	} {
		if len(pair.docs) == 0 {
			return problem.New("bundle/trust-missing", "%s lacks the trust document %s", s.name, pair.what)
		}
		last := pair.docs[len(pair.docs)-1]
		if last.Version != pair.want.Version || digestOf(last.Bytes) != pair.want.Digest {
			return problem.New("bundle/trust-differs", "%s: the trust document %s is not the one that the manifest names", s.name, pair.what).
				With(fmt.Sprintf("want:  version %d, %s", pair.want.Version, pair.want.Digest), fmt.Sprintf("got:   version %d, %s", last.Version, digestOf(last.Bytes)))
		}
	}
	return nil
}

// checkSignatureNames refuses entries that are no signature in the one form, or
// that bear another key's name: nothing travels that says nothing.
func (s *Sealed) checkSignatureNames() error {
	for _, sig := range s.head.Signatures {
		parsed, err := signing.ParseBundle(sig.Bytes)
		if err != nil {
			return fmt.Errorf("%s, signature %s: %w", s.name, sig.Key, err)
		}
		if parsed.Claims().Short() != sig.Key {
			return problem.New("format/invalid", "%s: the signature %s names the key %s", s.name, sig.Key, parsed.Claims().Short())
		}
	}
	return nil
}

// checkVolume holds the file against the one layout that its manifest allows.
// It comes after the signatures: before them nothing of the manifest counts.
func (s *Sealed) checkVolume() error {
	if s.volume == nil {
		return nil
	}
	if s.volume.found != nil {
		return s.volume.found
	}
	return s.volume.checkOrder(s)
}

// checkTrustInHand refuses to judge by older trust documents than the signer
// had: those in the head have to be applied first, by Trust.
func checkTrustInHand(m *Manifest, trust *signing.Trust) error {
	for _, pair := range []struct {
		what string
		want Versioned
		have int
		raw  []byte
	}{
		{"root", m.TrustRoot, trust.Root().Version(), trust.Root().Bytes()},
		{"revocations", m.Revocations, trust.Revocations().Version(), trust.Revocations().Bytes()},
	} {
		if int64(pair.have) < pair.want.Version || int64(pair.have) == pair.want.Version && digestOf(pair.raw) != pair.want.Digest {
			return problem.New("bundle/trust-differs", "the bundle was signed by another version of the trust document %s than the one here", pair.what).
				With(fmt.Sprintf("bundle:  version %d, %s", pair.want.Version, pair.want.Digest), fmt.Sprintf("here:    version %d, %s", pair.have, digestOf(pair.raw)))
		}
	}
	return nil
}

// checkPrefixes holds the names of artifacts to what the root lets the channel
// carry.
func checkPrefixes(m *Manifest, root *signing.Root) error {
	channel, ok := root.Channel(m.Channel)
	if !ok {
		return problem.New("bundle/trust-differs", "the trust root does not know the channel %s", m.Channel)
	}
	for _, a := range m.Artifacts {
		if !channel.Allows(a.Name) {
			return problem.New("bundle/name-not-allowed", "the channel %s may not carry the %s %q", m.Channel, a.Kind, a.Name).
				With("allowed:  names that begin with " + strings.Join(channel.Prefixes, ", "))
		}
	}
	return nil
}

// checkRevoked refuses what was withdrawn after it had been signed: the serial,
// or anything that the manifest names.
func checkRevoked(m *Manifest, list *signing.Revocations) error {
	if reason, revoked := list.Bundle(m.Channel, int(m.Epoch), int(m.Serial)); revoked {
		return problem.New("bundle/revoked", "serial %d of %s is revoked: %s", m.Serial, m.Channel, reason).Hint("use a later serial")
	}
	for _, a := range m.Artifacts {
		if reason, revoked := list.Artifact(a.Root.Digest.String()); revoked {
			return problem.New("bundle/revoked", "the %s %q is revoked: %s", a.Kind, a.Name, reason).
				With("digest:  " + a.Root.Digest.String()).Hint("use a later serial, without it")
		}
	}
	for _, b := range m.Blobs {
		if reason, revoked := list.Artifact(b.Digest.String()); revoked {
			return problem.New("bundle/revoked", "a blob of the bundle is revoked: %s", reason).
				With("digest:  " + b.Digest.String()).Hint("use a later serial, without it")
		}
	}
	return nil
}

// Manifest is the signed statement of what the bundle is. Callers do not
// change it.
func (b *Bundle) Manifest() *Manifest { return b.manifest }

// Voucher says who signed, under which rule.
func (b *Bundle) Voucher() *signing.Voucher { return b.voucher }

// Digest is the identity of the bundle.
func (b *Bundle) Digest() Digest { return b.sealed.head.Digest() }

// Open reads a blob that the manifest names. Reading to io.EOF proves it;
// wrong bytes end with a cas.CorruptError.
func (b *Bundle) Open(_ context.Context, d Digest) (io.ReadCloser, error) {
	blob, ok := b.manifest.Blob(d)
	if !ok {
		return nil, fmt.Errorf("blob %s is not in the manifest: %w", d, fs.ErrNotExist)
	}
	return openBlob(b.sealed.content, d, blob.Size)
}

// ReadAll reads a blob of at most limit bytes and verifies it.
func (b *Bundle) ReadAll(d Digest, limit int64) ([]byte, error) {
	blob, ok := b.manifest.Blob(d)
	if !ok {
		return nil, fmt.Errorf("blob %s is not in the manifest: %w", d, fs.ErrNotExist)
	}
	return readBlob(b.sealed.content, d, blob.Size, limit)
}
