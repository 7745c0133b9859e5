package mirror

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// lacking is what the store does not have of a lock, in bytes.
type lacking struct {
	known   int64 // blobs that are known one by one, each once
	others  int64 // of artifacts whose documents the store lacks, so that what they share is not known
	largest int64 // of the latter, the largest alone
}

// about is what has to be fetched; content that others share counts for each.
func (m lacking) about() int64 { return m.known + m.others }

// least is what has to be fetched at the very least.
func (m lacking) least() int64 { return max(m.known, m.largest) }

func (e *Exporter) lacking(l *Lock) (lacking, error) {
	var m lacking
	counted := map[cas.Digest]bool{}
	for _, p := range l.Artifacts {
		parts := newAssembly(e.Store)
		// An error of it is met again, and told, when the artifact is fetched.
		if _, _, err := parts.artifact(p, bundle.Instant{}); err != nil {
			m.others += p.Bytes
			m.largest = max(m.largest, p.Bytes)
			continue
		}
		for _, b := range parts.sorted() {
			ok, err := e.Store.Has(b.Digest, b.Size)
			if err != nil {
				return m, err
			}
			if !ok && !counted[b.Digest] {
				m.known += b.Size
			}
			counted[b.Digest] = true
		}
	}
	return m, nil
}

// checkRoom finds before all the fetching that the store's file system cannot
// take what is missing, and says what that is. It counts too little rather
// than too much: what it refuses does not fit.
func (e *Exporter) checkRoom(l *Lock) (lacking, error) {
	missing, err := e.lacking(l)
	if err != nil {
		return missing, err
	}
	free, err := bundle.FreeSpace(e.Store.Dir())
	if err != nil || missing.least() <= free {
		return missing, err
	}
	return missing, problem.New("disk/full", "there is not enough space in %s for what has to be fetched", e.Store.Dir()).
		With(fmt.Sprintf("needed:  %d bytes", missing.least()), fmt.Sprintf("free:    %d bytes", free)).
		Hint("free space there, or set store in packhof.yaml to a larger disk")
}

// checkMedium finds before all the fetching that the medium can never take what
// the lock names: the largest artifact alone does not fit. The volumes themselves
// are held against it when their sizes are known.
func (e *Exporter) checkMedium(l *Lock, dir string) error {
	if len(e.Since) > 0 || e.Want != nil || len(e.Volumes) > 0 {
		return nil // a part of it, of a size that shows later
	}
	base := bundle.BaseName(&bundle.Manifest{Channel: l.Channel, Epoch: l.Epoch, Serial: l.Serial})
	there, err := filepath.Glob(filepath.Join(globbed(dir), base+".*"))
	if err != nil || len(there) > 0 {
		return err // some of it may be on the medium already
	}
	var least int64
	for _, p := range l.Artifacts {
		least = max(least, p.Bytes)
	}
	return bundle.CheckMedium(filepath.Join(dir, base+".tar"), least, len(e.VolumeSizes) == 0)
}

// globbed is a folder's name in which nothing stands for something else.
func globbed(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}
