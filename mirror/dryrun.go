package mirror

import (
	"path/filepath"

	"github.com/packhof/packhof/bundle"
)

// DryRun is what an export would do.
type DryRun struct {
	Channel   string `json:"channel"`
	Serial    int64  `json:"serial"`
	Path      string `json:"path"`
	Artifacts int    `json:"artifacts"`
	Bytes     int64  `json:"bytes"` // about: content shared by artifacts counts for each, SBOMs not at all
	Fetch     int64  `json:"fetch"` // of these, bytes of artifacts that the store does not have whole
	Free      int64  `json:"free"`
}

// DryRun checks everything that can be checked without fetching, sealing or
// writing.
func (e *Exporter) DryRun(l *Lock, dir string) (*DryRun, error) {
	if err := e.check(l); err != nil {
		return nil, err
	}
	if err := bundle.CheckWritable(dir); err != nil {
		return nil, err
	}
	name := bundle.BaseName(&bundle.Manifest{Channel: l.Channel, Epoch: l.Epoch, Serial: l.Serial}) + ".tar"
	d := &DryRun{Channel: l.Channel, Serial: l.Serial, Path: filepath.Join(dir, name), Artifacts: len(l.Artifacts)}
	for _, p := range l.Artifacts {
		d.Bytes += p.Bytes
		if !e.whole(p) {
			d.Fetch += p.Bytes
		}
	}
	var err error
	d.Free, err = bundle.FreeSpace(dir)
	return d, err
}

// whole reports whether the store has all of an artifact.
func (e *Exporter) whole(p Pinned) bool {
	parts := newAssembly(e.Store)
	_, _, err := parts.artifact(p, bundle.Instant{})
	if err != nil {
		return false
	}
	for _, b := range parts.sorted() {
		if ok, err := e.Store.Has(b.Digest, b.Size); !ok || err != nil {
			return false
		}
	}
	return true
}
