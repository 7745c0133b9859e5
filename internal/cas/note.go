package cas

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// maxKept is more than any note, or list of pieces, has, in bytes.
const maxKept = 64 << 20

// Note returns what SetNote kept under this name for the blob, and whether
// there is anything. A note that does not have its own checksum any more
// counts as absent: it can always be computed again.
func (s *Store) Note(name string, d Digest) ([]byte, bool, error) {
	b, err := ReadPlain(s.notePath(name, d), maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	sum, note, found := bytes.Cut(b, []byte("\n"))
	if !found || string(sum) != DigestOf(note).String() {
		return nil, false, nil
	}
	return note, true, nil
}

// SetNote keeps a small fact that was computed from the blob's bytes, such as
// another hash. The name is one path component of our own choosing.
func (s *Store) SetNote(name string, d Digest, note []byte) error {
	path := s.notePath(name, d)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.ingestDir(), "")
	if err != nil {
		return err
	}
	// Not synced: a note that a power cut tore lacks its checksum, and counts as
	// absent.
	_, err = f.Write(append([]byte(DigestOf(note).String()+"\n"), note...))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// EachNote calls use with every note that SetNote kept under this name, whatever
// the blob; notes that a power cut tore are left out. An error ends it.
func (s *Store) EachNote(name string, use func(note []byte) error) error {
	entries, err := os.ReadDir(filepath.Join(s.dir, "notes", name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		d, err := ParseHex(entry.Name())
		if err != nil {
			continue // nothing that Note would find
		}
		note, ok, err := s.Note(name, d)
		if err != nil {
			return err
		}
		if ok {
			if err := use(note); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) notePath(name string, d Digest) string {
	return filepath.Join(s.dir, "notes", name, d.Hex())
}
