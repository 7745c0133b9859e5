package main

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/testkit"
)

func (l *lab) start(args ...string) *running {
	l.T.Helper()
	return l.Start("packhof", args...)
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
			if second.Exit != 1 || !strings.Contains(second.Stderr, "code: project/busy   exit 1 ") {
				t.Errorf("a second export: exit %d\n%s", second.Exit, second.Stderr)
			}
			first.Signal(s)
			checkInterrupted(t, first.End())
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
	if o.Exit != 130 || !strings.Contains(o.Stderr, "packhof: error: interrupted\n") || !strings.Contains(o.Stderr, "code: interrupted   exit 130 ") {
		t.Errorf("exit %d, want 130 and the code interrupted:\n%s", o.Exit, o.Stderr)
	}
}

// A packhof that is killed while it downloads leaves its project usable.
func TestKilledDownload(t *testing.T) {
	t.Parallel()
	l, registry, asked := hanging(t)
	first := l.start("export", "--no-scan", "--to", "medium")
	<-asked
	first.Signal(syscall.SIGKILL)
	first.End()
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
	l.Write("notes/large.bin", string(testkit.Bytes("large", 128<<20)))
	l.mustRun("plan")
	l.Mkdir("whole")
	l.mustRun("export", "--no-scan", "--to", "whole")
	return l
}

// startUntilWriting starts packhof and returns when it has begun to write the
// bundle to the medium.
func (l *lab) startUntilWriting(args ...string) *running {
	l.T.Helper()
	r, file := l.WhenWriting("medium", func() *running { return l.start(args...) })
	if file != "plant-1-000001.tar.partial" {
		l.T.Fatalf("%q was written first", file)
	}
	return r
}

// Ctrl-C while the bundle is written leaves nothing on the medium.
func TestInterruptedWriting(t *testing.T) {
	t.Parallel()
	l := large(t)
	before := l.snapshot()
	r := l.startUntilWriting("export", "--no-scan", "--to", "medium")
	r.Signal(syscall.SIGINT)
	checkInterrupted(t, r.End())
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
	r.Signal(syscall.SIGKILL)
	r.End()
	left, err := os.ReadDir(l.Path("medium"))
	if err != nil || len(left) != 1 || left[0].Name() != "plant-1-000001.tar.partial" {
		t.Errorf("%v, left on the medium: %v", err, left)
	}
	l.mustRun("export", "--no-scan", "--to", "medium")
	l.sameBytes("whole/plant-1-000001.tar", bundleFile)
	if _, err := os.Stat(l.Path(bundleFile + ".partial")); err == nil {
		t.Error("the half-written file is still there")
	}
}

// A kill while an encrypted volume is written leaves nothing under its name. The
// next export begins it anew, under another name, and removes what was left.
func TestKilledEncrypting(t *testing.T) {
	t.Parallel()
	l := large(t)
	export := []string{"export", "--no-scan", "--to", "medium", "--encrypt-to", l.identity("home/key.txt").Recipient().String()}
	r, first := l.WhenWriting("medium", func() *running { return l.start(export...) })
	r.Signal(syscall.SIGKILL)
	r.End()
	if left := l.names("medium"); !strings.HasSuffix(first, ".age.partial") || !slices.Equal(left, []string{first}) {
		t.Errorf("left on the medium: %v", left)
	}
	if strings.Contains(l.Read("medium/"+first), "packhof.json\x00") {
		t.Error("it is in the clear")
	}
	l.mustRun(export...)
	left := l.names("medium")
	if len(left) != 1 || !strings.HasSuffix(left[0], ".age") || left[0]+".partial" == first {
		t.Errorf("on the medium after another export: %v, before %s", left, first)
	}
	l.mustRun("verify", "--identity", "home/key.txt", "medium")
	l.Mkdir("clear")
	l.mustRun("join", "--identity", "home/key.txt", "--to", "clear", "medium")
	l.sameBytes("whole/plant-1-000001.tar", "clear/plant-1-000001.tar")
}

// names lists a folder.
func (l *lab) names(folder string) (names []string) {
	l.T.Helper()
	entries, err := os.ReadDir(l.Path(folder))
	if err != nil {
		l.T.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A medium that is taken away while the bundle is written has no volume under
// its name, and gets the same bytes when it is there again.
func TestMediumTakenAway(t *testing.T) {
	t.Parallel()
	l := large(t)
	r := l.startUntilWriting("export", "--no-scan", "--to", "medium")
	if err := os.Rename(l.Path("medium"), l.Path("away")); err != nil {
		t.Fatal(err)
	}
	o := r.End()
	if o.Exit != 21 || !strings.Contains(o.Stderr, "code: medium/lost   exit 21 ") || !strings.Contains(o.Stderr, "hint: put it in again and run the same command") {
		t.Errorf("exit %d, want 21 and the code medium/lost:\n%s", o.Exit, o.Stderr)
	}
	if err := os.Rename(l.Path("away"), l.Path("medium")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.Path(bundleFile)); err == nil {
		t.Error("there is a volume")
	}
	l.mustRun("export", "--no-scan", "--to", "medium")
	l.sameBytes("whole/plant-1-000001.tar", bundleFile)
}
