package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
)

// harbor is a configuration with one registry as destination.
func harbor(r *testkit.Registry, more ...string) func(*lab) {
	return func(l *lab) {
		l.Write("data/harbor.pem", string(r.CAPEM()))
		destination(append([]string{"type: registry", "registry: " + r.Host() + "/plant", "accepts: [files]", "caFile: harbor.pem"}, more...)...)(l)
	}
}

// checkRelease runs a release that must end so.
func (l *lab) checkRelease(exit int, code string, state gate.State) {
	l.T.Helper()
	o := l.run("--quiet", "release", "1")
	if o.Exit != exit || !strings.Contains(o.Stderr, code) {
		l.T.Errorf("exit %d, want %d and %s\n%s", o.Exit, exit, code, o.Stderr)
	}
	if got := l.state("1"); got != state {
		l.T.Errorf("the case is %s, want %s", got, state)
	}
}

// hangUp ends the connection before the server has seen the request.
func hangUp(m testkit.Match) testkit.Fault {
	return testkit.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if m(r) {
			panic(http.ErrAbortHandler)
		}
		return false
	})
}

// A destination that does not answer, or does not let us in, keeps the release
// from ending; once it does, the same release goes on and ends.
func TestDestinationFailsFirst(t *testing.T) {
	t.Parallel()
	template := newLab(t)
	template.exported()
	t.Run("refuses", func(t *testing.T) {
		t.Parallel()
		l, r := template.clone(t), testkit.NewRegistry(t, testkit.WithTLS(), testkit.WithBasicAuth("robot", "geheim"))
		harbor(r)(l)
		l.must("receive", bundleFile)
		l.approve("1")
		l.checkRelease(21, "code: destination/refused ", gate.Approved)
		l.Write("data/harbor.password", "geheim\n")
		harbor(r, "credentials: {user: robot, passwordFile: harbor.password}")(l)
		l.checkRelease(0, "", gate.Loaded)
		found := l.must("show", "1").Stdout
		if !strings.Contains(found, "harbor") || !strings.Contains(found, r.Host()+"/plant/notes") {
			t.Errorf("where it went is not shown:\n%s", found)
		}
	})
	t.Run("does not answer", func(t *testing.T) {
		t.Parallel()
		l, r := template.clone(t), testkit.NewRegistry(t, testkit.WithTLS())
		harbor(r)(l)
		l.must("receive", bundleFile)
		l.approve("1")
		r.SetFault(hangUp(testkit.Everything))
		l.checkRelease(21, "code: destination/unreachable ", gate.Approved) // nothing was put anywhere
		r.SetFault(nil)
		l.checkRelease(0, "", gate.Loaded)
	})
	t.Run("takes content and no name", func(t *testing.T) {
		t.Parallel()
		l, r := template.clone(t), testkit.NewRegistry(t, testkit.WithTLS())
		harbor(r)(l)
		l.must("receive", bundleFile)
		l.approve("1")
		r.SetFault(hangUp(func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/manifests/1")
		}))
		l.checkRelease(21, "code: destination/unreachable ", gate.PartlyLoaded) // the content is there
		r.SetFault(nil)
		l.checkRelease(0, "", gate.Loaded)
	})
}

// Where a destination is, and what lets us in there.
func TestDestinationIsConfigured(t *testing.T) {
	t.Parallel()
	template := newLab(t)
	template.exported()
	// A destination that is another one than was approved has to be approved.
	t.Run("is another one", func(t *testing.T) {
		t.Parallel()
		l := template.clone(t)
		harbor(testkit.NewRegistry(t, testkit.WithTLS()))(l)
		l.must("receive", bundleFile)
		l.approve("1")
		harbor(testkit.NewRegistry(t, testkit.WithTLS()))(l)
		l.checkRelease(13, "code: case/changed ", gate.Awaiting)
		l.approve("1")
		l.checkRelease(0, "", gate.Loaded)
	})
	t.Run("password in the environment", func(t *testing.T) {
		t.Parallel()
		l, r := template.clone(t), testkit.NewRegistry(t, testkit.WithTLS(), testkit.WithBasicAuth("robot", "geheim"))
		harbor(r, "credentials: {user: robot, passwordEnv: HARBOR_PASSWORD}")(l)
		l.Env = append(l.Env, "HARBOR_PASSWORD=geheim")
		l.must("receive", bundleFile)
		l.approve("1")
		l.checkRelease(0, "", gate.Loaded)
	})
}

