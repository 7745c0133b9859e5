// Package mirror is the connected shore: from a specification (packhof.yaml)
// to a lock (packhof.lock), and from a lock to a signed bundle.
//
// It never talks to a registry or a server itself: that is what the sources in
// its sub-packages are for. It never decides whether anything may come in:
// that is the gate's business, and mirror and gate share only the bundle.
package mirror

import (
	"context"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
)

// Source is where artifacts of one family come from.
//
// Both methods may be called again after an error and may run at the same
// time for different requests. A source retries what is worth retrying itself;
// an error it returns is final and says which host and object it is about.
type Source interface {
	// Resolve turns what people write (a tag, a path, a URL) into what can be
	// fetched again and again: a root digest. It moves no bulk data over a
	// network, and puts into the store at most small documents.
	Resolve(ctx context.Context, want Request, into *cas.Store) (Pinned, error)
	// Fetch brings everything below p.Root into the store, verified, and
	// exactly that: anything else upstream is an error. What the store has is
	// not fetched again. Running it twice changes nothing.
	Fetch(ctx context.Context, p Pinned, into *cas.Store) error
}

// Request is one artifact as the specification wants it.
type Request struct {
	Kind      bundle.Kind
	Name      string
	Version   string // empty where the source can tell it, such as the tag of an image
	From      string // image reference, path or URL
	Platforms []string
	Digest    cas.Digest // of a file behind a URL; zero otherwise
	Labels    map[string]string
}

// Pinned is what a Request means today. It goes into the lock, and Fetch needs
// nothing else.
type Pinned struct {
	Source    string            `json:"source"` // the source's key, such as "oci"
	Kind      bundle.Kind       `json:"kind"`
	Name      string            `json:"name"`
	Version   string            `json:"version"`
	Labels    map[string]string `json:"labels,omitempty"`
	From      string            `json:"from"`
	Transport bundle.Transport  `json:"transport"`
	Verified  bundle.Verified   `json:"verified"`
	Root      bundle.Descriptor `json:"root"`
	Derived   *bundle.Derived   `json:"derived,omitempty"`
	Listing   *Listing          `json:"listing,omitempty"` // of a tree
	File      *bundle.File      `json:"file,omitempty"`    // the one file behind an address
	Files     int64             `json:"files"`             // blobs below the root, manifests not counted
	Bytes     int64             `json:"bytes"`             // of these blobs, each once
	Subjects  []Subject         `json:"subjects"`

	// Settled says that the serial is sealed: what is pinned counts, and
	// whether a name upstream has moved since no longer matters.
	Settled bool `json:"-"`
}

// Listing names the document that lists the files of a tree, so that a lock
// stays short however many files there are.
type Listing struct {
	Digest cas.Digest `json:"digest"`
	Files  int64      `json:"files"`
}

// Subject is a part of an artifact that an SBOM describes: each platform's
// manifest of an image, the root of everything else.
type Subject struct {
	Digest   cas.Digest     `json:"digest"`
	Platform string         `json:"platform,omitempty"` // os/architecture[/variant]
	Since    bundle.Instant `json:"since"`              // when this digest first entered a lock: the SBOM's time; set by Plan
}

// Progress is told what an export does. Implementations are safe for use by
// several goroutines; a nil Progress is never passed to a Source.
type Progress interface {
	// Start begins an item (a blob, a scan) and returns its end.
	Start(what string, bytes int64) Item
}

// Item is one thing in progress.
type Item interface {
	Advance(bytes int64)
	Done(err error)
}
