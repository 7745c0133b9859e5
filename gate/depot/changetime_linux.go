package depot

import (
	"io/fs"
	"syscall"
)

// changeTime is when the inode changed last, in nanoseconds: unlike the time
// of modification, nobody can set it back.
func changeTime(info fs.FileInfo) int64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Ctim.Nano()
}
