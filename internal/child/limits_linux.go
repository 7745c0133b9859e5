package child

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limit sets the bounds the kernel keeps. RLIMIT_DATA and not RLIMIT_AS: a Go
// program reserves far more address space than it uses and dies at start
// under the latter.
func limit(pid int, spec Spec) error {
	limits := []struct {
		name     string
		resource int
		most     uint64
	}{
		{"memory", unix.RLIMIT_DATA, uint64(spec.MaxData) * shadow},
		{"core", unix.RLIMIT_CORE, 0},
		{"open files", unix.RLIMIT_NOFILE, spec.openFiles()},
		{"file size", unix.RLIMIT_FSIZE, uint64(spec.MaxFile)},
	}
	for _, l := range limits {
		if l.resource == unix.RLIMIT_FSIZE && spec.MaxFile == 0 {
			continue
		}
		if err := lower(pid, l.resource, l.most); err != nil {
			return fmt.Errorf("limit %s to %d: %w", l.name, l.most, err)
		}
	}
	return nil
}

// lower never asks for more than the child already has, which would need a privilege.
func lower(pid, resource int, most uint64) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &now); err != nil {
		return err
	}
	most = min(most, now.Max)
	return unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
}

func (s Spec) openFiles() uint64 {
	if s.MaxOpen == 0 {
		return 1024
	}
	return s.MaxOpen
}

// isolation asks for a network namespace with nothing in it. The user
// namespace around it is what lets an ordinary user ask; it maps just the
// caller, so the child keeps its file ownership and loses every capability
// over anyone else's.
func isolation() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
	}
}

// overfilled watches dir until ctx ends (false) or more than limit bytes are
// allocated under it (true).
func overfilled(ctx context.Context, dir string, limit int64) bool {
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if usage(dir) > limit {
				return true
			}
		}
	}
}

// usage returns the bytes allocated under dir, symbolic links not followed.
// What vanishes while it looks is not there, hence no errors.
func usage(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += stat.Blocks * 512
			}
		}
		return nil
	})
	return sum
}
