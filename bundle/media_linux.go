package bundle

import (
	"fmt"
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

// startWriteback is a hint; the Sync at the end is what counts.
func startWriteback(f *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}

// dropCache makes the next read come from the medium where the kernel agrees.
func dropCache(f *os.File) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
