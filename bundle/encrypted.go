package bundle

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packhof/packhof/internal/agefile"
	"github.com/packhof/packhof/internal/problem"
)

// EncryptedSuffix ends the names of encrypted volumes that we write. A reader
// knows them by their first line.
const EncryptedSuffix = ".age"

// Opener opens volumes, and those that are encrypted with its identities, which
// it asks for when it meets one. The zero value opens what is in the clear.
type Opener struct {
	Identities func() ([]*agefile.Identity, error)
}

// OpenerWith has these identities at hand.
func OpenerWith(identities ...*agefile.Identity) Opener {
	return Opener{func() ([]*agefile.Identity, error) { return identities, nil }}
}

// identities are those to open a volume of this name with; at least one.
func (o Opener) identities(name string) ([]*agefile.Identity, error) {
	if o.Identities != nil {
		if list, err := o.Identities(); err != nil || len(list) > 0 {
			return list, err
		}
	}
	return nil, problem.New(codeEncrypted, "%s is encrypted, and there is no identity to open it with", name).
		Hint("name the file with a private key of one of its recipients, with --identity; a gate opens what is meant for it by itself")
}

// Codes of a volume that is encrypted and cannot be opened here.
const (
	codeEncrypted = "volume/encrypted"       // nobody gave an identity
	codeForOthers = "volume/other-recipient" // none of those given fits
)

// isLocked tells that a volume may be sound, and is not for us to open.
func isLocked(err error) bool {
	var p *problem.Problem
	return errors.As(err, &p) && (p.Code() == codeEncrypted || p.Code() == codeForOthers)
}

// OpenFile opens one volume. It reads headers and the head, not
// the blobs, and parses nothing of the manifest. When the file is damaged
// behind its head (cut off, say), it returns the Sealed together with the
// error, so that what is there can be shown; such a Sealed never verifies.
// An encrypted volume is opened piece by piece as it is read; nothing of it is
// written anywhere. Problems of those: volume/encrypted, volume/other-recipient.
func (o Opener) OpenFile(path string) (*Sealed, error) {
	// Asked before it is opened: a named pipe would wait for ever.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, problem.New("volume/not-a-file", "%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := o.open(f, filepath.Base(path))
	if s == nil {
		return nil, errors.Join(err, f.Close())
	}
	s.volumes[0].closer, s.volumes[0].path = f, path
	return s, err
}

func (o Opener) open(f *os.File, name string) (*Sealed, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !agefile.Begins(f) {
		return Open(f, info.Size(), name)
	}
	plain, size, err := o.unlock(f, info.Size(), name)
	if err != nil {
		return nil, err
	}
	s, err := Open(plain, size, name)
	if s != nil {
		s.volumes[0].onMedium = info.Size()
	}
	return s, err
}

// CameEncrypted tells whether the volume in the file at path is encrypted.
func (s *Sealed) CameEncrypted(path string) bool {
	return slices.ContainsFunc(s.volumes, func(v *volume) bool { return v.path == path && v.onMedium != v.size })
}

// unlock gives the plaintext of an encrypted volume.
func (o Opener) unlock(f io.ReaderAt, size int64, name string) (io.ReaderAt, int64, error) {
	length, err := agefile.Look(f, size)
	var damaged *agefile.DamagedError
	if errors.As(err, &damaged) {
		return nil, 0, streamDamaged(name, damaged)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", name, err)
	}
	identities, err := o.identities(name)
	var locked *problem.Problem
	if errors.As(err, &locked) && locked.Code() == codeEncrypted {
		return nil, 0, locked.With(cutOff(length)...)
	}
	if err != nil {
		return nil, 0, err
	}
	plain, err := agefile.Open(f, size, identities...)
	var others *agefile.ForOthersError
	switch {
	case errors.As(err, &others):
		return nil, 0, problem.New(codeForOthers, "%s is encrypted for others", name).
			With(fmt.Sprintf("recipients:  %d", others.Recipients)).With(cutOff(length)...).
			Hint("have it exported for this gate; if it was, its header is damaged: copy it from its original again")
	case errors.As(err, &damaged):
		return nil, 0, streamDamaged(name, damaged)
	case err != nil:
		return nil, 0, fmt.Errorf("read %s: %w", name, err)
	}
	return &unlocked{plain, name}, plain.Size(), nil
}

// cutOff says of a stream that cannot be opened here that it is no whole volume,
// where its length shows that.
func cutOff(plain int64) []string {
	if plain > 0 && plain%blockSize == 0 {
		return nil
	}
	return []string{"found:  a length that no volume has: it was cut off, or is something else"}
}

// unlocked is the plaintext of an encrypted volume, whose errors name it.
type unlocked struct {
	*agefile.Reader
	name string
}

// ReadAt implements io.ReaderAt.
func (u *unlocked) ReadAt(p []byte, at int64) (int, error) {
	n, err := u.Reader.ReadAt(p, at)
	var damaged *agefile.DamagedError
	if errors.As(err, &damaged) {
		return n, streamDamaged(u.name, damaged)
	}
	return n, err
}

// streamDamage is damage of an encrypted volume as a stream: what is in it is
// not known.
type streamDamage struct{ *DamagedError }

func (e *streamDamage) Unwrap() error { return e.DamagedError }

func streamDamaged(name string, d *agefile.DamagedError) error {
	return &streamDamage{&DamagedError{Volume: name, Offset: d.Offset, What: "as an encrypted file: " + d.What}}
}

// isStreamDamage tells what needs no further words about where it was met.
func isStreamDamage(err error) bool {
	var damage *streamDamage
	return errors.As(err, &damage)
}

// misnamed adds to the refusal of a file that it is not what its name says.
func misnamed(p *problem.Problem, name string) *problem.Problem {
	if !strings.HasSuffix(name, EncryptedSuffix) {
		return p
	}
	return p.With("name:  an encrypted volume, whose first line would be age-encryption.org/v1")
}
