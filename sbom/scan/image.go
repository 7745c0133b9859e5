package scan

import (
	"context"
	"errors"

	stereoscope "github.com/anchore/stereoscope/pkg/file"
	"github.com/anchore/stereoscope/pkg/image"
	"github.com/anchore/syft/syft/source"
	"github.com/anchore/syft/syft/source/stereoscopesource"

	"github.com/packhof/packhof/sbom"
)

// openImage hands stereoscope an image whose every byte is checked and
// counted on its way (see layout and layer), in place of its own reader of
// layouts, which does neither.
func openImage(ctx context.Context, request sbom.Request) (_ source.Source, err error) {
	described, err := openLayout(request)
	if err != nil {
		return nil, err
	}
	scratch := stereoscope.NewTempDirGenerator("packhof-scan")
	defer func() {
		if err != nil {
			err = errors.Join(err, scratch.Cleanup())
		}
	}()
	layers, err := scratch.NewDirectory("layers")
	if err != nil {
		return nil, err
	}
	digest := request.Subject.Digest
	content := image.New(described, scratch, layers, image.WithManifestDigest(digest), image.WithManifest(described.manifestText))
	// Only what is left of all layers together is looked at, so nothing else is built.
	if err := content.Read(image.WithLazyLayerSquashes(ctx)); err != nil {
		return nil, err
	}
	return cleaned{
		Source: stereoscopesource.New(content, stereoscopesource.ImageConfig{
			Reference: request.Subject.Name,
			Alias:     source.Alias{Name: request.Subject.Name, Version: digest},
		}),
		scratch: scratch,
	}, nil
}

// cleaned is a source that takes its temporary data with it.
type cleaned struct {
	source.Source
	scratch *stereoscope.TempDirGenerator
}

func (c cleaned) Close() error {
	return errors.Join(c.Source.Close(), c.scratch.Cleanup())
}
