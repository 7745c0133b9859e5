package bundle

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/signing"
)

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
	content  Content
}

// Verify checks the signatures over the manifest's bytes in the order of
// acceptance: first that any key of the plant's roles has signed them, then
// that the bytes parse strictly, then that enough distinct keys of the one
// role that kind and channel name have signed.
//
// It says nothing about audience, freshness or blobs: those come after it.
func (s *Sealed) Verify(trust *signing.Trust, at time.Time) (*Bundle, error) {
	if root := trust.Root(); root != nil && len(s.spare) > 0 {
		s.preferGood(root)
	}
	if _, err := trust.Genuine(s.head.Manifest, s.head.raw()); err != nil {
		if torn := s.torn(); torn != nil {
			return nil, torn // a torn copy is no forgery, and the remedy another one
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
	if err := s.checkVolumes(m); err != nil {
		return nil, err
	}
	b := &Bundle{sealed: s, manifest: m, voucher: voucher, content: s.content}
	if s.content == nil {
		b.content = contentOf(s.volumes, m)
	}
	return b, nil
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
// that bear another key's name, in whatever volume: nothing travels that says
// nothing.
func (s *Sealed) checkSignatureNames() error {
	checked := map[string]bool{} // most volumes have the same
	check := func(name string, list []Signature) error {
		for _, sig := range list {
			once := sig.Key + string(sig.Bytes)
			if checked[once] {
				continue
			}
			checked[once] = true
			parsed, err := signing.ParseBundle(sig.Bytes)
			if err != nil {
				return fmt.Errorf("%s, signature %s: %w", name, sig.Key, err)
			}
			if parsed.Claims().Short() != sig.Key {
				return problem.New("format/invalid", "%s: the signature %s names the key %s", name, sig.Key, parsed.Claims().Short())
			}
		}
		return nil
	}
	for _, v := range s.volumes {
		if err := check(v.name, v.head.Signatures); err != nil {
			return err
		}
	}
	return check(s.name, s.head.Signatures)
}

// torn is what is wrong with the first damaged volume as a file.
func (s *Sealed) torn() error {
	for _, v := range s.volumes {
		if v.found != nil {
			return v.found
		}
	}
	return nil
}

// checkVolumes holds the files against the one layout that manifest and
// volume.json allow. It comes after the signatures: before them nothing of the
// manifest counts.
func (s *Sealed) checkVolumes(m *Manifest) error {
	if torn := s.torn(); torn != nil {
		return torn
	}
	plans := map[Digest][]Segment{} // the same in each volume of a set, and large
	for _, v := range s.volumes {
		if err := v.checkLayout(m); err != nil {
			return err
		}
		if first, ok := plans[v.info.Set]; ok {
			v.info.Segments = first
		}
		plans[v.info.Set] = v.info.Segments
	}
	return nil
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
	return openBlob(b.content, d, blob.Size)
}

// ReadAll reads a blob of at most limit bytes and verifies it.
func (b *Bundle) ReadAll(d Digest, limit int64) ([]byte, error) {
	blob, ok := b.manifest.Blob(d)
	if !ok {
		return nil, fmt.Errorf("blob %s is not in the manifest: %w", d, fs.ErrNotExist)
	}
	return readBlob(b.content, d, blob.Size, limit)
}
