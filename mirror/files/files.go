// Package files is the source of plain files: a folder or a file of this
// machine, or a file behind https whose SHA-256 is known beforehand.
//
// It never follows a link out of the folder, and never takes a file from the
// network whose digest nobody named.
package files

import (
	"context"
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
	files, err := s.list(ctx, want, &pin)
	if err != nil {
		return pin, err
	}
	if isURL(want.From) {
		pin.File = &files[0]
	}
	if err := s.pin(ctx, &pin, files, into); err != nil {
		return pin, err
	}
	pin.Subjects = []mirror.Subject{{Digest: pin.Root.Digest}}
	return pin, nil
}

func (s *Source) list(ctx context.Context, want mirror.Request, pin *mirror.Pinned) ([]bundle.File, error) {
	if !isURL(want.From) {
		return s.hashTree(ctx, want.From)
	}
	pin.Verified, pin.Transport = bundle.VerifiedDigest, bundle.TransportTLS
	if strings.HasPrefix(want.From, "http://") {
		pin.Transport = bundle.TransportPlain
	}
	size, err := s.web.size(ctx, want.From)
	if err != nil {
		return nil, err
	}
	return []bundle.File{{Path: urlFileName(want.From), Size: size, Digest: want.Digest}}, nil
}

func isURL(from string) bool {
	return strings.HasPrefix(from, "https://") || strings.HasPrefix(from, "http://")
}

// urlFileName is the last part of the address's path.
func urlFileName(url string) string {
	address, _, _ := strings.Cut(url, "?")
	return path.Base(address)
}

// pin builds the artifact's documents, stores them and the listing, and fills
// in what follows from the files.
func (s *Source) pin(ctx context.Context, pin *mirror.Pinned, files []bundle.File, into *cas.Store) error {
	tree, err := bundle.BuildTree(pin.Kind, pin.Name, pin.Version, files)
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
		name, err := into.PutBytes(ctx, encodeListing(files))
		if err != nil {
			return err
		}
		pin.Listing = &mirror.Listing{Digest: name, Files: int64(len(files))}
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
	files, err := s.pinnedFiles(ctx, p, into)
	if err != nil {
		return err
	}
	again := p
	if err := s.pin(ctx, &again, files, into); err != nil {
		return err
	}
	if again.Root.Digest != p.Root.Digest {
		return moved(bare(p.From), p.Root.Digest, again.Root.Digest)
	}
	if isURL(p.From) {
		return s.fetchURL(ctx, p, into)
	}
	return s.fetchTree(ctx, p.From, files, into)
}

// pinnedFiles reads the listing from the store, or makes it again and makes
// sure that it is still the same. Behind an address there is one file, which
// the lock names itself.
func (s *Source) pinnedFiles(ctx context.Context, p mirror.Pinned, into *cas.Store) ([]bundle.File, error) {
	if isURL(p.From) && p.File != nil {
		return []bundle.File{*p.File}, nil
	}
	if p.Listing == nil || isURL(p.From) {
		return nil, problem.New("lock/malformed", "the lock has no listing for %s", p.Name).Hint("packhof plan")
	}
	document, err := into.ReadAll(p.Listing.Digest, maxListing)
	if err == nil {
		return decodeListing(document)
	}
	if !isAbsent(err) {
		return nil, err
	}
	files, err := s.hashTree(ctx, p.From)
	if err != nil {
		return nil, err
	}
	if now := cas.DigestOf(encodeListing(files)); now != p.Listing.Digest {
		return nil, moved(p.From, p.Listing.Digest, now)
	}
	return files, nil
}

func moved(what string, locked, now cas.Digest) error {
	return problem.New("source/moved", "%s has changed since the lock was made", what).
		With(fmt.Sprintf("locked:  %s", locked), fmt.Sprintf("now:     %s", now)).
		Hint("packhof plan")
}
