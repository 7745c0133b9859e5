package scan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/packhof/packhof/sbom"
)

// Limits of an image's documents in bytes.
const (
	maxIndex    = 4 << 20
	maxManifest = 4 << 20
	maxConfig   = 16 << 20
)

// layout is one image in an OCI image layout, as go-containerregistry and
// stereoscope want to see it. Every blob is compared with its descriptor.
type layout struct {
	dir          string
	manifestText []byte
	manifest     *v1.Manifest
	configText   []byte
	config       *v1.ConfigFile
	left         *budget
}

func openLayout(request sbom.Request) (*layout, error) {
	l := &layout{dir: request.Dir, left: newBudget(request.MaxUnpacked)}
	descriptor, err := l.root()
	if err != nil {
		return nil, err
	}
	if got := descriptor.Digest.String(); got != request.Subject.Digest {
		return nil, unlike(nil, "index.json names %s, the request %s", got, request.Subject.Digest)
	}
	if got := string(descriptor.MediaType); got != request.Subject.MediaType || !descriptor.MediaType.IsImage() {
		return nil, unlike(nil, "index.json says media type %.100q, the request %q, and it must be an image", got, request.Subject.MediaType)
	}
	if l.manifestText, err = l.document(*descriptor, maxManifest); err != nil {
		return nil, err
	}
	if l.manifest, err = v1.ParseManifest(bytes.NewReader(l.manifestText)); err != nil {
		return nil, unlike(err, "image manifest %s", descriptor.Digest)
	}
	if l.configText, err = l.document(l.manifest.Config, maxConfig); err != nil {
		return nil, err
	}
	if l.config, err = v1.ParseConfigFile(bytes.NewReader(l.configText)); err != nil {
		return nil, unlike(err, "image configuration %s", l.manifest.Config.Digest)
	}
	if ids, layers := len(l.config.RootFS.DiffIDs), len(l.manifest.Layers); ids != layers {
		return nil, unlike(nil, "image configuration names %d layers, the manifest %d", ids, layers)
	}
	return l, nil
}

// root returns the one descriptor of index.json.
func (l *layout) root() (*v1.Descriptor, error) {
	f, err := os.Open(filepath.Join(l.dir, "index.json"))
	if err != nil {
		return nil, unlike(err, "OCI layout")
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIndex+1))
	if err != nil {
		return nil, unlike(err, "OCI layout: index.json")
	}
	if len(text) > maxIndex {
		return nil, unlike(nil, "OCI layout: index.json is larger than %d bytes", maxIndex)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		return nil, unlike(err, "OCI layout: index.json")
	}
	if len(index.Manifests) != 1 {
		return nil, unlike(nil, "OCI layout: index.json names %d manifests instead of one", len(index.Manifests))
	}
	return &index.Manifests[0], nil
}

// document reads a whole blob of at most limit bytes.
func (l *layout) document(descriptor v1.Descriptor, limit int64) ([]byte, error) {
	if descriptor.Size > limit {
		return nil, unlike(nil, "blob %s: %d bytes are more than the %d allowed", descriptor.Digest, descriptor.Size, limit)
	}
	blob, err := l.open(descriptor)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	return io.ReadAll(blob)
}

// open opens a blob. Its last read fails if it was not what the descriptor says.
func (l *layout) open(descriptor v1.Descriptor) (io.ReadCloser, error) {
	if descriptor.Digest.Algorithm != "sha256" {
		return nil, unlike(nil, "blob %s: not named by sha256", descriptor.Digest)
	}
	f, err := os.Open(filepath.Join(l.dir, "blobs", "sha256", filepath.Base(descriptor.Digest.Hex)))
	if err != nil {
		return nil, unlike(err, "blob %s", descriptor.Digest)
	}
	return &verified{file: f, hash: sha256.New(), want: descriptor}, nil
}

// verified reads a blob and compares it with its descriptor at the end.
type verified struct {
	file *os.File
	hash hash.Hash
	read int64
	want v1.Descriptor
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.file.Read(p)
	v.read += int64(n)
	v.hash.Write(p[:n])
	if v.read > v.want.Size {
		return 0, v.damaged("more than %d bytes", v.want.Size)
	}
	if err == io.EOF {
		if v.read != v.want.Size {
			return n, v.damaged("%d bytes instead of %d", v.read, v.want.Size)
		}
		if got := hex.EncodeToString(v.hash.Sum(nil)); got != v.want.Digest.Hex {
			return n, v.damaged("content is sha256:%s", got)
		}
	}
	return n, err
}

func (v *verified) Close() error { return v.file.Close() }

func (v *verified) damaged(format string, args ...any) error {
	return &Error{Kind: codeDamaged, Text: fmt.Sprintf("blob %s: "+format, append([]any{v.want.Digest}, args...)...)}
}

// The rest makes layout a v1.Image.

func (l *layout) MediaType() (types.MediaType, error) { return l.manifest.MediaType, nil }
func (l *layout) Size() (int64, error)                { return int64(len(l.manifestText)), nil }
func (l *layout) ConfigName() (v1.Hash, error)        { return l.manifest.Config.Digest, nil }
func (l *layout) ConfigFile() (*v1.ConfigFile, error) { return l.config, nil }
func (l *layout) RawConfigFile() ([]byte, error)      { return l.configText, nil }
func (l *layout) Digest() (v1.Hash, error)            { return partial.Digest(l) }
func (l *layout) Manifest() (*v1.Manifest, error)     { return l.manifest, nil }
func (l *layout) RawManifest() ([]byte, error)        { return l.manifestText, nil }
func (l *layout) LayerByDigest(h v1.Hash) (v1.Layer, error) {
	return l.layerBy(h, func(one *layer) v1.Hash { return one.descriptor.Digest })
}
func (l *layout) LayerByDiffID(h v1.Hash) (v1.Layer, error) {
	return l.layerBy(h, func(one *layer) v1.Hash { return one.diffID })
}

func (l *layout) Layers() ([]v1.Layer, error) {
	layers := make([]v1.Layer, len(l.manifest.Layers))
	for i := range layers {
		layers[i] = l.layer(i)
	}
	return layers, nil
}

func (l *layout) layer(i int) *layer {
	return &layer{layout: l, descriptor: l.manifest.Layers[i], diffID: l.config.RootFS.DiffIDs[i]}
}

func (l *layout) layerBy(h v1.Hash, name func(*layer) v1.Hash) (v1.Layer, error) {
	for i := range l.manifest.Layers {
		if one := l.layer(i); strings.EqualFold(name(one).String(), h.String()) {
			return one, nil
		}
	}
	return nil, unlike(nil, "the image has no layer %s", h)
}
