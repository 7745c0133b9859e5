package bundle

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// journalSuffix is that of the journal beside a volume being written. It says
// how much of the .partial file is on the medium for certain, so that an
// interrupted export goes on there and ends with the same bytes.
const journalSuffix = ".journal"

const journalEvery = 256 << 20

const maxJournal = 4 << 20

// journal is what the file says.
type journal struct {
	Volume Digest `json:"volume"` // the identity of the plan
	Mark   mark   `json:"mark"`
}

// identity tells apart volumes whose bytes would differ.
func (p *VolumePlan) identity() Digest {
	var b []byte
	for _, e := range p.head {
		b = fmt.Appendf(b, "%s %s\n", cas.DigestOf(e.data), e.name)
	}
	return cas.DigestOf(b) // the blobs' entries follow from manifest and volume.json
}

// unfinished is a volume being written, or one that an export left behind.
type unfinished struct {
	path    string // the volume's own
	file    *os.File
	medium  medium
	through mediumFile // the file, as it is written
	mark    mark       // where to go on; zero at the beginning
	have    int64      // how much of the volume the file had, and takes no more room
	// journalled tells that what was written so far is worth going on with.
	journalled bool
	started    int64 // how much the disk has been told to begin with
	written    int64
}

func (u *unfinished) partial() string { return u.path + cas.PartialSuffix }

func (u *unfinished) journal() string { return u.path + journalSuffix }

// openUnfinished opens the partial file of a volume at the place that its
// journal names, or makes it anew. One writer has it at a time; a second gets
// medium/busy.
func openUnfinished(path string, plan *VolumePlan, m medium) (*unfinished, error) {
	u := &unfinished{path: path, medium: m}
	f, err := openOwn(u.partial())
	if errors.Is(err, fs.ErrNotExist) {
		f, err = cas.CreatePartial(path, 0o644)
	}
	if err != nil {
		return nil, err
	}
	u.file, u.through = f, m.through(f)
	if err := u.claim(plan); err != nil {
		return nil, errors.Join(err, cas.Unlock(f))
	}
	return u, nil
}

// openOwn opens a regular file that has no other name, and removes anything
// else that stands there: a link leads to somebody's file.
func openOwn(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.Mode().IsRegular() || !ok || stat.Nlink != 1 {
		return nil, fs.ErrNotExist // CreatePartial removes it
	}
	return os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
}

func (u *unfinished) claim(plan *VolumePlan) error {
	if err := unix.Flock(int(u.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return problem.New("medium/busy", "%s is being written by another packhof", u.path).Hint("wait until it has ended")
	}
	mine, err := u.file.Stat()
	if err != nil {
		return err
	}
	// Its writer may have given it its name, or removed it, before it was ours.
	if there, err := os.Lstat(u.partial()); err != nil || !os.SameFile(there, mine) {
		return problem.New("medium/busy", "%s was being written by another packhof a moment ago", u.path).Hint("run the same command again")
	}
	u.mark = u.remembered(plan, mine.Size())
	u.journalled = u.mark.Position > 0
	u.started, u.written, u.have = u.mark.Position, u.mark.Position, u.mark.Position
	if err := u.file.Truncate(u.mark.Position); err != nil {
		return err
	}
	_, err = u.file.Seek(u.mark.Position, io.SeekStart)
	return err
}

// remembered reads the journal. One that is about another volume, or about
// more than there is, is as good as none.
func (u *unfinished) remembered(plan *VolumePlan, size int64) mark {
	info, err := os.Lstat(u.journal())
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxJournal {
		return mark{}
	}
	b, err := os.ReadFile(u.journal())
	if err != nil {
		return mark{}
	}
	var j journal
	if json.Unmarshal(b, &j, json.RejectUnknownMembers(true)) != nil || j.Volume != plan.identity() || j.Mark.Position > size {
		return mark{}
	}
	if !plan.holds(&j.Mark) {
		return mark{}
	}
	return j.Mark
}

// holds tells whether writing can go on at a mark: it is where the plan has
// that byte of that entry, and knows the sums of all pieces before it.
func (p *VolumePlan) holds(m *mark) bool {
	if m.Entry < 0 || m.Entry > len(p.blobs) || m.Offset < 0 {
		return false
	}
	var at int64
	for _, e := range p.head {
		at += entrySpan(int64(len(e.data)))
	}
	for _, e := range p.blobs[:m.Entry] {
		at += entrySpan(e.Length)
		if _, known := m.Pieces[e.Entry]; !known && !e.whole() {
			return false
		}
	}
	if m.Offset == 0 {
		return at == m.Position
	}
	if m.Entry == len(p.blobs) {
		return false
	}
	next := p.blobs[m.Entry]
	_, err := savedHash(m.Hash)
	return err == nil && at+blockSize+m.Offset == m.Position && m.Offset < next.Length &&
		next.blob.Chunks != nil && (next.Offset+m.Offset)%ChunkSize == 0 && (len(m.Hash) > 0) == !next.whole()
}

// Write keeps the medium busy while it is being written to.
func (u *unfinished) Write(b []byte) (int, error) {
	n, err := u.through.Write(b)
	u.written += int64(n)
	if u.written-u.started >= steadyEvery {
		startWriteback(u.file, u.started, u.written-u.started)
		u.started = u.written
	}
	return n, fromMedium(err)
}

// reached writes the mark into the journal once enough has come since the last.
func (u *unfinished) reached(plan *VolumePlan, every int64) func(*mark) error {
	last, id := u.mark.Position, plan.identity()
	return func(m *mark) error {
		if m.Position-last < every {
			return nil
		}
		last = m.Position
		if err := u.through.Sync(); err != nil {
			return fromMedium(err)
		}
		b, err := json.Marshal(journal{Volume: id, Mark: *m})
		if err != nil {
			return err
		}
		if err := u.medium.note(u.journal(), b); err != nil {
			return fromMedium(err)
		}
		u.journalled = true
		return nil
	}
}

// drop leaves nothing behind. What is on a medium that was taken away stays there.
func (u *unfinished) drop() error {
	return errors.Join(removeUnlessGone(u.partial()), u.forget())
}

// forget removes the journal.
func (u *unfinished) forget() error { return removeUnlessGone(u.journal()) }

func removeUnlessGone(path string) error {
	if err := os.Remove(path); err != nil && !lost(fromMedium(err)) {
		return err
	}
	return nil
}

// finish gives the volume its name.
func (u *unfinished) finish() error {
	if err := u.medium.rename(u.partial(), u.path); err != nil {
		return err
	}
	return errors.Join(u.forget(), u.medium.syncDir(filepath.Dir(u.path)))
}
