package bundle

import (
	"cmp"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Faulty is a medium with as much room as a test gives it, which fails where a
// test wants. The zero value is the real one.
type Faulty struct {
	Room struct{ Free, File, Name int64 } // 0: as the real one has

	Err  error // what it says when it fails
	Step string
	Nth  int   // fails at this call of Step, and at every one after it; from 1
	At   int64 // takes so many bytes, where Step is empty

	Calls map[string]int
	mu    sync.Mutex // of Calls: several cores read back
	taken int64
}

// On makes a write go to the medium.
func (f *Faulty) On(o WriteOptions) WriteOptions { o.medium = f; return o }

// OnSet does the same for a set.
func (f *Faulty) OnSet(o SetWriteOptions) SetWriteOptions { o.medium = f; return o }

func (f *Faulty) call(step string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Calls == nil {
		f.Calls = map[string]int{}
	}
	f.Calls[step]++
	if f.Err != nil && f.Step == step && f.Calls[step] >= f.Nth {
		return f.Err
	}
	return nil
}

func (f *Faulty) room(dir string) (room, error) {
	r, err := realMedium{}.room(dir)
	r.free, r.file, r.name = cmp.Or(f.Room.Free, r.free), cmp.Or(f.Room.File, r.file), cmp.Or(f.Room.Name, r.name)
	return r, err
}

func (f *Faulty) through(file *os.File) mediumFile { return &faultyFile{file, f} }

func (f *Faulty) rename(from, to string) error {
	if err := f.call("rename"); err != nil {
		return err
	}
	return cmp.Or(realMedium{}.rename(from, to), f.call("renamed"))
}

func (f *Faulty) syncDir(string) error { return f.call("folder") }

func (f *Faulty) note(path string, b []byte) error {
	if err := f.call("journal"); err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}

type faultyFile struct {
	*os.File
	medium *Faulty
}

func (f *faultyFile) Write(b []byte) (int, error) {
	left := len(b)
	if m := f.medium; m.Err != nil && m.Step == "" {
		left = int(min(int64(left), m.At-m.taken))
		m.taken += int64(left)
	}
	n, err := f.File.Write(b[:left])
	if err == nil && n < len(b) {
		err = f.medium.Err
	}
	return n, err
}

// Sync waits for no disk: whether bytes outlast the power no test can see.
func (f *faultyFile) Sync() error { return f.medium.call("sync") }

func (f *faultyFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.medium.call("read"); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
}

// Close closes the file all the same, as the system does.
func (f *faultyFile) Close() error {
	err := f.medium.call("close")
	return cmp.Or(err, f.File.Close())
}

var _ io.ReaderAt = (*faultyFile)(nil)

// TestLimitsOfFileSystems: FAT is known by its number, which is the same for all
// that the kernel calls so.
func TestLimitsOfFileSystems(t *testing.T) {
	const exfat, ntfs3, fuse, ext4 = 0x2011bab0, 0x7366746e, 0x65735546, 0xef53
	for kind, want := range map[int64]int64{
		unix.MSDOS_SUPER_MAGIC: 4<<30 - 1, exfat: math.MaxInt64, ntfs3: math.MaxInt64, fuse: math.MaxInt64, ext4: math.MaxInt64,
	} {
		if got := limitOf(kind); got != want {
			t.Errorf("the file system %#x takes files of %d bytes, want %d", kind, got, want)
		}
	}
	for _, c := range []struct {
		room room
		size int64
		want string
	}{
		{room{file: 4<<30 - 1, name: 255}, 4<<30 - 1, ""},
		{room{file: 4<<30 - 1, name: 255}, 4 << 30, "--volume-size 4294967295"},
		{room{file: 1 << 20, name: 255, ulimit: true}, 1<<20 + 1, "ulimit -f"},
		{room{file: 1 << 20, name: 12}, 1, "takes long names"},
	} {
		err := c.room.checkFile("/media/plant-7-000001.tar", c.size)
		if (err == nil) != (c.want == "") {
			t.Errorf("%+v: %v", c.room, err)
			continue
		}
		var met interface {
			Evidence() []string
			Remedy() string
		}
		if err != nil && (!errors.As(err, &met) || !strings.Contains(met.Remedy(), c.want) || !strings.HasPrefix(strings.Join(met.Evidence(), "\n"), "needed:  ")) {
			t.Errorf("%+v: %v, %v", c.room, met.Evidence(), met.Remedy())
		}
	}
}
