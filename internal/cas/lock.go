package cas

import (
	"errors"
	"os"
	"syscall"
)

// Unlock ends the advisory lock on a file at once, and closes it. Closing alone
// would leave the lock to a child that is just being started and still has the
// file open.
func Unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}
