package bundle

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/cas"
)

// isEncrypted tells whether the volumes of the set are written encrypted.
func (p *SetPlan) isEncrypted() bool { return len(p.recipients) > 0 }

// onMedium is how much a volume of so many bytes takes on its medium.
func (p *SetPlan) onMedium(size int64) int64 {
	if !p.isEncrypted() {
		return size
	}
	return agefile.Size(size, len(p.recipients))
}

// unnamed stands for the random part of a name that is not chosen yet.
const unnamed = "xxxxxxxxxxxxxxxx"

// EncryptedName is the form of the name of a set's one encrypted volume, with
// an x for each random digit.
const EncryptedName = unnamed + EncryptedSuffix

// named is the set with a name of its own, if its volumes are encrypted: their
// names tell nothing.
func (p *SetPlan) named() *SetPlan {
	if !p.isEncrypted() {
		return p
	}
	stem := make([]byte, len(unnamed)/2)
	rand.Read(stem) // never fails, or ends the program
	other := *p
	other.stem = hex.EncodeToString(stem)
	return &other
}

// fileName is the name on a medium of volume number.
func (p *SetPlan) fileName(number int, complete bool) string {
	switch {
	case !p.isEncrypted():
		return p.info.numbered(number).fileName(p.manifest, complete)
	case p.Count() == 1:
		return p.stem + EncryptedSuffix
	}
	return fmt.Sprintf("%s.v%04d%s", p.stem, number, EncryptedSuffix)
}

// writeEncrypted streams the volume encrypted into its file: nothing of it is
// anywhere in the clear. What is read back is compared as it was encrypted,
// since only the gate can open it.
func (p *VolumePlan) writeEncrypted(ctx context.Context, u *unfinished, content Content, opts WriteOptions) error {
	sum := sha256.New()
	stream, err := agefile.Encrypt(io.MultiWriter(u, sum), p.recipients...)
	if err != nil {
		return err
	}
	err = opts.step("write "+p.FileName(), p.size, func(observe func(int64)) error {
		w := &volumeWriter{plan: p, w: stream, content: content, observe: observe}
		if err := w.run(ctx); err != nil {
			return err
		}
		if err := stream.Close(); err != nil {
			return err
		}
		if u.written != p.Size() {
			return fmt.Errorf("wrote %d bytes of an encrypted volume planned with %d", u.written, p.Size())
		}
		return fromMedium(u.through.Sync())
	})
	if err != nil || opts.NoReadback {
		return err
	}
	return opts.step("read back "+p.FileName(), p.Size(), func(observe func(int64)) error {
		dropCache(u.file)
		return p.readBackEncrypted(ctx, u.through, Digest(sum.Sum(nil)), observe)
	})
}

func (p *VolumePlan) readBackEncrypted(ctx context.Context, f io.ReaderAt, want Digest, observe func(int64)) error {
	name := p.FileName()
	h := sha256.New()
	n, err := pump(ctx, h, io.NewSectionReader(f, 0, p.Size()+1), observe)
	if err != nil {
		return readBackError(name, 0, err)
	}
	if got := Digest(h.Sum(nil)); n != p.Size() || got != want {
		return readBackError(name, 0, &DamagedError{Volume: name, What: "its bytes are not the right ones", Want: want.String(), Got: got.String()})
	}
	return nil
}

// encryptedPartial is the form of a name that only we give away, at random.
var encryptedPartial = regexp.MustCompile(`^[0-9a-f]{16}(\.v[0-9]{4})?\.age\.partial$`)

// dropInterrupted removes what writers of encrypted volumes have left behind in
// dir that were killed: nobody can go on with it. What somebody still writes
// to stays.
func dropInterrupted(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range names {
		if !encryptedPartial.MatchString(e.Name()) {
			continue
		}
		if err := dropLeft(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func dropLeft(path string) error {
	f, err := openOwn(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // a link, or somebody else's
	}
	if err != nil {
		return err
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		u := unfinished{path: strings.TrimSuffix(path, cas.PartialSuffix)}
		err = u.drop()
	}
	return errors.Join(err, cas.Unlock(f))
}
