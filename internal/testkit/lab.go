package testkit

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packhof/packhof/internal/cas"
)

// Lab is a folder in which programs run as people run them: real processes in
// an environment with nothing of the developer's but PATH. Names of files are
// relative to the folder. What cannot be done fails the test.
type Lab struct {
	T   testing.TB
	Dir string
	Env []string // beside PATH, HOME, TMPDIR and DOCKER_CONFIG; the last one of a name counts
}

// NewLab is an empty folder, which goes when the test ends.
func NewLab(t testing.TB, env ...string) *Lab {
	return &Lab{T: t, Dir: t.TempDir(), Env: env}
}

// Clone gives a test a copy of its own.
func (l *Lab) Clone(t testing.TB) *Lab {
	t.Helper()
	c := NewLab(t, append([]string{}, l.Env...)...)
	if err := os.CopyFS(c.Dir, os.DirFS(l.Dir)); err != nil {
		t.Fatal(err)
	}
	return c
}

// Path is where a file of the lab is for this process.
func (l *Lab) Path(name string) string { return filepath.Join(l.Dir, name) }

// Mkdir makes a folder and those above it.
func (l *Lab) Mkdir(name string) {
	l.T.Helper()
	if err := os.MkdirAll(l.Path(name), 0o755); err != nil {
		l.T.Fatal(err)
	}
}

// Write writes a file; its folder need not be there.
func (l *Lab) Write(name, text string) {
	l.T.Helper()
	l.Mkdir(filepath.Dir(name))
	if err := os.WriteFile(l.Path(name), []byte(text), 0o644); err != nil {
		l.T.Fatal(err)
	}
}

// Read gives the content of a file.
func (l *Lab) Read(name string) string {
	l.T.Helper()
	b, err := os.ReadFile(l.Path(name))
	if err != nil {
		l.T.Fatal(err)
	}
	return string(b)
}

// Remove takes away a file, or a folder with all that is in it, which has to
// be there.
func (l *Lab) Remove(name string) {
	l.T.Helper()
	_, err := os.Lstat(l.Path(name))
	if err := errors.Join(err, os.RemoveAll(l.Path(name))); err != nil {
		l.T.Fatal(err)
	}
}

// Truncate cuts a file to size, or by so much when size is negative.
func (l *Lab) Truncate(name string, size int64) {
	l.T.Helper()
	if size < 0 {
		size += int64(len(l.Read(name)))
	}
	if err := os.Truncate(l.Path(name), size); err != nil {
		l.T.Fatal(err)
	}
}

// Command prepares any program to run in the lab.
func (l *Lab) Command(name string, args ...string) *exec.Cmd {
	l.T.Helper()
	c := exec.CommandContext(l.T.Context(), name, args...)
	c.Dir = l.Dir
	c.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + l.Path("home"), "TMPDIR=" + os.TempDir(), "DOCKER_CONFIG=" + l.Path("docker"),
	}, l.Env...)
	return c
}

// Outcome is what a program left behind.
type Outcome struct {
	Exit           int // -1: it was killed
	Stdout, Stderr string
}

// Finish runs a prepared command to its end, however it ends.
func (l *Lab) Finish(c *exec.Cmd) Outcome {
	l.T.Helper()
	return l.start(c).End()
}

// MustFinish runs a prepared command, which has to succeed.
func (l *Lab) MustFinish(c *exec.Cmd) Outcome {
	l.T.Helper()
	o := l.Finish(c)
	if o.Exit != 0 {
		l.T.Fatalf("%s: exit %d\n%s%s", strings.Join(c.Args, " "), o.Exit, o.Stdout, o.Stderr)
	}
	return o
}

// Running is a program that has been started and not yet ended.
type Running struct {
	T              testing.TB
	Cmd            *exec.Cmd
	Stdout, Stderr bytes.Buffer // to be read when it has ended
}

// Start starts a program.
func (l *Lab) Start(name string, args ...string) *Running {
	l.T.Helper()
	return l.start(l.Command(name, args...))
}

func (l *Lab) start(c *exec.Cmd) *Running {
	l.T.Helper()
	r := &Running{T: l.T, Cmd: c}
	c.Stdout, c.Stderr = &r.Stdout, &r.Stderr
	c.WaitDelay = 30 * time.Second // for what a killed program started and left behind
	if err := c.Start(); err != nil {
		l.T.Fatalf("run %s: %v", strings.Join(c.Args, " "), err)
	}
	return r
}

// Signal sends a signal.
func (r *Running) Signal(s syscall.Signal) {
	r.T.Helper()
	if err := r.Cmd.Process.Signal(s); err != nil {
		r.T.Fatal(err)
	}
}

// End waits for the end.
func (r *Running) End() Outcome {
	r.T.Helper()
	err := r.Cmd.Wait()
	var ended *exec.ExitError // which the exit code tells as well
	if err != nil && !errors.As(err, &ended) {
		r.T.Fatalf("run %s: %v", strings.Join(r.Cmd.Args, " "), err)
	}
	return Outcome{Exit: r.Cmd.ProcessState.ExitCode(), Stdout: r.Stdout.String(), Stderr: r.Stderr.String()}
}

// WhenWriting starts a program and returns as soon as a file in a folder of
// the lab is written to, with the name of that file.
func (l *Lab) WhenWriting(folder string, start func() *Running) (r *Running, file string) {
	l.T.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		l.T.Fatal(err)
	}
	defer func() {
		if err := unix.Close(fd); err != nil {
			l.T.Error(err)
		}
	}()
	if _, err := unix.InotifyAddWatch(fd, l.Path(folder), unix.IN_MODIFY); err != nil {
		l.T.Fatal(err)
	}
	r = start()
	events := make([]byte, 4096)
	n, err := unix.Read(fd, events)
	if err != nil || n <= unix.SizeofInotifyEvent {
		l.T.Fatalf("nothing was written: %v", err)
	}
	name, _, _ := bytes.Cut(events[unix.SizeofInotifyEvent:n], []byte{0})
	return r, string(name)
}

// CheckBlobs makes sure that a folder of blobs has nothing half, and nothing
// else, under a digest.
func CheckBlobs(t testing.TB, dir string) {
	t.Helper()
	blobs, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range blobs {
		b, err := os.ReadFile(filepath.Join(dir, blob.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if got := cas.DigestOf(b); got.Hex() != blob.Name() {
			t.Errorf("%s has %s, whose content is %s", dir, blob.Name(), got)
		}
	}
}
