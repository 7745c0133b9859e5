package main

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/signing"
)

// passphrase is that of every key made here.
const passphrase = "correct horse"

// enrolment is the gate that every project here is for.
const enrolment = "../../testdata/enrol.json"

// notes is the packhof.yaml that a lab begins with: one artifact, no network.
const notes = `apiVersion: packhof/v1
kind: Export
channel: plant-1
artifacts:
  - name: notes
    version: "1"
    dir: notes
`

// lab is a folder with a project in it, beside an empty folder "medium" to
// export to.
type lab struct {
	t   testing.TB
	dir string
	env []string // beyond that of baseEnv
}

// newLab makes a project by the commands of a first day, up to an enrolled
// gate.
func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir()}
	l.mustRun("init")
	l.write("packhof.yaml", notes)
	l.write("notes/README.md", "read me\n")
	l.write("notes/data/values.csv", "a,b\n1,2\n")
	l.mkdir("medium")
	l.mustRun("key", "generate")
	l.startTrust()
	return l
}

// startTrust makes the trust root and enrols the gate.
func (l *lab) startTrust() {
	l.t.Helper()
	raw, err := os.ReadFile(enrolment)
	if err != nil {
		l.t.Fatal(err)
	}
	l.write("enrol.json", string(raw))
	l.mustRun("trust", "init", "--owner", "release@example")
	l.mustRun("trust", "add-gate", "enrol.json", "--fingerprint", signing.FingerprintOf(raw).String())
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
	if err := os.Remove(l.path(name)); err != nil {
		l.t.Fatal(err)
	}
}

// replace changes text in a file, which must be there.
func (l *lab) replace(name, old, new string) {
	l.t.Helper()
	text := l.read(name)
	if !strings.Contains(text, old) {
		l.t.Fatalf("%s does not hold %q:\n%s", name, old, text)
	}
	l.write(name, strings.Replace(text, old, new, 1))
}

// artifacts replaces the list of artifacts and appends further keys.
func (l *lab) artifacts(list string, more ...string) {
	l.t.Helper()
	head, _, _ := strings.Cut(notes, "artifacts:")
	l.write("packhof.yaml", head+"artifacts:\n"+list+"\n"+strings.Join(more, "\n")+"\n")
}

// baseEnv is the environment of every program run here: nothing of the
// developer's but PATH.
func (l *lab) baseEnv() []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + l.path("home"), "TMPDIR=" + os.TempDir(),
		"DOCKER_CONFIG=" + l.path("docker"), "PACKHOF_PASSPHRASE=" + passphrase,
	}, l.env...)
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
	return l.finish(l.command("packhof", args...))
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

func (l *lab) mustRun(args ...string) outcome {
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

// exported plans and exports without a scanner, and returns the bundle.
func (l *lab) exported() (bundlePath string) {
	l.t.Helper()
	l.mustRun("plan")
	l.mustRun("export", "--no-scan", "--to", "medium")
	return "medium/plant-1-000001.tar"
}

// manifest gives the manifest of a bundle in the lab.
func (l *lab) manifest(bundlePath string) *bundle.Manifest {
	l.t.Helper()
	var text bytes.Buffer
	c := l.command("tar", "-xOf", bundlePath, "packhof.json")
	c.Stdout = &text
	if err := c.Run(); err != nil {
		l.t.Fatalf("take packhof.json out of %s: %v", bundlePath, err)
	}
	return manifestOf(l.t, text.Bytes())
}

// snapshot is every file, link and folder below the lab with its content,
// except for the store, which is held to its own rule: what is under a digest
// has that digest, and nothing else is left there.
type snapshot map[string]string

func (l *lab) snapshot() snapshot {
	l.t.Helper()
	s, err := treeState(l.dir, func(store string) error { l.checkStore(store); return nil })
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// treeState takes the snapshot of a folder and calls check for a store in it.
func treeState(dir string, check func(store string) error) (snapshot, error) {
	s := snapshot{}
	return s, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".packhof" {
			if err := check(path); err != nil {
				return err
			}
			return filepath.SkipDir
		}
		s[name], err = stateOf(path, d)
		return err
	})
}

// stateOf is all that makes a file the same file: kind, mode, time, content.
func stateOf(path string, d fs.DirEntry) (string, error) {
	info, err := d.Info()
	if err != nil {
		return "", err
	}
	state := info.Mode().String()
	if !info.Mode().IsRegular() {
		return state, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) { // meant to be so
		return state + " " + info.ModTime().UTC().String(), nil
	}
	return state + " " + info.ModTime().UTC().String() + " " + cas.DigestOf(b).String(), err
}

var hexName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// checkStore makes sure that a command that has ended, however it ended, left
// no half blob under a digest and nothing under a temporary name.
func (l *lab) checkStore(dir string) {
	l.t.Helper()
	for _, empty := range []string{"ingest", "work"} {
		left, err := os.ReadDir(filepath.Join(dir, empty))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.t.Fatal(err)
		}
		for _, entry := range left {
			l.t.Errorf("the store has %s/%s left over", empty, entry.Name())
		}
	}
	blobs, err := os.ReadDir(filepath.Join(dir, "blobs", "sha256"))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, blob := range blobs {
		b, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", blob.Name()))
		if err != nil {
			l.t.Fatal(err)
		}
		if !hexName.MatchString(blob.Name()) || cas.DigestOf(b).Hex() != blob.Name() {
			l.t.Errorf("the store has %s, whose content is %s", blob.Name(), cas.DigestOf(b))
		}
	}
}

func manifestOf(t testing.TB, b []byte) *bundle.Manifest {
	t.Helper()
	var m bundle.Manifest
	if err := json.Unmarshal(b, &m, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("manifest: %v", err)
	}
	return &m
}

// sameBytes compares two files of the lab.
func (l *lab) sameBytes(a, b string) {
	l.t.Helper()
	if l.read(a) != l.read(b) {
		l.t.Errorf("%s and %s differ", a, b)
	}
}
