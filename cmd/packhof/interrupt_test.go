package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/packhof/packhof/internal/testkit"
)

// running is a packhof that has been started and not yet ended.
type running struct {
	lab            *lab
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

func (l *lab) start(args ...string) *running {
	l.t.Helper()
	r := &running{lab: l, cmd: l.command("packhof", args...)}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	return r
}

func (r *running) signal(s syscall.Signal) {
	r.lab.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.lab.t.Fatal(err)
	}
}

// end waits; a process that was killed has the exit code -1.
func (r *running) end() outcome {
	_ = r.cmd.Wait() // the exit code says it
	return outcome{exit: r.cmd.ProcessState.ExitCode(), stdout: r.stdout.String(), stderr: r.stderr.String()}
}

// hanging gives a planned lab with a registry that answers no request for a
// blob any more, and a channel that tells of the first one.
func hanging(t *testing.T) (*lab, *testkit.Registry, <-chan struct{}) {
	t.Helper()
	l := newLab(t)
	r := testkit.NewRegistry(t)
	l.push(r, "team/app:1.0", small("app"))
	l.wants(r, "team/app:1.0")
	l.mustRun("plan")
	asked, once := make(chan struct{}), sync.Once{}
	hang := testkit.Hang(testkit.Blobs)
	r.SetFault(func(next http.Handler) http.Handler {
		hung := hang(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if testkit.Blobs(r) {
				once.Do(func() { close(asked) })
			}
			hung.ServeHTTP(w, r)
		})
	})
	return l, r, asked
}

// One packhof at a time works in a project; Ctrl-C while a download hangs ends
// it at once and leaves nothing behind.
func TestInterruptedDownload(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			l, registry, asked := hanging(t)
			before := l.snapshot()
			first := l.start("export", "--no-scan", "--to", "medium")
			<-asked
			second := l.run("export", "--no-scan", "--to", "medium")
			if second.exit != 1 || !strings.Contains(second.stderr, "code: project/busy   exit 1 ") {
				t.Errorf("a second export: exit %d\n%s", second.exit, second.stderr)
			}
			first.signal(s)
			checkInterrupted(t, first.end())
			if diff := cmp.Diff(before, l.snapshot()); diff != "" {
				t.Errorf("files have changed (-before +after):\n%s", diff)
			}
			registry.SetFault(nil)
			l.mustRun("export", "--no-scan", "--to", "medium")
		})
	}
}

func checkInterrupted(t *testing.T, o outcome) {
	t.Helper()
	if o.exit != 130 || !strings.Contains(o.stderr, "packhof: error: interrupted\n") || !strings.Contains(o.stderr, "code: interrupted   exit 130 ") {
		t.Errorf("exit %d, want 130 and the code interrupted:\n%s", o.exit, o.stderr)
	}
}

// A packhof that is killed while it downloads leaves its project usable.
func TestKilledDownload(t *testing.T) {
	t.Parallel()
	l, registry, asked := hanging(t)
	first := l.start("export", "--no-scan", "--to", "medium")
	<-asked
	first.signal(syscall.SIGKILL)
	first.end()
	registry.SetFault(nil)
	l.mustRun("export", "--no-scan", "--to", "medium")
	l.mustRun("verify", bundleFile)
	l.snapshot() // looks after what is left over in the store
}

// large gives a sealed lab whose bundle takes a while to write, and a first
// copy of it in the folder "whole".
func large(t *testing.T) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("writes hundreds of megabytes")
	}
	l := newLab(t)
	l.write("notes/large.bin", string(testkit.Bytes("large", 128<<20)))
	l.mustRun("plan")
	l.mkdir("whole")
	l.mustRun("export", "--no-scan", "--to", "whole")
	return l
}

// startUntilWriting starts packhof and returns when it has begun to write the
// bundle to the medium.
func (l *lab) startUntilWriting(args ...string) *running {
	l.t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() {
		if err := unix.Close(fd); err != nil {
			l.t.Error(err)
		}
	}()
	if _, err := unix.InotifyAddWatch(fd, l.path("medium"), unix.IN_MODIFY); err != nil {
		l.t.Fatal(err)
	}
	r := l.start(args...)
	event := make([]byte, 4096)
	n, err := unix.Read(fd, event)
	if err != nil || !bytes.Contains(event[:n], []byte("plant-1-000001.tar.partial")) {
		l.t.Fatalf("%v, %q was written first", err, event[:n])
	}
	return r
}

// Ctrl-C while the bundle is written leaves nothing on the medium.
func TestInterruptedWriting(t *testing.T) {
	t.Parallel()
	l := large(t)
	before := l.snapshot()
	r := l.startUntilWriting("export", "--no-scan", "--to", "medium")
	r.signal(syscall.SIGINT)
	checkInterrupted(t, r.end())
	if diff := cmp.Diff(before, l.snapshot()); diff != "" {
		t.Errorf("files have changed (-before +after):\n%s", diff)
	}
}

// A kill while the bundle is written leaves nothing under its final name, and
// the next export writes the same bytes.
func TestKilledWriting(t *testing.T) {
	t.Parallel()
	l := large(t)
	r := l.startUntilWriting("export", "--no-scan", "--to", "medium")
	r.signal(syscall.SIGKILL)
	r.end()
	left, err := os.ReadDir(l.path("medium"))
	if err != nil || len(left) != 1 || left[0].Name() != "plant-1-000001.tar.partial" {
		t.Errorf("%v, left on the medium: %v", err, left)
	}
	l.mustRun("export", "--no-scan", "--to", "medium")
	l.sameBytes("whole/plant-1-000001.tar", bundleFile)
	if _, err := os.Stat(l.path(bundleFile + ".partial")); err == nil {
		t.Error("the half-written file is still there")
	}
}
