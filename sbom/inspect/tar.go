package inspect

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
)

// tar looks at an archive entry by entry. stored is the archive where it lies
// as it is, so that its entries can be looked at in place; nil if r is all
// there is.
func (s *scan) tar(r io.Reader, stored *source, at place) error {
	t := tar.NewReader(r)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return s.tarEnd(r, at)
		}
		if err != nil {
			return err
		}
		if err := s.enter(); err != nil {
			return err
		}
		if err := s.tarEntry(t, h, r, stored, at); err != nil {
			return err
		}
	}
}

func (s *scan) tarEntry(t *tar.Reader, h *tar.Header, r io.Reader, stored *source, at place) error {
	if leadsOut(h.Name) {
		s.find(at, CodeArchivePath, "%.200q", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
	case tar.TypeDir:
		return nil
	case tar.TypeSymlink, tar.TypeLink:
		target := h.Linkname
		if h.Typeflag == tar.TypeSymlink {
			target = path.Join(path.Dir(h.Name), h.Linkname)
		}
		if leadsOut(target) || leadsOut(h.Linkname) && h.Linkname[0] == '/' {
			s.find(at, CodeArchiveSpecial, "the link %.100q leads to %.100q", h.Name, h.Linkname)
		}
		return nil
	default:
		s.find(at, CodeArchiveSpecial, "the entry %.200q is of the type %q", h.Name, h.Typeflag)
		return nil
	}
	within := at.inside(h.Name)
	if within.depth > s.limits.Depth {
		s.unread(within, CodeArchiveLimit, "archives in archives, deeper than %d", s.limits.Depth)
		return nil
	}
	sparse := h.Typeflag == tar.TypeGNUSparse || len(h.PAXRecords["GNU.sparse.major"]) > 0 || len(h.PAXRecords["GNU.sparse.map"]) > 0
	if seeker, ok := r.(io.Seeker); ok && stored != nil && !sparse {
		off, err := seeker.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		part, err := stored.part(off, h.Size)
		if err != nil {
			return err
		}
		_, err = s.look(part, within)
		return err
	}
	_, _, err := s.lookStream(t, h.Size, within)
	return err
}

// mostPadding is how much of what follows the end of an archive is looked at.
const mostPadding = 1 << 20

// tarEnd looks for something behind the two blocks that end an archive: other
// programs than ours may read on.
func (s *scan) tarEnd(r io.Reader, at place) error {
	rest, err := io.ReadAll(io.LimitReader(r, mostPadding))
	if err != nil {
		return fmt.Errorf("behind its end: %w", err)
	}
	if n := len(bytes.TrimLeft(rest, "\x00")); n > 0 {
		s.find(at, CodeTrailing, "after the end of the archive")
	}
	return nil
}
