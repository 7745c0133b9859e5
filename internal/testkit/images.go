package testkit

import (
	"fmt"
	"io/fs"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is one regular file of a layer.
type File struct {
	Path string      // slash-separated, without a slash at the front
	Mode fs.FileMode // permission bits; 0 means 0644
	Data []byte
}

// ImageSpec says what an image is made of. The image is dated Noon and uses
// OCI media types only.
type ImageSpec struct {
	Seed        string                  // of the payload
	Arch        string                  // "" means amd64
	PayloadSize int64                   // bytes of /opt/payload.bin, in a layer of its own; 0 means no such layer
	Packages    []DebPackage            // in the dpkg database; nil means BasePackages
	Files       []File                  // one more layer, on top of the base
	Base        []v1.Layer              // lowest first; nil means one layer of RootFS(Packages)
	Compression compression.Compression // of the layers made here: GZip (also ""), ZStd or None
	Labels      map[string]string
}

// Image makes the image that spec describes, from the bottom: base, files,
// payload.
func Image(spec ImageSpec) (v1.Image, error) {
	layers, err := spec.layers()
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, spec.config())
	if err != nil {
		return nil, fmt.Errorf("configure image: %w", err)
	}
	adds := make([]mutate.Addendum, len(layers))
	for i, layer := range layers {
		adds[i] = mutate.Addendum{
			Layer:   layer,
			History: v1.History{Created: v1.Time{Time: Noon()}, CreatedBy: fmt.Sprintf("testkit layer %d", i)},
		}
	}
	image, err = mutate.Append(image, adds...)
	if err != nil {
		return nil, fmt.Errorf("add layers: %w", err)
	}
	return image, nil
}

func (s ImageSpec) arch() string {
	if s.Arch == "" {
		return "amd64"
	}
	return s.Arch
}

func (s ImageSpec) config() *v1.ConfigFile {
	return &v1.ConfigFile{
		Created:      v1.Time{Time: Noon()},
		Architecture: s.arch(),
		OS:           "linux",
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Env:    []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Cmd:    []string{"/bin/true"},
			Labels: s.Labels,
		},
	}
}

func (s ImageSpec) layers() ([]v1.Layer, error) {
	layers, err := s.base()
	if err != nil {
		return nil, err
	}
	if len(s.Files) > 0 {
		layer, err := Layer(s.Files, s.Compression)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	if s.PayloadSize > 0 {
		layer, err := PayloadLayer(s.Seed+"/"+s.arch(), s.PayloadSize, s.Compression)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

func (s ImageSpec) base() ([]v1.Layer, error) {
	if s.Base != nil {
		return append([]v1.Layer(nil), s.Base...), nil
	}
	packages := s.Packages
	if packages == nil {
		packages = BasePackages()
	}
	layer, err := Layer(RootFS(packages), s.Compression)
	if err != nil {
		return nil, err
	}
	return []v1.Layer{layer}, nil
}

// MultiArch makes an OCI index with one image for each architecture, amd64 and
// arm64 if none is named. The images share base and files; their payloads
// differ.
func MultiArch(spec ImageSpec, archs ...string) (v1.ImageIndex, error) {
	if len(archs) == 0 {
		archs = []string{"amd64", "arm64"}
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range archs {
		spec.Arch = arch
		image, err := Image(spec)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return index, nil
}
