package bundle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// medium is a volume on a medium that is read: its bytes, and how it fails.
type medium struct {
	name   string
	data   []byte
	size   int64 // as it was when it was opened
	err    error // of a read that touches badAt, and of all after goneAfter reads
	badAt  int64
	reads  int
	goneAt int // number of the read from which on there is no medium; 0 for never
	failed bool
	mu     sync.Mutex // several cores read
}

func (m *medium) ReadAt(p []byte, at int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	if m.err != nil && (m.goneAt > 0 && m.reads >= m.goneAt || m.goneAt == 0 && at <= m.badAt && m.badAt < at+int64(len(p))) {
		m.failed = true
		return 0, m.err
	}
	return bytes.NewReader(m.data).ReadAt(p, at)
}

// media are the volumes of the set, some of them with other bytes.
func (v *twoVolumes) media(exchanged map[string][]byte) []*medium {
	var list []*medium
	for _, name := range v.names {
		b := v.bytes[name]
		if other, ok := exchanged[name]; ok {
			b = other
		}
		list = append(list, &medium{name: name, data: b, size: int64(len(b))})
	}
	return list
}

// open opens volumes and vouches for them, together.
func (v *twoVolumes) open(media ...*medium) (*bundle.Bundle, error) {
	var all *bundle.Sealed
	for _, m := range media {
		sealed, err := bundle.Open(m, m.size, m.name)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = sealed
		} else if all, err = all.Join(sealed); err != nil {
			return nil, err
		}
	}
	trust := v.Trust
	if head := all.Head(); !slices.EqualFunc(head.Roots, v.Head.Roots, sameDocument) || !sameDocument(head.Revocations, v.Head.Revocations) {
		var err error
		if trust, err = all.Trust(trust, testkit.Noon()); err != nil {
			return nil, err
		}
	}
	return all.Verify(trust, testkit.Noon())
}

func (v *twoVolumes) check(t *testing.T, media ...*medium) error {
	b, err := v.open(media...)
	if err != nil {
		return err
	}
	return b.Check(t.Context(), nil)
}

// checkPlaced makes sure that damage is told with all that cli.md asks for.
func checkPlaced(t *testing.T, what string, err error, volume string, at int64) {
	t.Helper()
	var damaged *bundle.DamagedError
	switch {
	case problem.CodeOf(err) == "":
		t.Fatalf("%s: %v", what, err)
	case !errors.As(err, &damaged):
	case damaged.Volume != volume || damaged.Offset > at || damaged.What == "" || damaged.Want == "" || damaged.Got == "" || damaged.Want == damaged.Got:
		t.Errorf("%s: %+v", what, damaged)
	}
}

// TestEveryFlippedByteOfASet: in each of two volumes, a byte that is another one
// is refused, and where it is called damage, it is told where and what.
func TestEveryFlippedByteOfASet(t *testing.T) {
	v := newTwoVolumes(t)
	for i, name := range v.names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flipped := bytes.Clone(v.bytes[name])
			media := v.media(map[string][]byte{name: flipped})
			if err := v.check(t, media...); err != nil {
				t.Fatal(err)
			}
			for at := 0; at < len(flipped); at += flipStep {
				flipped[at] ^= 1 << (at % 8)
				what := fmt.Sprintf("byte %d of %d flipped", at, len(flipped))
				checkPlaced(t, what, v.check(t, media[i]), name, int64(at))
				if at%(37*flipStep) == 0 {
					checkPlaced(t, what+", both together", v.check(t, media...), name, int64(at))
				}
				flipped[at] ^= 1 << (at % 8)
			}
		})
	}
}

