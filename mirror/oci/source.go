// Package oci is the source of container images and other artifacts that an
// OCI registry holds.
//
// Everything keeps upstream's bytes; the one document of our own making is the
// index of some of an image's platforms, and what it was taken from is said
// beside it. The package verifies digests and never signatures, follows no
// urls of descriptors, and unpacks nothing.
package oci

import (
	"cmp"
	"context"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/registry"
	"github.com/packhof/packhof/mirror"
)

// Key is the source's name in a lock.
const Key = "oci"

// Source is a mirror.Source over OCI registries. Of a request it takes Kind
// (empty means image), Name (empty means the repository), Version (empty means
// the tag, or else the digest's short form), Platforms, Labels and From: a
// reference with a tag, a digest or both, of which the digest decides.
//
// Platforms are os/architecture[/variant]. None means all that there are. One
// that one manifest answers to makes that manifest the root; several but not
// all make an index of these and their attestations; all leave upstream's
// index as it is.
type Source struct {
	client   *registry.Client
	progress mirror.Progress
	note     func(Note)
	parallel int
	slots    chan struct{} // one for each download that may run
	locks    keyLocks      // one for each blob on its way
}

// Note is something worth telling that is no error.
type Note struct {
	Reference string
	Text      string   // lower case, without a full stop
	Evidence  []string // such as "want:  sha256:…"
}

// Option changes how a Source is.
type Option func(*Source)

// WithNotes has f told of notes. It may be called by several goroutines.
func WithNotes(f func(Note)) Option { return func(s *Source) { s.note = f } }

// New makes a source that has at most parallel downloads running, over all its
// calls; 4 to 6 are enough for most links. progress is told of each blob.
func New(client *registry.Client, parallel int, progress mirror.Progress, opts ...Option) *Source {
	parallel = max(parallel, 1)
	s := &Source{
		client: client, progress: progress, parallel: parallel,
		slots: make(chan struct{}, parallel), locks: keyLocks{held: map[string]chan struct{}{}},
	}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

var _ mirror.Source = (*Source)(nil)

// Resolve reads the manifests below want.From into the store, upstream's index
// among them where platforms are chosen from it, and of an image its config
// where only that says what it runs on. It fetches no layers.
func (s *Source) Resolve(ctx context.Context, want mirror.Request, into *cas.Store) (mirror.Pinned, error) {
	ref, err := registry.ParseReference(want.From)
	if err != nil {
		return mirror.Pinned{}, err
	}
	platforms, err := parsePlatforms(want.Platforms)
	if err != nil {
		return mirror.Pinned{}, err
	}
	r := reader{source: s, ref: ref, store: into, plain: true}
	upstream, err := s.upstream(ctx, ref)
	if err != nil {
		return mirror.Pinned{}, err
	}
	chosen, err := r.choose(ctx, upstream, platforms)
	if err != nil {
		return mirror.Pinned{}, err
	}
	g, err := r.survey(ctx, chosen.root)
	if err != nil {
		return mirror.Pinned{}, err
	}
	subjects, err := r.subjects(ctx, g)
	if err != nil {
		return mirror.Pinned{}, err
	}
	if err := s.compareTag(ctx, ref); err != nil {
		return mirror.Pinned{}, err
	}
	return s.pin(want, ref, chosen, g, subjects), nil
}

func (s *Source) pin(want mirror.Request, ref registry.Reference, chosen choice, g *graph, subjects []mirror.Subject) mirror.Pinned {
	version := ref.Tag
	if version == "" {
		version = ref.Digest.Short()
	}
	p := mirror.Pinned{
		Source:    Key,
		Kind:      cmp.Or(want.Kind, bundle.Image),
		Name:      cmp.Or(want.Name, ref.Host+"/"+ref.Repository),
		Version:   cmp.Or(want.Version, version),
		Labels:    want.Labels,
		From:      ref.String(),
		Transport: bundle.TransportTLS,
		Verified:  bundle.VerifiedLock,
		Root: bundle.Descriptor{
			MediaType: g.root.MediaType, Digest: g.root.Digest, Size: g.root.Size,
			ArtifactType: g.kind,
		},
		Derived:  chosen.derived,
		Files:    int64(len(g.blobs)),
		Bytes:    g.bytes(),
		Subjects: subjects,
	}
	if s.client.Plain(ref.Host) {
		p.Transport = bundle.TransportPlain
	}
	if !ref.Digest.IsZero() {
		p.Verified = bundle.VerifiedDigest
	}
	return p
}

// upstream asks what ref is now.
func (s *Source) upstream(ctx context.Context, ref registry.Reference) (bundle.OCIDescriptor, error) {
	d, err := s.client.Resolve(ctx, ref, bundle.MaxOCIManifestSize)
	if err != nil {
		return bundle.OCIDescriptor{}, err
	}
	if isSchema1(d.MediaType) {
		return bundle.OCIDescriptor{}, schema1(ref, d.MediaType)
	}
	return bundle.OCIDescriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, nil
}

// compareTag notes where a tag beside a digest points elsewhere by now. It is
// only worth a look where somebody hears of it.
func (s *Source) compareTag(ctx context.Context, ref registry.Reference) error {
	if s.note == nil || ref.Tag == "" || ref.Digest.IsZero() {
		return nil
	}
	d, err := s.client.Resolve(ctx, ref.ByTag(), bundle.MaxOCIManifestSize)
	switch {
	case isNotFound(err):
		s.note(Note{Reference: ref.String(), Text: "the tag " + ref.Tag + " is gone upstream; the digest decides"})
		return nil
	case err != nil:
		return err
	case d.Digest != ref.Digest:
		s.note(Note{
			Reference: ref.String(), Text: "the tag " + ref.Tag + " points elsewhere by now; the digest decides",
			Evidence: []string{"digest: " + ref.Digest.String(), "tag:    " + d.Digest.String()},
		})
	}
	return nil
}
