package main

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/signing"
)

const (
	passphrase = "correct horse"
	password   = "battery staple"
)

// notes is the packhof.yaml of a lab: one artifact, no network. Without an
// SBOM it is for review.
const notes = `apiVersion: packhof/v1
kind: Export
channel: plant-1
artifacts:
  - name: notes
    version: "1"
    dir: notes
`

const bundleFile = "medium/plant-1-000001.tar"

// lab is a folder with both shores in it: a project of packhof, an empty
// folder "medium", and the data directory of a gate, "data".
type lab struct {
	t   testing.TB
	dir string
	env []string // beyond that of baseEnv

	vacate     func() // undoes occupy
	noPassword bool   // leave PACKHOF_PASSWORD out
}

// emptyLab is a lab before its first day.
func emptyLab(t testing.TB) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("needs packhof, which short tests do not build")
	}
	l := &lab{t: t, dir: t.TempDir()}
	l.mustPackhof("init")
	l.write("packhof.yaml", notes)
	l.write("notes/README.md", "read me\n")
	l.write("notes/data/values.csv", "a,b\n1,2\n")
	l.mkdir("medium")
	return l
}

// newLab goes through the first day on both shores: the gate is enrolled, and
// trusts the sender. The account anna may decide.
func newLab(t testing.TB) *lab {
	t.Helper()
	l := emptyLab(t)
	l.enrol()
	l.must("trust", "init", "trust/root-1.json", "--fingerprint", l.fingerprint("trust/root-1.json"))
	l.must("user", "add", "anna", "--role", "reviewer")
	return l
}

func (l *lab) enrol() {
	l.t.Helper()
	l.must("init", "--owner", "Plant 1, hall B")
	l.mustPackhof("key", "generate")
	l.mustPackhof("trust", "init", "--owner", "release@example")
	l.mustPackhof("trust", "add-gate", "data/enrol.json", "--fingerprint", l.fingerprint("data/enrol.json"))
}

func (l *lab) fingerprint(name string) string {
	l.t.Helper()
	return signing.FingerprintOf([]byte(l.read(name))).String()
}

// exported plans and exports without a scanner.
func (l *lab) exported() {
	l.t.Helper()
	l.mustPackhof("plan")
	l.mustPackhof("export", "--no-scan", "--to", "medium")
}

// arrived is a lab whose first bundle lies on the medium.
func arrived(t testing.TB) *lab {
	t.Helper()
	l := newLab(t)
	l.exported()
	return l
}

// waiting is a lab whose first bundle waits for approval as case 1.
func waiting(t testing.TB) *lab {
	t.Helper()
	l := arrived(t)
	l.must("receive", bundleFile)
	return l
}

// clone gives a test a copy of its own.
func (l *lab) clone(t testing.TB) *lab {
	t.Helper()
	c := &lab{t: t, dir: t.TempDir(), env: l.env}
	if err := os.CopyFS(c.dir, os.DirFS(l.dir)); err != nil {
		t.Fatal(err)
	}
	return c
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

func (l *lab) mkdir(name string) {
	l.t.Helper()
	if err := os.MkdirAll(l.path(name), 0o755); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) write(name, text string) {
	l.t.Helper()
	l.mkdir(filepath.Dir(name))
	if err := os.WriteFile(l.path(name), []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) read(name string) string {
	l.t.Helper()
	b, err := os.ReadFile(l.path(name))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(b)
}

func (l *lab) remove(name string) {
	l.t.Helper()
	if err := os.RemoveAll(l.path(name)); err != nil {
		l.t.Fatal(err)
	}
}

// baseEnv is the environment of every program run here: nothing of the
// developer's but PATH.
func (l *lab) baseEnv() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + l.path("home"), "TMPDIR=" + os.TempDir(), "DOCKER_CONFIG=" + l.path("docker"),
		"PACKHOF_PASSPHRASE=" + passphrase, "PACKHOF_DATA=data",
	}
	if !l.noPassword {
		env = append(env, "PACKHOF_PASSWORD="+password)
	}
	return append(env, l.env...)
}

// command prepares any program to run in the lab.
func (l *lab) command(name string, args ...string) *exec.Cmd {
	l.t.Helper()
	c := exec.CommandContext(l.t.Context(), name, args...)
	c.Dir, c.Env = l.dir, l.baseEnv()
	return c
}

// outcome is what a program left behind.
type outcome struct {
	exit           int
	stdout, stderr string
}

func (l *lab) run(args ...string) outcome {
	l.t.Helper()
	return l.finish(l.command("packhof-gate", args...))
}

// finish runs a prepared command to its end.
func (l *lab) finish(c *exec.Cmd) outcome {
	l.t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		l.t.Fatalf("run %s: %v", strings.Join(c.Args, " "), err)
	}
	return outcome{exit: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

func (l *lab) must(args ...string) outcome {
	l.t.Helper()
	return l.mustFinish(l.command("packhof-gate", args...))
}

func (l *lab) mustPackhof(args ...string) outcome {
	l.t.Helper()
	return l.mustFinish(l.command("packhof", args...))
}

func (l *lab) mustFinish(c *exec.Cmd) outcome {
	l.t.Helper()
	o := l.finish(c)
	if o.exit != 0 {
		l.t.Fatalf("%s: exit %d\n%s%s", strings.Join(c.Args, " "), o.exit, o.stdout, o.stderr)
	}
	return o
}

// review is the digest that a decision on a case is bound to.
func (l *lab) review(id string) string {
	l.t.Helper()
	var shown showDocument
	if err := json.Unmarshal([]byte(l.must("show", id, "-o", "json").stdout), &shown); err != nil {
		l.t.Fatal(err)
	}
	return shown.Review.Digest
}

// approve lets a case through as anna.
func (l *lab) approve(id string) {
	l.t.Helper()
	l.must("approve", id, "--as", "anna", "--yes", "--review", l.review(id), "--reason", "read it")
}

// state is where a case stands.
func (l *lab) state(id string) gate.State {
	l.t.Helper()
	var shown showDocument
	if err := json.Unmarshal([]byte(l.must("show", id, "-o", "json").stdout), &shown); err != nil {
		l.t.Fatal(err)
	}
	return shown.Case.State
}

// occupy holds the data directory as another process would, until the test
// ends.
func (l *lab) occupy() {
	l.t.Helper()
	f, err := os.OpenFile(l.path("data/gate.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		_, err = f.WriteString("4711\n")
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.vacate = func() {
		if err := f.Close(); err != nil {
			l.t.Error(err)
		}
	}
}

// cases are all that there are.
func (l *lab) cases() []gate.Summary {
	l.t.Helper()
	var all struct {
		Cases []gate.Summary `json:"cases"`
	}
	if err := json.Unmarshal([]byte(l.must("list", "-o", "json").stdout), &all); err != nil {
		l.t.Fatal(err)
	}
	return all.Cases
}

// checkStore makes sure that the gate's store holds no half blob under a
// digest, however the last command ended.
func (l *lab) checkStore() {
	l.t.Helper()
	blobs, err := os.ReadDir(l.path("data/store/blobs/sha256"))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, blob := range blobs {
		if b := l.read("data/store/blobs/sha256/" + blob.Name()); cas.DigestOf([]byte(b)).Hex() != blob.Name() {
			l.t.Errorf("the store has %s, whose content is something else", blob.Name())
		}
	}
}
