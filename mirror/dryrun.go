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
	Fetch     int64  `json:"fetch"` // of these, what the store lacks
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
	}
	missing, err := e.checkRoom(l)
	if err != nil {
		return nil, err
	}
	d.Fetch = missing.about()
	d.Free, err = bundle.FreeSpace(dir)
	return d, err
}
