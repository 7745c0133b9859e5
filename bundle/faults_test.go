package bundle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// twoVolumes is a small set of two volumes, and what they must be, by name.
type twoVolumes struct {
	*testkit.Forged
	set   *bundle.SetPlan
	names []string
	bytes map[string][]byte
}

func newTwoVolumes(t *testing.T) *twoVolumes {
	t.Helper()
	f := spreadBundle(t, 2000, 700)
	set, err := bundle.PlanSet(f.Head, bundle.SetOptions{Limits: []int64{base(t, f) + 2048, 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	if set.Count() != 2 {
		t.Fatalf("a set of %d volumes", set.Count())
	}
	v := &twoVolumes{Forged: f, set: set, bytes: map[string][]byte{}}
	dir := t.TempDir()
	written, err := set.WriteTo(t.Context(), dir, f.Content, bundle.SetWriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range written {
		name := filepath.Base(w.Path)
		v.names = append(v.names, name)
		if v.bytes[name], err = os.ReadFile(w.Path); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// write writes the volumes one by one, with an entry of the journal wherever
// there can be one.
func (v *twoVolumes) write(ctx context.Context, dir string, o bundle.WriteOptions) error {
	o.JournalEvery = 1
	for n := 1; n <= v.set.Count(); n++ {
		plan, err := v.set.Volume(n)
		if err != nil {
			return err
		}
		if _, err := plan.WriteTo(ctx, dir, v.Content, o); err != nil {
			return err
		}
	}
	return nil
}

// checkFolder makes sure that what stands under a final name is whole. It tells
// what else there is.
func (v *twoVolumes) checkFolder(t *testing.T, what, dir string) (others []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		want, final := v.bytes[e.Name()]
		if !final {
			others = append(others, e.Name())
			continue
		}
		if got, err := os.ReadFile(filepath.Join(dir, e.Name())); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %s is there and is not whole: %v", what, e.Name(), err)
		}
	}
	return others
}

// checkAgain makes sure that the same on a sound medium ends well.
func (v *twoVolumes) checkAgain(t *testing.T, what, dir string) {
	t.Helper()
	if err := v.write(t.Context(), dir, new(bundle.Faulty).On(bundle.WriteOptions{})); err != nil {
		t.Errorf("%s, and again on a sound medium: %v", what, err)
	}
	if others := v.checkFolder(t, what, dir); len(others) > 0 {
		t.Errorf("%s: left in the end: %v", what, others)
	}
	for _, name := range v.names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// around lists the places at a multiple of 512 bytes, and those beside them.
func around(size int) []int {
	var places []int
	for at := 0; at <= size; at += block {
		for _, n := range []int{at - 1, at, at + 1} {
			if n >= 0 && n < size {
				places = append(places, n)
			}
		}
	}
	return places
}

// TestFullDiskAtEveryBlockOfASet: a medium that takes so many bytes and no more
// is left with whole volumes alone, and with room again the set is the same.
func TestFullDiskAtEveryBlockOfASet(t *testing.T) {
	v := newTwoVolumes(t)
	total := len(v.bytes[v.names[0]]) + len(v.bytes[v.names[1]])
	dir := t.TempDir()
	for i, at := range around(total) {
		medium := &bundle.Faulty{Err: syscall.ENOSPC, At: int64(at)}
		err := v.write(t.Context(), dir, medium.On(bundle.WriteOptions{NoReadback: i%2 == 0}))
		what := fmt.Sprintf("full after %d of %d bytes", at, total)
		if problem.CodeOf(err) != "medium/full" || !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%s: %v", what, err)
		}
		if others := v.checkFolder(t, what, dir); len(others) > 0 {
			t.Errorf("%s: left %v", what, others)
		}
		_, err = os.Stat(filepath.Join(dir, v.names[0]))
		if first := at >= len(v.bytes[v.names[0]]); first != (err == nil) {
			t.Errorf("%s: the first volume: %v", what, err)
		}
		if i%20 == 0 {
			v.checkAgain(t, what, dir)
		}
		for _, name := range v.names {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMediumFailsAtEveryStep: the last flush, the journal, the name, the folder,
// the reading back: whatever fails, nothing is half named, and the next run ends
// with the same bytes.
func TestMediumFailsAtEveryStep(t *testing.T) {
	v := newTwoVolumes(t)
	for _, c := range []struct {
		err  error
		code string
	}{{syscall.ENOSPC, "medium/full"}, {syscall.EIO, "medium/lost"}, {syscall.ENODEV, "medium/lost"}} {
		for _, step := range []string{"sync", "journal", "close", "rename", "renamed", "folder", "read"} {
			want := c.code
			if step == "read" && c.err == syscall.ENOSPC {
				continue // no medium says so
			}
			if step == "read" {
				want = "medium/readback"
			}
			tried := 0
			for nth := 1; ; nth++ {
				medium := &bundle.Faulty{Err: c.err, Step: step, Nth: nth}
				dir := t.TempDir()
				err := v.write(t.Context(), dir, medium.On(bundle.WriteOptions{}))
				if medium.Calls[step] < nth {
					break
				}
				tried++
				what := fmt.Sprintf("%v at %s number %d", c.err, step, nth)
				if problem.CodeOf(err) != want || !errors.Is(err, c.err) {
					t.Errorf("%s: %v", what, err)
				}
				for _, left := range v.checkFolder(t, what, dir) {
					if want != "medium/lost" || !strings.HasSuffix(left, ".partial") && !strings.HasSuffix(left, ".journal") {
						t.Errorf("%s: left %s", what, left)
					}
				}
				v.checkAgain(t, what, dir)
				if step == "read" && nth > 3 {
					break // every block is read
				}
			}
			if tried < 2 {
				t.Errorf("%s comes only %d times", step, tried)
			}
		}
	}
}

// TestMediumTakenAwayWhileWritten: the folder is gone in the middle of the second
// volume, and there again.
func TestMediumTakenAwayWhileWritten(t *testing.T) {
	v := newTwoVolumes(t)
	parent := t.TempDir()
	dir, away := filepath.Join(parent, "medium"), filepath.Join(parent, "away")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	begin := func(what string, _ int64) (func(int64), func(error)) {
		return func(int64) {
			if what == "write "+v.names[1] {
				_ = os.Rename(dir, away) // the first time it is there
			}
		}, func(error) {}
	}
	_, err := v.set.WriteTo(t.Context(), dir, v.Content, bundle.SetWriteOptions{Begin: begin})
	if problem.CodeOf(err) != "medium/lost" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	v.checkFolder(t, "there again", dir)
	before, err := os.Stat(filepath.Join(dir, v.names[0]))
	if err != nil {
		t.Fatal(err)
	}
	v.checkAgain(t, "there again", dir)
	if after, err := os.Stat(filepath.Join(dir, v.names[0])); err != nil || !os.SameFile(before, after) {
		t.Errorf("the first volume was written once more: %v", err)
	}
}

// TestWhatStandsIsNotWrittenAgain: a set that is there needs no room; a volume of
// it that rotted is written anew.
func TestWhatStandsIsNotWrittenAgain(t *testing.T) {
	v := newTwoVolumes(t)
	dir := t.TempDir()
	if err := v.write(t.Context(), dir, bundle.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	full := &bundle.Faulty{Err: syscall.ENOSPC}
	full.Room.Free = 1
	var steps []string
	begin := func(what string, _ int64) (func(int64), func(error)) {
		steps = append(steps, what)
		return func(int64) {}, func(error) {}
	}
	if _, err := v.set.WriteTo(t.Context(), dir, v.Content, full.OnSet(bundle.SetWriteOptions{Begin: begin})); err != nil {
		t.Errorf("a set that is there: %v", err)
	}
	if want := []string{"check " + v.names[0], "check " + v.names[1]}; !slices.Equal(steps, want) {
		t.Errorf("it was %q", steps)
	}
	for at := range v.bytes[v.names[1]] {
		if at%701 != 0 {
			continue
		}
		rotten := bytes.Clone(v.bytes[v.names[1]])
		rotten[at] ^= 1
		path := filepath.Join(dir, v.names[1])
		if err := os.WriteFile(path, rotten, 0o644); err != nil {
			t.Fatal(err)
		}
		v.checkAgain(t, fmt.Sprintf("byte %d rotted", at), dir)
	}
}

// TestRoomIsCheckedBeforeAnyVolume: whatever the medium can never take, or has no
// room for, is found before the first byte, with numbers.
func TestRoomIsCheckedBeforeAnyVolume(t *testing.T) {
	v := newTwoVolumes(t)
	first, second := int64(len(v.bytes[v.names[0]])), int64(len(v.bytes[v.names[1]]))
	larger := max(first, second)
	name := int64(len(v.names[0]) + len(".journal.partial"))
	for _, c := range []struct {
		free, file, name int64
		code             string
		numbers          []int64
	}{
		{first + second - 1, 0, 0, "medium/full", []int64{first + second, first + second - 1}},
		{1, 0, 0, "medium/full", []int64{first + second, 1}},
		{0, larger - 1, 0, "medium/file-too-large", []int64{larger, larger - 1}},
		{0, 0, name - 1, "medium/name-too-long", []int64{name, name - 1}},
		{0, larger, name, "", nil},
	} {
		medium := &bundle.Faulty{}
		medium.Room.Free, medium.Room.File, medium.Room.Name = c.free, c.file, c.name
		dir := t.TempDir()
		_, err := v.set.WriteTo(t.Context(), dir, v.Content, medium.OnSet(bundle.SetWriteOptions{}))
		if problem.CodeOf(err) != c.code {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if c.code == "" {
			continue
		}
		var met interface{ Evidence() []string }
		if !errors.As(err, &met) {
			t.Fatal(err)
		}
		for i, line := range met.Evidence() {
			if !strings.HasSuffix(line, fmt.Sprintf(" %d bytes", c.numbers[i])) {
				t.Errorf("%s says %q, want %v", c.code, met.Evidence(), c.numbers)
			}
		}
		assertEmpty(t, dir)
	}
}

// TestTwoExportsIntoOneFolder: a second one meets the first in every volume, is
// refused, and harms nothing.
func TestTwoExportsIntoOneFolder(t *testing.T) {
	v := newTwoVolumes(t)
	dir := t.TempDir()
	met := 0
	begin := func(what string, _ int64) (func(int64), func(error)) {
		once := true
		return func(int64) {
			if !once || !strings.HasPrefix(what, "write ") && !strings.HasPrefix(what, "read back ") {
				return
			}
			once = false
			met++
			if _, err := v.set.WriteTo(t.Context(), dir, v.Content, bundle.SetWriteOptions{}); problem.CodeOf(err) != "medium/busy" {
				t.Errorf("while %s is on: %v", what, err)
			}
		}, func(error) {}
	}
	if _, err := v.set.WriteTo(t.Context(), dir, v.Content, bundle.SetWriteOptions{Begin: begin}); err != nil {
		t.Fatal(err)
	}
	if met != 4 {
		t.Errorf("they met %d times", met)
	}
	if others := v.checkFolder(t, "in the end", dir); len(others) > 0 {
		t.Errorf("left %v", others)
	}
}

// TestNamesSuitEveryFileSystem: FAT, exFAT and NTFS take every name that a set
// gives a file, and a new one beside it.
func TestNamesSuitEveryFileSystem(t *testing.T) {
	reserved := []string{"con", "prn", "aux", "nul", "com1", "com9", "lpt1", "lpt9"}
	for _, channel := range append(reserved, "a", strings.Repeat("x", 40), "a-b") {
		for _, epoch := range []int64{1, 1 << 31} {
			stem := bundle.BaseName(&bundle.Manifest{Channel: channel, Epoch: epoch, Serial: 1 << 31})
			for _, tail := range []string{".tar", ".v9999.tar", ".01234567.v9999.tar", ".packhof.json", ".0123456789abcdef.sigstore.json"} {
				for _, suffix := range []string{"", ".partial", ".journal", ".journal.partial"} {
					name := stem + tail + suffix
					dosStem, _, _ := strings.Cut(name, ".")
					if len(name) > 143 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || strings.HasSuffix(name, ".") || slices.Contains(reserved, dosStem) {
						t.Errorf("%s is no name for every file system", name)
					}
				}
			}
		}
	}
}
