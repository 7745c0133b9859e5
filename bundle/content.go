package bundle

import (
	"errors"
	"fmt"
	"io"

	"github.com/packhof/packhof/internal/cas"
)

// Content is where blobs are: one volume, several, a store, a quarantine.
// What Open gives is unverified; this package hashes at the point of use.
// Open of an absent blob returns an error for which errors.Is(err,
// fs.ErrNotExist) holds. Both are safe for use by several goroutines.
type Content interface {
	Has(d Digest) (bool, error)
	Open(d Digest) (io.ReadCloser, error)
}

// StoreContent is the content of a content-addressed store.
func StoreContent(s *cas.Store) Content { return storeContent{s} }

type storeContent struct{ store *cas.Store }

func (c storeContent) Has(d Digest) (bool, error) {
	_, err := c.store.Size(d)
	var missing *cas.NotFoundError
	if errors.As(err, &missing) {
		return false, nil
	}
	return err == nil, err
}

func (c storeContent) Open(d Digest) (io.ReadCloser, error) { return c.store.OpenUnsafe(d) }

// openBlob reads a blob through a verifier for exactly this digest and size.
func openBlob(c Content, d Digest, size int64) (io.ReadCloser, error) {
	r, err := c.Open(d)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{cas.Verify(r, d, size, "blob "+d.String()), r}, nil
}

// readBlob reads a verified blob into memory.
func readBlob(c Content, d Digest, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("blob %s has %d bytes, more than the %d allowed here", d, size, limit)
	}
	r, err := openBlob(c, d, size)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

// Missing counts the blobs of a manifest that content does not have. It is for
// the exporter's own manifests; nothing is proven by it.
func Missing(manifest []byte, content Content) (int, error) {
	m, err := parseManifest(manifest)
	if err != nil {
		return 0, err
	}
	missing := 0
	for _, b := range m.Blobs {
		ok, err := content.Has(b.Digest)
		if err != nil {
			return missing, err
		}
		if !ok {
			missing++
		}
	}
	return missing, nil
}
