package child

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// straggle is how long output pipes may stay open after the whole group was
// killed: only a process that left the group can still hold them.
const straggle = 2 * time.Second

// process is one running child.
type process struct {
	spec   Spec
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout whole
	stderr ends
	group  group
}

func run(ctx context.Context, spec Spec) (Result, error) {
	var result Result
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The kernel sends the parent-death signal when the *thread* that
		// started the child ends, so this thread stays ours until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		result, err = runHere(ctx, spec)
	}()
	<-ended
	return result, err
}

func runHere(ctx context.Context, spec Spec) (Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	began := spec.now()
	allowed := spec.MaxDisk
	if allowed > 0 {
		allowed += usage(spec.Dir)
	}

	p, isolated, err := launch(spec, func() { stop(errOutput) })
	if err != nil {
		return Result{}, err
	}
	timer := time.AfterFunc(spec.Timeout, func() { stop(errTimeout) })
	defer timer.Stop()
	release := context.AfterFunc(ctx, p.group.kill)
	defer release()

	var workers sync.WaitGroup
	watching, unwatch := context.WithCancel(ctx)
	if allowed > 0 {
		workers.Go(func() {
			if overfilled(watching, spec.Dir, allowed) {
				stop(errDisk)
			}
		})
	}
	limitErr := limit(p.cmd.Process.Pid, spec)
	if limitErr != nil {
		p.group.kill()
	}
	workers.Go(p.feed)
	waitErr := p.wait()
	cause := context.Cause(ctx)
	unwatch()
	workers.Wait()

	result := Result{
		Stderr:          p.stderr.bytes(),
		Duration:        spec.now().Sub(began),
		PeakMemory:      peak(p.cmd),
		NetworkIsolated: isolated,
	}
	if limitErr != nil {
		return result, &Error{Program: spec.name(), Reason: Unstartable, Stderr: result.Stderr, Err: limitErr}
	}
	if waitErr == nil && !errors.Is(cause, errOutput) {
		result.Stdout = p.stdout.buf.Bytes()
		return result, nil
	}
	failure := spec.explain(cause, waitErr, result.Stderr)
	failure.Err = errors.Join(failure.Err, cancelled(failure.Reason, ctx))
	return result, failure
}

// launch starts the child, first in a network namespace of its own if that is
// wanted, then without.
func launch(spec Spec, tooMuch func()) (p *process, isolated bool, err error) {
	if spec.NoNetwork {
		if p, err = start(spec, isolation(), tooMuch); err == nil {
			return p, true, nil
		}
	}
	if p, err = start(spec, &syscall.SysProcAttr{}, tooMuch); err == nil {
		return p, false, nil
	}
	reason := Unstartable
	if errors.Is(err, fs.ErrNotExist) {
		reason = Absent
	}
	return nil, false, &Error{Program: spec.name(), Reason: reason, Err: err}
}

func start(spec Spec, attr *syscall.SysProcAttr, tooMuch func()) (*process, error) {
	attr.Setpgid = true
	attr.Pdeathsig = syscall.SIGKILL
	p := &process{spec: spec, stdout: whole{limit: spec.MaxOutput, exceeded: tooMuch}}
	p.cmd = &exec.Cmd{
		Path:        spec.Path,
		Args:        append([]string{spec.Path}, spec.Args...),
		Env:         spec.environment(),
		Dir:         spec.Dir,
		Stdout:      &p.stdout,
		Stderr:      &p.stderr,
		SysProcAttr: attr,
		WaitDelay:   straggle,
	}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.group.pid = p.cmd.Process.Pid
	return p, nil
}

// feed hands over the input. A child that ends without reading all of it
// breaks the pipe, which is no failure of its own: how it ended tells.
func (p *process) feed() {
	_, _ = p.stdin.Write(p.spec.Stdin)
	_ = p.stdin.Close()
}

// wait waits for the leader, kills what is left of its group and only then
// reaps it: until reaped, its number cannot belong to anyone else.
func (p *process) wait() error {
	var waited error
	for {
		waited = unix.Waitid(unix.P_PID, p.group.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(waited, unix.EINTR) {
			break
		}
	}
	p.group.close()
	return errors.Join(waited, p.cmd.Wait())
}

// group is the child's process group. After close it kills nobody.
type group struct {
	mu     sync.Mutex
	pid    int
	closed bool
}

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		// ESRCH is all that can come back: nobody left is what we want.
		_ = unix.Kill(-g.pid, unix.SIGKILL)
	}
}

func (g *group) close() {
	g.kill()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// explain turns the end of a child into the reason for it. Our own stop comes
// first, because a killed child cannot say why.
func (s Spec) explain(cause, waitErr error, stderr []byte) *Error {
	failure := &Error{Program: s.name(), Reason: Crashed, Stderr: stderr}
	if reason, limit, ok := s.stopped(cause); ok {
		failure.Reason, failure.Limit = reason, limit
		return failure
	}
	exit, ok := errors.AsType[*exec.ExitError](waitErr)
	if !ok {
		failure.Reason, failure.Err = Unstartable, waitErr
		return failure
	}
	if outOfMemory(stderr) {
		failure.Reason, failure.Limit = Memory, bytesText(s.MaxData)
		return failure
	}
	failure.ExitCode = exit.ExitCode()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		failure.Signal = status.Signal().String()
		if status.Signal() == syscall.SIGXFSZ {
			failure.Reason, failure.Limit = Disk, bytesText(s.MaxFile)
		}
	}
	return failure
}

func (s Spec) name() string { return filepath.Base(s.Path) }

func (s Spec) now() time.Time {
	if s.Clock == nil {
		return time.Time{}
	}
	return s.Clock()
}

func peak(cmd *exec.Cmd) int64 {
	if cmd.ProcessState == nil {
		return 0
	}
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return int64(used.Maxrss) << 10 // the kernel counts in KiB
}
