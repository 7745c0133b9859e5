package bundle

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/packhof/packhof/internal/cas"
)

// WriteOptions says how a volume is written to a medium.
type WriteOptions struct {
	NoReadback bool          // do not read the volume back from the medium
	Observe    func(n int64) // told of every piece written or read back; may be nil
	// JournalEvery is how many bytes are written between two entries of the
	// journal, each of which waits for the medium; 0 is 256 MiB.
	JournalEvery int64

	medium medium // nil: the real one
	begin  beginStep
}

// beginStep is told of a step of the work before it begins, in words and in
// bytes, and gives whom to tell of the bytes and of the end.
type beginStep func(what string, bytes int64) (observe func(n int64), done func(error))

// step runs a step that somebody watches.
func (o *WriteOptions) step(what string, bytes int64, run func(observe func(int64)) error) error {
	if o.begin == nil {
		return run(o.Observe)
	}
	observe, done := o.begin(what, bytes)
	err := run(observe)
	done(err)
	return err
}

func (o *WriteOptions) onto() medium {
	if o.medium == nil {
		return realMedium{}
	}
	return o.medium
}

// WriteTo writes the volume into dir under its final name, or leaves nothing
// under that name: what the medium can take is checked first, the file is
// written as .partial, synced, read back from the medium and renamed. When ctx
// ends, the process is killed or the medium is taken away, the next WriteTo of
// the same volume goes on where the journal beside it says, and ends with the
// same bytes; an encrypted volume begins anew. A volume that is there already with these very bytes is read, and
// not written again.
func (p *VolumePlan) WriteTo(ctx context.Context, dir string, content Content, opts WriteOptions) (path string, err error) {
	path = filepath.Join(dir, p.FileName())
	there, err := p.stands(ctx, path, opts)
	if err != nil || there {
		return path, err
	}
	m := opts.onto()
	r, err := m.room(dir)
	if err == nil {
		err = r.checkFile(path, p.Size())
	}
	if err != nil {
		return "", err
	}
	u, err := openUnfinished(path, p, m)
	if err != nil {
		return "", mediumError(fromMedium(err), m, path, p.Size())
	}
	// WriteManifest needs some too.
	err = r.checkSpace(dir, p.Size()-u.have+int64(len(p.head[0].data)))
	if err == nil {
		err = p.writeFile(ctx, u, content, opts)
	}
	if err = errors.Join(err, fromMedium(u.through.Close())); err == nil {
		err = fromMedium(u.finish())
	}
	if err == nil {
		return path, nil
	}
	if u.journalled && (ctx.Err() != nil || lost(err)) {
		return "", mediumError(err, m, path, p.Size()) // it goes on another time
	}
	return "", errors.Join(mediumError(err, m, path, p.Size()), u.drop())
}

// stands tells whether this very volume is there already under its name.
func (p *VolumePlan) stands(ctx context.Context, path string, opts WriteOptions) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, nil // what is wrong with the folder, writing tells
	}
	if !info.Mode().IsRegular() {
		return false, taken("%s is there and is no file", path)
	}
	if info.Size() != p.size {
		return false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return false, nil
	}
	err = opts.step("check "+p.FileName(), p.size, func(observe func(int64)) error { return p.compare(ctx, f, observe) })
	if closeErr := f.Close(); ctx.Err() != nil {
		return false, errors.Join(context.Cause(ctx), closeErr)
	}
	if err != nil {
		return false, nil // it is written anew
	}
	return true, tidy(path)
}

// tidy removes what lies beside a volume that is whole: a run that was killed
// may have left it. What somebody has open stays.
func tidy(path string) error {
	u := unfinished{path: path}
	f, err := openOwn(u.partial())
	if errors.Is(err, fs.ErrNotExist) {
		return u.forget()
	}
	if err != nil {
		return err
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return f.Close()
	}
	return errors.Join(u.drop(), cas.Unlock(f))
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
	return mediumError(fromMedium(cas.WriteBytes(path, 0o644, manifest)), realMedium{}, path, int64(len(manifest)))
}

func (p *VolumePlan) writeFile(ctx context.Context, u *unfinished, content Content, opts WriteOptions) error {
	if len(p.recipients) > 0 {
		return p.writeEncrypted(ctx, u, content, opts)
	}
	if u.mark.Position > 0 && opts.NoReadback { // else all of it is read in the end
		err := opts.step("read what is there of "+p.FileName(), u.mark.Position, func(observe func(int64)) error {
			return p.proveStart(ctx, u, content, observe)
		})
		if err != nil {
			return err
		}
	}
	resumedAt := u.mark.Position
	err := opts.step("write "+p.FileName(), p.size, func(observe func(int64)) error {
		if observe != nil && resumedAt > 0 {
			observe(resumedAt)
		}
		w := &volumeWriter{plan: p, w: u, content: content, observe: observe, reached: u.reached(p, cmp.Or(opts.JournalEvery, journalEvery)), at: u.mark}
		if err := w.run(ctx); err != nil {
			return err
		}
		return fromMedium(u.through.Sync())
	})
	if err != nil || opts.NoReadback {
		return err
	}
	return opts.step("read back "+p.FileName(), p.size, func(observe func(int64)) error {
		dropCache(u.file)
		if err := p.compare(ctx, u.through, observe); err != nil {
			return readBackError(p.FileName(), resumedAt, err)
		}
		return nil
	})
}

// steadyEvery is how much is written before the disk is told to begin with it.
const steadyEvery = 32 << 20

// compare reads a volume and proves that it has the bytes of the plan. They are
// one with the plan's head: all else follows from that.
func (p *VolumePlan) compare(ctx context.Context, f io.ReaderAt, observe func(int64)) error {
	there, err := Open(f, p.size, p.FileName())
	if err != nil {
		return err
	}
	v := there.volumes[0]
	if err := there.checkVolumes(p.manifest); err != nil {
		return err
	}
	for i, e := range p.head {
		got, err := v.read(v.entries[i])
		if err != nil {
			return err
		}
		if want, got := digestOf(e.data), digestOf(got); want != got {
			return v.mismatch(v.entries[i], want, got)
		}
	}
	return checkVolumes(ctx, there.volumes, p.manifest, 0, observe)
}
