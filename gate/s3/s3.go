// Package s3 is the destination "an object store": it brings what a gate lets
// through to a bucket of MinIO, Ceph RGW or another S3 server, so that clients
// which know nothing of Packhof find files under their real names.
//
// Below the folder <repository>/<tag>/ of a name stand
//
//	<path>                         each file of a model, dataset, file set or package set
//	.packhof/artifact.json         which artifact this is
//	.packhof/blobs/sha256/<hex>    what has no path: manifests, configs, SBOMs and other referrers
//	SHA256SUMS                     all of these, as sha256sum -c reads it
//
// and for images and charts, which are no trees of files, an OCI image layout
// (oci-layout, index.json, blobs/sha256/<hex>) in place of the files and the
// blobs. SHA256SUMS is what makes the name: it is written last, and what it
// does not list is not published.
//
// S3 replaces one object at a time. While a name is replaced, a client may
// meet files of both versions; SHA256SUMS tells it, and before Publish it
// meets none. Objects whose content changes wait in .packhof/staging/, below
// the bucket's prefix, until then.
//
// The package deletes only what a list of its own has named, its staging area
// and its own unfinished uploads. It replaces no object that it, or another
// gate, has not written. One gate has a prefix for itself.
package s3

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/s3"
)

// What a Client should be made with, as s3.Config has it: four objects at a
// time then take at most 64 MiB.
const (
	PartSize = 8 << 20 // bytes
	InFlight = 2
)

// Config says where.
type Config struct {
	Client *s3.Client
}

const (
	// parallel is how many objects are under way at the same time.
	parallel = 4
	// readBack is up to which size, in bytes, Verify reads an object.
	readBack = 16 << 20

	ownFolder    = ".packhof"
	blobFolder   = "blobs/sha256/"
	documentName = ownFolder + "/artifact.json"
	listFolder   = ownFolder + "/lists/"
	staging      = ownFolder + "/staging/" // below the prefix, not below a name
	sumsName     = "SHA256SUMS"
)

// Sink is a bucket as a destination. It is safe for use by several goroutines.
type Sink struct {
	client *s3.Client
}

var _ gate.Sink = (*Sink)(nil)

// New makes the destination. Nothing is sent yet.
func New(config Config) *Sink { return &Sink{client: config.Client} }

// Close closes the connections that nothing uses.
func (s *Sink) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// folder is where everything of a name is, with a slash at its end.
func folder(name gate.Name) string { return name.Repository + "/" + name.Tag + "/" }

// staged is where content waits that will replace other content.
func staged(d bundle.Digest) string { return staging + d.Hex() }

// each does something with every item, several at a time, until one fails.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	group, own := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, item := range items {
		if own.Err() != nil {
			break
		}
		group.Go(func() error { return do(own, item) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}