// A bucket gets the files under their real names.
func TestBucket(t *testing.T) {
	t.Parallel()
	l, server := arrived(t), testkit.NewS3(t)
	l.Write("data/s3.pem", string(server.CAPEM()))
	l.Write("data/s3.password", testkit.S3SecretKey+"\n")
	destination("type: s3", "endpoint: https://"+server.Host(), "bucket: "+testkit.S3Bucket, "accepts: [files]", "caFile: s3.pem",
		"naming: {repository: \"{kind}/{name}\", tag: \"v{version}\"}", "credentials: {user: "+testkit.S3AccessKey+", passwordFile: s3.password}")(l)
	l.must("receive", bundleFile)
	l.approve("1")
	l.checkRelease(0, "", gate.Loaded)
	if shown := l.must("show", "1").Stdout; !strings.Contains(shown, "files/notes:v1") {
		t.Errorf("the name is not shown:\n%s", shown)
	}
	got, err := os.ReadFile(filepath.Join(server.Files(), "files/notes/v1/data/values.csv"))
	if err != nil || string(got) != l.Read("notes/data/values.csv") {
		t.Errorf("the bucket has %q, %v", got, err)
	}
}

// needMounts skips a test where the kernel lets nobody mount anything, which is
// so for many users and in many containers. A root that may is no reason.
func needMounts(l *lab) {
	l.T.Helper()
	err := l.Command(testkit.Tool(l.T, "unshare"), "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt").Run()
	switch {
	case err == nil:
	case os.Getenv("PACKHOF_REQUIRE_TOOLS") == "1" && mayMount(l):
		l.T.Fatalf("no file systems of one's own, although this process may mount: unshare -rm: %v", err)
	default:
		l.T.Skipf("no file systems of one's own here: unshare -rm: %v", err)
	}
}

// mayMount tells whether this process has CAP_SYS_ADMIN.
func mayMount(l *lab) bool {
	l.T.Helper()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&head, &sets[0]); err != nil {
		l.T.Fatal(err)
	}
	return sets[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// A full disk ends a receive with a clear word, and nothing half is left; with
// space, the same command goes on.
func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Write("notes/large.bin", string(testkit.Bytes("large", 6<<20)))
	l.exported()
	needMounts(l)
	o := l.Finish(l.Command("unshare", "-rm", "sh", "-euc", `
		cp -r data/store copy; mount -t tmpfs -o size=3m tmpfs data/store; cp -r copy/. data/store; rm -r copy
		status=0
		packhof-gate --quiet receive medium || status=$?
		find data/store -type f -size +1k
		exit $status`))
	if o.Exit != 1 || !strings.Contains(o.Stderr, "code: gate/full   exit 1 ") && !strings.Contains(o.Stderr, "code: disk/full   exit 1 ") {
		t.Errorf("exit %d\n%s", o.Exit, o.Stderr)
	}
	for line := range strings.Lines(o.Stdout) {
		if strings.HasPrefix(line, "data/store") && !strings.Contains(line, "/blobs/sha256/") {
			t.Errorf("left on the disk: %s", line)
		}
	}
	l.checkStore()
	l.must("receive", "medium")
	if got := l.state("1"); got != gate.Awaiting {
		t.Errorf("the case is %s", got)
	}
	if left, err := os.ReadDir(l.Path("data/store/ingest")); err != nil || len(left) > 0 {
		t.Errorf("%v, left over: %v", err, left)
	}
}
