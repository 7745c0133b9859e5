package testkit

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Layer makes a layer of files and the directories above them, in the order
// given, owned by root and dated Noon.
func Layer(files []File, c compression.Compression) (v1.Layer, error) {
	var buf bytes.Buffer
	w := layerWriter{tar: tar.NewWriter(&buf), made: map[string]bool{}}
	for _, f := range files {
		if err := w.file(f.Path, int64(f.Mode.Perm()), int64(len(f.Data)), bytes.NewReader(f.Data)); err != nil {
			return nil, err
		}
	}
	if err := w.tar.Close(); err != nil {
		return nil, fmt.Errorf("finish layer: %w", err)
	}
	return packed(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil }, c)
}

// PayloadLayer makes a layer with size bytes of Random(seed) in
// opt/payload.bin. The bytes are made anew whenever they are read: a layer of
// many gigabytes takes time but no memory.
func PayloadLayer(seed string, size int64, c compression.Compression) (v1.Layer, error) {
	return packed(func() (io.ReadCloser, error) {
		r, pipe := io.Pipe()
		go func() {
			w := layerWriter{tar: tar.NewWriter(pipe), made: map[string]bool{}}
			err := w.file("opt/payload.bin", 0, size, Random(seed))
			if err == nil {
				err = w.tar.Close()
			}
			pipe.CloseWithError(err)
		}()
		return r, nil
	}, c)
}

// packed makes a layer of an uncompressed tar archive.
func packed(open tarball.Opener, c compression.Compression) (v1.Layer, error) {
	switch c {
	case compression.GZip, "":
		return compressed(open, tarball.WithMediaType(types.OCILayer))
	case compression.ZStd:
		return compressed(open, tarball.WithMediaType(types.OCILayerZStd), tarball.WithCompression(c))
	case compression.None:
		return newPlainLayer(open)
	default:
		return nil, fmt.Errorf("no layer compression called %q", c)
	}
}

// compressed hides the Descriptor method of tarball's layers: it gives every
// layer an empty set of annotations, which a manifest that was read back from
// its own bytes does not have.
func compressed(open tarball.Opener, opts ...tarball.LayerOption) (v1.Layer, error) {
	layer, err := tarball.LayerFromOpener(open, opts...)
	if err != nil {
		return nil, fmt.Errorf("compress layer: %w", err)
	}
	return struct{ v1.Layer }{layer}, nil
}

type layerWriter struct {
	tar  *tar.Writer
	made map[string]bool // directories written so far
}

func (w *layerWriter) file(name string, mode, size int64, data io.Reader) error {
	if name != path.Clean(name) || strings.HasPrefix(name, "/") {
		return fmt.Errorf("no clean relative path: %q", name)
	}
	if err := w.directory(path.Dir(name)); err != nil {
		return err
	}
	if mode == 0 {
		mode = 0o644
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size, ModTime: Noon()}
	if err := w.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("layer file %s: %w", name, err)
	}
	if _, err := io.CopyN(w.tar, data, size); err != nil {
		return fmt.Errorf("layer file %s: %w", name, err)
	}
	return nil
}

func (w *layerWriter) directory(name string) error {
	if name == "." || w.made[name] {
		return nil
	}
	if err := w.directory(path.Dir(name)); err != nil {
		return err
	}
	w.made[name] = true
	header := &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: Noon()}
	if err := w.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("layer directory %s: %w", name, err)
	}
	return nil
}

// plainLayer is an uncompressed layer, which go-containerregistry's tarball
// package does not make.
type plainLayer struct {
	open   tarball.Opener
	digest v1.Hash
	size   int64
}

func newPlainLayer(open tarball.Opener) (v1.Layer, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	digest, size, err := v1.SHA256(r)
	if err != nil {
		return nil, fmt.Errorf("hash layer: %w", err)
	}
	return &plainLayer{open: open, digest: digest, size: size}, nil
}

func (l *plainLayer) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *plainLayer) DiffID() (v1.Hash, error)             { return l.digest, nil }
func (l *plainLayer) Size() (int64, error)                 { return l.size, nil }
func (l *plainLayer) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }
func (l *plainLayer) Compressed() (io.ReadCloser, error)   { return l.open() }
func (l *plainLayer) Uncompressed() (io.ReadCloser, error) { return l.open() }
