package mirror

import "github.com/packhof/packhof/bundle"

// Only is what a set has to bring of a manifest.
func (e *Exporter) Only(manifest []byte) ([]bundle.Piece, error) { return e.only(manifest) }
