package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// WriteOptions says how a volume is written to a medium.
type WriteOptions struct {
	NoReadback bool          // do not read the volume back from the medium
	Observe    func(n int64) // told of every piece written or read back; may be nil
	// JournalEvery is how many bytes are written between two entries of the
	// journal, each of which waits for the medium; 0 is 256 MiB.
	JournalEvery int64
}

// WriteTo writes the volume into dir under its final name, or leaves nothing
// under that name: free space is checked first, the file is written as
// .partial, synced, read back from the medium and renamed. When ctx ends, or
// the process is killed, the next WriteTo of the same volume goes on where the
// journal beside it says, and ends with the same bytes; an encrypted volume
// begins anew.
func (p *VolumePlan) WriteTo(ctx context.Context, dir string, content Content, opts WriteOptions) (path string, err error) {
	path = filepath.Join(dir, p.FileName())
	if limit, err := FileSizeLimit(dir); err != nil {
		return "", err
	} else if p.Size() > limit {
		return "", fileTooLarge(path, p.Size(), limit)
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return "", problem.New("medium/taken", "%s is there and is no file", path).Hint("remove it, or write to another folder with --to")
	}
	u, err := openUnfinished(path, p)
	if err != nil {
		return "", mediumError(err, path, p.Size())
	}
	// WriteManifest needs some too.
	err = checkSpace(dir, p.Size()-u.mark.Position+int64(len(p.head[0].data)))
	if err == nil {
		err = p.writeFile(ctx, u, content, opts)
	}
	if err = errors.Join(err, u.file.Close()); err != nil {
		if ctx.Err() != nil && u.journalled {
			return "", err // it goes on another time
		}
		return "", errors.Join(mediumError(err, path, p.Size()), u.drop())
	}
	return path, u.finish()
}

// WriteManifest writes the manifest into dir, to lie beside the volume as
// <channel>-<serial>.packhof.json, or leaves what was there. Beside encrypted
// volumes nothing is written, since it would tell what is in them.
func (p *SetPlan) WriteManifest(dir string) error {
	if p.isEncrypted() {
		return nil
	}
	manifest := p.head.Manifest
	path := filepath.Join(dir, BaseName(p.manifest)+manifestSuffix)
	return mediumError(cas.WriteBytes(path, 0o644, manifest), path, int64(len(manifest)))
}

func (p *VolumePlan) writeFile(ctx context.Context, u *unfinished, content Content, opts WriteOptions) error {
	if len(p.recipients) > 0 {
		return p.writeEncrypted(ctx, u, content, opts)
	}
	if opts.Observe != nil && u.mark.Position > 0 {
		opts.Observe(u.mark.Position)
	}
	w := &volumeWriter{plan: p, w: u, content: content, observe: opts.Observe, reached: u.reached(p, cmp.Or(opts.JournalEvery, journalEvery)), at: u.mark}
	if err := w.run(ctx); err != nil {
		return err
	}
	if err := u.file.Sync(); err != nil {
		return err
	}
	if opts.NoReadback {
		return nil
	}
	return p.readBack(ctx, u.file, opts.Observe)
}

// steadyEvery is how much is written before the disk is told to begin with it.
const steadyEvery = 32 << 20

// readBack proves what the medium holds, not what the page cache does.
func (p *VolumePlan) readBack(ctx context.Context, f *os.File, observe func(int64)) error {
	dropCache(f)
	name := filepath.Base(f.Name())
	sealed, err := Open(f, p.size, name)
	if err != nil {
		return readBackError(name, err)
	}
	if err := sealed.checkVolumes(p.manifest); err != nil {
		return readBackError(name, err)
	}
	if err := checkVolumes(ctx, sealed.volumes, p.manifest, 0, observe); err != nil {
		return readBackError(name, err)
	}
	return nil
}

func readBackError(name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return problem.New("medium/readback", "the medium does not give back what was written to %s: %w", name, err).
		Hint("use another medium; this one loses data")
}

// checkSpace refuses early, with numbers.
func checkSpace(dir string, need int64) error {
	free, err := FreeSpace(dir)
	if err != nil {
		return err
	}
	if free < need {
		return noSpace(dir, need, free)
	}
	return nil
}

func noSpace(dir string, need, free int64) error {
	return problem.New("medium/full", "there is not enough space in %s", dir).
		With(fmt.Sprintf("needed:  %d bytes", need), fmt.Sprintf("free:    %d bytes", free)).
		Hint("free space there, or write to another folder with --to")
}

func fileTooLarge(path string, need, limit int64) *problem.Problem {
	return problem.New("medium/file-too-large", "the file system of %s does not take a file of %d bytes", path, need).
		With(fmt.Sprintf("needed:  %d bytes", need), fmt.Sprintf("limit:   %d bytes", limit)).
		Hint("write to a file system without such a limit, such as exFAT or ext4")
}

// mediumError says what a failed write means for the person at the keyboard.
func mediumError(err error, path string, need int64) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return problem.New("medium/full", "%s does not fit: %w", path, err).
			With(fmt.Sprintf("needed:  %d bytes", need)).Hint("free space there, or write to another folder with --to")
	case errors.Is(err, syscall.EFBIG):
		return problem.New("medium/file-too-large", "the file system of %s does not take a file of %d bytes: %w", path, need, err).
			Hint("write to a file system without such a limit, such as exFAT or ext4")
	}
	return err
}