// TestEveryTruncationOfASet cuts each volume around every block: it is refused
// with the place, and the other volume is as good as before.
func TestEveryTruncationOfASet(t *testing.T) {
	v := newTwoVolumes(t)
	for i, name := range v.names {
		for _, n := range around(len(v.bytes[name])) {
			cut := v.bytes[name][:n]
			media := v.media(map[string][]byte{name: cut})
			err := v.check(t, media[i])
			checkPlaced(t, fmt.Sprintf("%s cut to %d bytes", name, n), err, name, int64(n))
			if code := problem.CodeOf(err); code != "volume/damaged" && code != "volume/not-a-bundle" {
				t.Errorf("%s cut to %d bytes: %v", name, n, err)
			}
		}
		dir := t.TempDir()
		for other, b := range v.bytes {
			if other == name {
				b = b[:len(b)-block]
			}
			if err := os.WriteFile(filepath.Join(dir, other), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := bundle.Find(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("a volume that lacks its end is not shown: %v", err)
		}
		if err := onlyBundle(t, v.Forged, filepath.Join(dir, v.names[1-i])).Check(t.Context(), nil); err != nil {
			t.Errorf("the sound one beside it: %v", err)
		}
	}
}

// forged gives a volume of the set with right sums whose entry was changed.
func (v *twoVolumes) forged(t *testing.T, name, entry string, change func([]byte) []byte) []byte {
	t.Helper()
	entries := entriesOf(t, v.bytes[name])
	i := slices.IndexFunc(entries, func(e rawEntry) bool { return strings.HasPrefix(e.name, entry) })
	entries[i].data = change(bytes.Clone(entries[i].data))
	b := assemble(entries)
	if bytes.Equal(b, v.bytes[name]) {
		t.Fatalf("%s of %s did not change", entry, name)
	}
	return b
}

func replaced(from, to string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.Replace(b, []byte(from), []byte(to), 1) }
}

// TestForgedIndexAndPlanInASet: genuine head, right sums, and an index.json or a
// volume.json that says something else.
func TestForgedIndexAndPlanInASet(t *testing.T) {
	v := newTwoVolumes(t)
	other := spreadBundle(t, 2000, 701)
	otherSet := written(t, other, t.TempDir(), bundle.SetOptions{})
	foreign, err := os.ReadFile(otherSet[0])
	if err != nil {
		t.Fatal(err)
	}
	entry := func(volume []byte, name string) []byte {
		entries := entriesOf(t, volume)
		return entries[slices.IndexFunc(entries, func(e rawEntry) bool { return e.name == name })].data
	}
	for i, name := range v.names {
		sibling := v.bytes[v.names[1-i]]
		for what, c := range map[string]struct {
			entry, code string
			change      func([]byte) []byte
		}{
			"an index with another name":        {"index.json", "volume/damaged", replaced("spread_1.0", "spread_1.1")},
			"an index without an artifact":      {"index.json", "volume/damaged", func([]byte) []byte { return []byte(`{"manifests":[],"schemaVersion":2}`) }},
			"the index of another bundle":       {"index.json", "volume/damaged", func([]byte) []byte { return entry(foreign, "index.json") }},
			"the plan of its sibling":           {"volume.json", "volume/damaged", func([]byte) []byte { return entry(sibling, "volume.json") }},
			"the plan of another bundle":        {"volume.json", "volume/foreign", func([]byte) []byte { return entry(foreign, "volume.json") }},
			"a plan of three volumes":           {"volume.json", "volume/damaged", replaced(`"count":2`, `"count":3`)},
			"a plan with a longer piece":        {"volume.json", "volume/damaged", replaced(`"length":`, `"length":1`)},
			"a plan with a piece elsewhere":     {"volume.json", "volume/damaged", replaced(`"offset":0`, `"offset":512`)},
			"a plan with a piece in the future": {"volume.json", "volume/damaged", replaced(`"volume":1`, `"volume":2`)},
			"a plan of another set":             {"volume.json", "volume/damaged", replaced(`"set":"sha256:`, `"set":"sha256:0`)},
		} {
			forged := v.forged(t, name, c.entry, c.change)
			media := v.media(map[string][]byte{name: forged})
			for _, together := range [][]*medium{{media[i]}, media} {
				err := v.check(t, together...)
				if problem.CodeOf(err) != c.code {
					t.Errorf("%s with %s: %v, want %s", name, what, err, c.code)
				}
				checkPlaced(t, what, err, name, int64(len(forged)))
			}
		}
	}
}

// TestReencodedSignatureInASet: a signature in another encoding than the one
// form is refused in a volume, and counts for nothing beside it.
func TestReencodedSignatureInASet(t *testing.T) {
	v := newTwoVolumes(t)
	spaced := replaced(`","`, `", "`)
	for i, name := range v.names {
		media := v.media(map[string][]byte{name: v.forged(t, name, "signatures/", spaced)})
		for _, together := range [][]*medium{{media[i]}, media} {
			if err := v.check(t, together...); problem.CodeOf(err) == "" {
				t.Errorf("%s, %d volumes: %v", name, len(together), err)
			}
		}
	}
	good := v.Head.Signatures[0]
	v.Head.Signatures = nil
	dir := t.TempDir()
	paths := written(t, v.Forged, dir, bundle.SetOptions{Limits: []int64{1 << 20}})
	beside := filepath.Join(dir, "plant-7-000001."+good.Key+".sigstore.json")
	for want, b := range map[string][]byte{"signing/not-genuine": spaced(bytes.Clone(good.Bytes)), "": good.Bytes} {
		if err := os.WriteFile(beside, b, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := bundle.Find(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		_, err = found.Bundles[0].Verify(v.Trust, testkit.Noon())
		if problem.CodeOf(err) != want {
			t.Errorf("beside the volume: %v, want %s", err, want)
		}
		if err := found.Bundles[0].Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReadErrorsOfASet: a block that cannot be read is no damage that anybody
// could have made: it is told with volume, entry and offset, whether volumes are
// opened, checked, copied or joined.
func TestReadErrorsOfASet(t *testing.T) {
	v := newTwoVolumes(t)
	for i, name := range v.names {
		at := 0
		for _, e := range entriesOf(t, v.bytes[name]) {
			for _, bad := range []int{at, at + block} { // header, data
				for verb, read := range map[string]func(*testing.T, ...*medium) error{"check": v.check, "copy": v.copied, "join": v.joined} {
					media := v.media(nil)
					media[i].err, media[i].badAt = syscall.EIO, int64(bad)
					err := read(t, media...)
					if err == nil && !media[i].failed && verb != "check" {
						continue // metadata that the other volume has too
					}
					var unreadable *bundle.UnreadableError
					if !errors.As(err, &unreadable) || !errors.Is(err, syscall.EIO) || problem.CodeOf(err) != "volume/unreadable" {
						t.Errorf("%s of %s, byte %d: %v", verb, name, bad, err)
						continue
					}
					if unreadable.Volume != name || unreadable.Offset > int64(bad) || unreadable.Remedy() == "" {
						t.Errorf("%s of %s, byte %d: %+v", verb, name, bad, unreadable)
					}
					if bad > at && strings.HasPrefix(e.name, "blobs/") && unreadable.Entry != e.name {
						t.Errorf("%s of %s, byte %d: in %q, want %q", verb, name, bad, unreadable.Entry, e.name)
					}
				}
			}
			at += block + (len(e.data)+block-1)/block*block
		}
	}
}

// copied copies volumes into a new store, and makes sure that nothing wrong has
// a name there.
func (v *twoVolumes) copied(t *testing.T, media ...*medium) error {
	t.Helper()
	b, err := v.open(media...)
	if err != nil {
		return err
	}
	store, err := cas.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	err = b.CopyTo(t.Context(), store, bundle.CopyOptions{})
	for _, blob := range v.Manifest.Blobs {
		if there, _ := store.Has(blob.Digest, blob.Size); there {
			if _, err := store.ReadAll(blob.Digest, blob.Size); err != nil {
				t.Errorf("in the store: %v", err)
			}
		}
	}
	return err
}

// joined writes volumes as one.
func (v *twoVolumes) joined(t *testing.T, media ...*medium) error {
	t.Helper()
	b, err := v.open(media...)
	if err != nil {
		return err
	}
	set, err := bundle.PlanSet(v.Head, bundle.SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err = set.WriteTo(t.Context(), dir, arrivedBlobs{b}, bundle.SetWriteOptions{})
	if err != nil {
		assertEmpty(t, dir)
	}
	return err
}

// arrivedBlobs is the content of volumes.
type arrivedBlobs struct{ b *bundle.Bundle }

func (c arrivedBlobs) Has(d cas.Digest) (bool, error) {
	_, ok := c.b.Manifest().Blob(d)
	return ok, nil
}

func (c arrivedBlobs) Open(d cas.Digest) (io.ReadCloser, error) {
	return c.b.Open(context.Background(), d)
}

// TestMediumTakenAwayWhileRead: from some read on there is no medium any more,
// or the file has become shorter. Whoever reads ends with an error, and takes
// nothing for whole.
func TestMediumTakenAwayWhileRead(t *testing.T) {
	v := newTwoVolumes(t)
	for i, name := range v.names {
		whole := v.media(nil)
		if err := v.check(t, whole...); err != nil {
			t.Fatal(err)
		}
		for nth := 1; nth <= whole[i].reads; nth += 3 {
			for verb, read := range map[string]func(*testing.T, ...*medium) error{"check": v.check, "copy": v.copied, "join": v.joined} {
				media := v.media(nil)
				media[i].err, media[i].goneAt = syscall.ENODEV, nth
				err := read(t, media...)
				if media[i].reads < nth {
					continue // it does not read as often
				}
				if problem.CodeOf(err) != "volume/unreadable" || !errors.Is(err, syscall.ENODEV) {
					t.Errorf("%s, %s gone at read %d: %v", verb, name, nth, err)
				}
			}
		}
		for n := block; n < len(v.bytes[name]); n += 5*block + 77 {
			for verb, read := range map[string]func(*testing.T, ...*medium) error{"check": v.check, "copy": v.copied, "join": v.joined} {
				media := v.media(map[string][]byte{name: v.bytes[name][:n]})
				media[i].size = int64(len(v.bytes[name])) // as it was a moment ago
				if err := read(t, media...); problem.CodeOf(err) == "" {
					t.Errorf("%s, %s cut to %d bytes after it was opened: %v", verb, name, n, err)
				}
			}
		}
	}
}

// TestFolderTakenAwayWhileOpen: what is open stays readable, and a folder that
// is gone is no folder without bundles.
func TestFolderTakenAwayWhileOpen(t *testing.T) {
	v := newTwoVolumes(t)
	dir := t.TempDir()
	for name, b := range v.bytes {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := onlyBundle(t, v.Forged, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := b.Check(t.Context(), nil); err != nil {
		t.Errorf("what is open: %v", err)
	}
	if _, err := bundle.Find(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is gone: %v", err)
	}
}
