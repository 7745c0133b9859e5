package bundle

import (
	"cmp"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// FreeSpace is what an unprivileged user may still write to the file system of
// dir, in bytes.
func FreeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("ask for the free space of %s: %w", dir, err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// CheckWritable finds before any work that dir is none that may be written to.
func CheckWritable(dir string) error {
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("%s cannot be written to: %w", dir, err)
	}
	return nil
}

// room asks the file system of dir, and the limits of this process.
func (realMedium) room(dir string) (r room, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return r, fmt.Errorf("ask for the file system of %s: %w", dir, err)
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &own); err != nil {
		return r, fmt.Errorf("ask for the limits of this process: %w", err)
	}
	r = room{free: int64(st.Bavail) * st.Bsize, file: limitOf(int64(st.Type)), name: cmp.Or(st.Namelen, 255)}
	if own.Cur < uint64(r.file) {
		r.file, r.ulimit = int64(own.Cur), true
	}
	return r, nil
}

// limitOf knows the file systems of media that have a limit people meet.
func limitOf(kind int64) int64 {
	if kind == unix.MSDOS_SUPER_MAGIC { // FAT12, FAT16, FAT32
		return 4<<30 - 1
	}
	return math.MaxInt64
}

// startWriteback is a hint; the Sync at the end is what counts.
func startWriteback(f *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}

// dropCache makes the next read come from the medium where the kernel agrees.
func dropCache(f *os.File) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
