// Package files is the source of plain files: a folder or a file of this
// machine, or a file behind https whose SHA-256 is known beforehand.
//
// It never follows a link out of the folder, and never takes a file from the
// network whose digest nobody named.
package files

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/mirror"
)

// Key is the name of this source in locks.
const Key = "files"

// Source implements mirror.Source.
type Source struct {
	base     string // folder that relative paths start from
	web      *web
	progress mirror.Progress
}

// New makes the source. Relative paths start from base.
func New(base string, hosts map[string]Host, progress mirror.Progress) (*Source, error) {
	w, err := newWeb(hosts, idleLimit)
	if err != nil {
		return nil, err
	}
	return &Source{base: base, web: w, progress: progress}, nil
}

// Resolve implements mirror.Source. A folder is read and hashed once, since
// its digest is what gets pinned; a file behind https is only asked for its
// size.
func (s *Source) Resolve(ctx context.Context, want mirror.Request, into *cas.Store) (mirror.Pinned, error) {
	pin := mirror.Pinned{
		Source: Key, Kind: want.Kind, Name: want.Name, Version: want.Version, Labels: want.Labels, From: want.From,
		Transport: bundle.TransportLocal, Verified: bundle.VerifiedLock,
	}
	found, err := s.list(ctx, want, &pin, into)
	if err != nil {
		return pin, err
	}
	if isURL(want.From) {
		pin.File = &found.own[0]
	}
	if err := s.pin(ctx, &pin, found, into); err != nil {
		return pin, err
	}
	pin.Subjects = []mirror.Subject{{Digest: pin.Root.Digest}}
	return pin, nil
}

func (s *Source) list(ctx context.Context, want mirror.Request, pin *mirror.Pinned, into *cas.Store) (*hashed, error) {
	if !isURL(want.From) {
		return s.hashTree(ctx, want.Kind, want.From, into)
	}
	pin.Verified, pin.Transport = bundle.VerifiedDigest, bundle.TransportTLS
	if strings.HasPrefix(want.From, "http://") {
		pin.Transport = bundle.TransportPlain
	}
	size, err := s.web.size(ctx, want.From)
	if err != nil {
		return nil, err
	}
	return &hashed{own: []bundle.File{{Path: urlFileName(want.From), Size: size, Digest: want.Digest}}}, nil
}

func isURL(from string) bool {
	return strings.HasPrefix(from, "https://") || strings.HasPrefix(from, "http://")
}

// urlFileName is the last part of the address's path.
func urlFileName(url string) string {
	address, _, _ := strings.Cut(url, "?")
	return path.Base(address)
}

// pin builds the artifact's documents, stores them, and fills in what follows
// from the files.
func (s *Source) pin(ctx context.Context, pin *mirror.Pinned, found *hashed, into *cas.Store) error {
	tree, err := bundle.BuildPackedTree(pin.Kind, pin.Name, pin.Version, found.own, found.packs)
	if err != nil {
		return err
	}
	documents := map[cas.Digest][]byte{}
	for _, document := range tree.Documents {
		name, err := into.PutBytes(ctx, document)
		if err != nil {
			return err
		}
		documents[name] = document
	}
	if pin.File == nil {
		files := found.all()
		pin.Listing = &mirror.Listing{Digest: digestOfListing(files), Files: int64(len(files))}
	}
	pin.Root, pin.Files, pin.Bytes = tree.Root, 0, 0
	read := func(d bundle.OCIDescriptor) ([]byte, error) { return documents[d.Digest], nil }
	root := bundle.OCIDescriptor{MediaType: tree.Root.MediaType, Digest: tree.Root.Digest, Size: tree.Root.Size}
	return bundle.Walk(root, read, func(d bundle.OCIDescriptor, _ bundle.Role) error {
		if !bundle.IsManifest(d.MediaType) {
			pin.Files++
			pin.Bytes += d.Size
		}
		return nil
	})
}

// Fetch implements mirror.Source.
func (s *Source) Fetch(ctx context.Context, p mirror.Pinned, into *cas.Store) error {
	if isURL(p.From) {
		return s.fetchPinnedURL(ctx, p, into)
	}
	found, err := s.pinnedTree(ctx, p, into)
	if err != nil {
		return err
	}
	if err := s.pinAgain(ctx, p, found, into); err != nil {
		return err
	}
	if err := s.fetchTree(ctx, p.From, found.own, into); err != nil {
		return err
	}
	return s.fetchPacks(ctx, p.From, found.packs, into)
}

// fetchPinnedURL brings the one file behind an address, which the lock names
// itself.
func (s *Source) fetchPinnedURL(ctx context.Context, p mirror.Pinned, into *cas.Store) error {
	if p.File == nil {
		return unlisted(p)
	}
	if err := s.pinAgain(ctx, p, &hashed{own: []bundle.File{*p.File}}, into); err != nil {
		return err
	}
	return s.fetchURL(ctx, p, into)
}

// pinAgain makes the documents of a tree once more, whatever of them the store
// has lost, and makes sure that they are still the same.
func (s *Source) pinAgain(ctx context.Context, p mirror.Pinned, found *hashed, into *cas.Store) error {
	again := p
	if err := s.pin(ctx, &again, found, into); err != nil {
		return err
	}
	if p.Listing != nil && again.Listing.Digest != p.Listing.Digest {
		return moved(bare(p.From), p.Listing.Digest, again.Listing.Digest)
	}
	if again.Root.Digest != p.Root.Digest {
		return moved(bare(p.From), p.Root.Digest, again.Root.Digest)
	}
	return nil
}

// pinnedTree reads from the store what the tree is made of. Where the store has
// lost that, the folder is read again.
func (s *Source) pinnedTree(ctx context.Context, p mirror.Pinned, into *cas.Store) (*hashed, error) {
	if p.Listing == nil {
		return nil, unlisted(p)
	}
	found := &hashed{}
	packs, err := bundle.EachTreeFile(p.Root, documentsIn(into), func(f bundle.TreeFile) error {
		if !f.Packed() {
			found.own = append(found.own, f.File)
			return nil
		}
		found.inPacks = append(found.inPacks, f.File)
		return nil
	})
	found.packs = packs
	var rotten *cas.CorruptError
	if isAbsent(err) || errors.As(err, &rotten) {
		return s.hashTree(ctx, p.Kind, p.From, into)
	}
	return found, err
}

func unlisted(p mirror.Pinned) error {
	return problem.New("lock/malformed", "the lock has no listing for %s", p.Name).Hint("packhof plan")
}

func moved(what string, locked, now cas.Digest) error {
	return problem.New("source/moved", "%s has changed since the lock was made", what).
		With(fmt.Sprintf("locked:  %s", locked), fmt.Sprintf("now:     %s", now)).
		Hint("packhof plan")
}
