package cas

import (
	"os"
	"syscall"
)

// startWriteback asks the kernel to begin writing a range. It is a hint: what
// makes a blob last is the Sync before its rename, so a refusal means nothing.
func startWriteback(f *os.File, offset, length int64) {
	const syncFileRangeWrite = 2 // SYNC_FILE_RANGE_WRITE
	_ = syscall.SyncFileRange(int(f.Fd()), offset, length, syncFileRangeWrite)
}
