package mirror

import (
	"context"
	"path/filepath"

	"github.com/packhof/packhof/bundle"
)

// DryRun is what an export would do.
type DryRun struct {
	Channel   string `json:"channel"`
	Serial    int64  `json:"serial"`
	Path      string `json:"path"` // of the first volume, if all goes into one; an x stands for a digit that is chosen when it is written
	Artifacts int    `json:"artifacts"`
	Documents int    `json:"documents"` // of a control bundle
	Bytes     int64  `json:"bytes"`     // exact where the volumes are known; else about: content shared by artifacts counts for each, SBOMs not at all
	Fetch     int64  `json:"fetch"`     // of these, what the store lacks
	Free      int64  `json:"free"`

	// Of a serial whose manifest is here, the volumes are known to the byte.
	Sealed   bool             `json:"sealedBefore"`
	Volumes  []bundle.Written `json:"volumes"`
	Complete bool             `json:"complete"` // the set would bring all content
	Sizes    []int64          `json:"volumeSizes,omitempty"`

	Recipients []string `json:"recipients,omitempty"` // whom the volumes would be encrypted to
}

// DryRun checks everything that can be checked without fetching, sealing or
// writing.
func (e *Exporter) DryRun(ctx context.Context, l *Lock, dir string) (*DryRun, error) {
	if err := e.check(l); err != nil {
		return nil, err
	}
	if err := bundle.CheckWritable(dir); err != nil {
		return nil, err
	}
	name := bundle.BaseName(&bundle.Manifest{Channel: l.Channel, Epoch: l.Epoch, Serial: l.Serial}) + ".tar"
	if len(e.Recipients) > 0 {
		e.warnOfLocked(l)
		name = bundle.EncryptedName
	}
	d := &DryRun{
		Channel: l.Channel, Serial: l.Serial, Path: filepath.Join(dir, name), Artifacts: len(l.Artifacts), Documents: len(l.Documents),
		Volumes: []bundle.Written{}, Complete: e.Want == nil && len(e.Since) == 0 && (e.Again == nil || e.Again.Pieces == nil), Sizes: e.VolumeSizes, Recipients: textsOf(e.Recipients),
	}
	for _, p := range l.Artifacts {
		d.Bytes += p.Bytes
	}
	for _, doc := range l.Documents {
		d.Bytes += doc.Size
	}
	missing, err := e.checkRoom(l)
	if err != nil {
		return nil, err
	}
	d.Fetch = missing.about()
	if err := e.foresee(ctx, l, dir, d); err != nil {
		return nil, err
	}
	d.Free, err = bundle.FreeSpace(dir)
	return d, err
}

// foresee plans the volumes of a serial that was sealed before, as the export
// would.
func (e *Exporter) foresee(ctx context.Context, l *Lock, dir string, d *DryRun) error {
	sealed, manifest, err := e.sealedManifest(l)
	d.Sealed = sealed
	if err != nil || manifest == nil {
		return err
	}
	head, err := e.head(ctx, l, manifest)
	if err != nil {
		return err
	}
	set, err := e.planSet(head, dir, l)
	if err != nil {
		return err
	}
	numbers, err := set.Numbers(e.Volumes)
	if err != nil {
		return err
	}
	d.Bytes, d.Complete = 0, set.IsComplete()
	paths := set.Paths(dir)
	for _, n := range numbers {
		v := bundle.Written{Path: paths[n-1], Size: set.VolumeSize(n)}
		d.Volumes = append(d.Volumes, v)
		d.Bytes += v.Size
	}
	d.Path = d.Volumes[0].Path
	return nil
}
