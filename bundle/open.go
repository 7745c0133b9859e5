package bundle

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/packhof/packhof/internal/problem"
)

// Sealed is a bundle that has arrived. Nothing about it is proven; Claims is
// for display, and only Verify makes a *Bundle of it.
type Sealed struct {
	name    string // where it lies, for messages
	head    Head
	content Content     // nil when the content is in volumes
	volumes []*volume   // none when the content is kept elsewhere
	spare   []Signature // that name a key of which the head has another, or had no room
}

// OpenSealed makes a Sealed of a head and content kept elsewhere.
func OpenSealed(name string, h Head, content Content) *Sealed {
	sortHead(&h)
	return &Sealed{name: name, head: h, content: content}
}

// volume is one opened volume file.
type volume struct {
	name   string
	path   string // empty when it is no file of ours
	file   io.ReaderAt
	closer io.Closer
	size   int64
	// onMedium is the size of the file; size is that of the volume in it.
	onMedium int64
	entries  []entry
	head     Head        // as it stands in this volume
	info     *VolumeInfo // nil until its manifest has been vouched for
	found    error       // what is wrong with it as a file, when its head could be read all the same
}

// OpenFile is Opener.OpenFile for a volume in the clear.
func OpenFile(path string) (*Sealed, error) { return Opener{}.OpenFile(path) }

// Open is OpenFile for something that is already open and in the clear; name is
// for messages.
func Open(r io.ReaderAt, size int64, name string) (*Sealed, error) {
	v := &volume{name: name, size: size, onMedium: size}
	v.file = &named{r, v}
	v.entries, v.found = listEntries(v.file, size, name)
	if len(v.entries) == 0 || v.entries[0].name != nameManifest {
		return nil, notABundle(name, v)
	}
	if err := v.readHead(); err != nil {
		return nil, err
	}
	if err := v.checkHead(); err != nil {
		return nil, err
	}
	head := v.head
	head.Signatures = slices.Clone(head.Signatures) // others come to these
	return &Sealed{name: name, volumes: []*volume{v}, head: head}, v.found
}

// entry is the one of this name.
func (v *volume) entry(name string) (entry, bool) {
	if last := len(v.entries) - 1; last >= 0 && v.entries[last].name == name {
		return v.entries[last], true
	}
	i := slices.IndexFunc(v.entries, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return v.entries[i], true
}

func notABundle(name string, v *volume) error {
	var unreadable *UnreadableError
	if v.found != nil && (len(v.entries) > 0 || isStreamDamage(v.found)) || errors.As(v.found, &unreadable) {
		return v.found
	}
	p := misnamed(problem.New("volume/not-a-bundle", "%s is not a bundle", name), name).
		Hint("a bundle is a file such as plant-7-000042.tar, written by  packhof export")
	if v.found != nil {
		p = p.With("found:  " + v.found.Error())
	}
	return p
}

// Close closes the files, if OpenFile opened any.
func (s *Sealed) Close() error {
	var errs []error
	for _, v := range s.volumes {
		if v.closer != nil {
			errs = append(errs, v.closer.Close())
		}
	}
	return errors.Join(errs...)
}

// Head gives the head as it arrived.
func (s *Sealed) Head() Head { return s.head }

// Name is where the bundle lies: its file name.
func (s *Sealed) Name() string { return s.name }

// Paths are the files of its volumes, as they were named or found.
func (s *Sealed) Paths() []string {
	paths := make([]string, len(s.volumes))
	for i, v := range s.volumes {
		paths[i] = v.path
	}
	return paths
}

func (v *volume) readHead() error {
	for _, e := range v.entries {
		limit, inHead := limitFor(e.name)
		if !inHead {
			break
		}
		if e.size > limit {
			return &DamagedError{Volume: v.name, Entry: e.name, Offset: e.offset, What: fmt.Sprintf("it has %d bytes, more than the %d allowed", e.size, limit),
				Want: fmt.Sprintf("at most %d bytes", limit), Got: fmt.Sprintf("%d bytes", e.size)}
		}
		if e.name == nameVolume || e.name == nameLayout || e.name == nameIndex {
			continue
		}
		data, err := v.read(e)
		if err != nil {
			return err
		}
		if err := v.head.add(headEntry{e.name, data}); err != nil {
			return err
		}
	}
	return nil
}

// checkHead tells a head that the medium has spoilt from one that somebody has
// made: manifest, trust documents and signatures against the volume's own
// SHA256SUMS. Where that is none it says nothing, and Check will.
func (v *volume) checkHead() error {
	if v.found != nil {
		return nil
	}
	listed, sums, err := v.listedSums()
	var unreadable *UnreadableError
	if errors.As(err, &unreadable) {
		return err
	} else if err != nil {
		return nil
	}
	for i, e := range v.head.entries() {
		if i >= len(listed) || listed[i].name != e.name {
			return nil // they are in another order than the one that there is
		}
		if got := digestOf(e.data); got != sums[i] {
			return v.mismatch(listed[i], sums[i], got)
		}
	}
	return nil
}

func (v *volume) read(e entry) ([]byte, error) {
	data := make([]byte, e.size)
	n, err := v.file.ReadAt(data, e.offset)
	if int64(n) == e.size {
		return data, nil
	}
	if err == io.EOF {
		return nil, endsWithin(v.name, e, e.offset+int64(n))
	}
	return nil, err
}
