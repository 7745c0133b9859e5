package main

import (
	"bytes"
	"encoding/json/v2"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
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
type lab struct{ *testkit.Lab }

type (
	outcome = testkit.Outcome
	running = testkit.Running
)

// newLab makes a project by the commands of a first day, up to an enrolled
// gate.
func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{testkit.NewLab(t, "PACKHOF_PASSPHRASE="+passphrase)}
	l.mustRun("init")
	l.Write("packhof.yaml", notes)
	l.Write("notes/README.md", "read me\n")
	l.Write("notes/data/values.csv", "a,b\n1,2\n")
	l.Mkdir("medium")
	l.mustRun("key", "generate")
	l.startTrust()
	return l
}

// startTrust makes the trust root and enrols the gate.
func (l *lab) startTrust() {
	l.T.Helper()
	raw, err := os.ReadFile(enrolment)
	if err != nil {
		l.T.Fatal(err)
	}
	l.Write("enrol.json", string(raw))
	l.mustRun("trust", "init", "--owner", "release@example")
	l.mustRun("trust", "add-gate", "enrol.json", "--fingerprint", signing.FingerprintOf(raw).String())
}

// clone gives a test a copy of its own.
func (l *lab) clone(t testing.TB) *lab {
	t.Helper()
	return &lab{l.Clone(t)}
}

// replace changes text in a file, which must be there.
func (l *lab) replace(name, old, new string) {
	l.T.Helper()
	text := l.Read(name)
	if !strings.Contains(text, old) {
		l.T.Fatalf("%s does not hold %q:\n%s", name, old, text)
	}
	l.Write(name, strings.Replace(text, old, new, 1))
}

// artifacts replaces the list of artifacts and appends further keys.
func (l *lab) artifacts(list string, more ...string) {
	l.T.Helper()
	head, _, _ := strings.Cut(notes, "artifacts:")
	l.Write("packhof.yaml", head+"artifacts:\n"+list+"\n"+strings.Join(more, "\n")+"\n")
}

func (l *lab) run(args ...string) outcome {
	l.T.Helper()
	return l.Finish(l.Command("packhof", args...))
}

func (l *lab) mustRun(args ...string) outcome {
	l.T.Helper()
	return l.MustFinish(l.Command("packhof", args...))
}

// exported plans and exports without a scanner, and returns the bundle.
func (l *lab) exported() (bundlePath string) {
	l.T.Helper()
	l.mustRun("plan")
	l.mustRun("export", "--no-scan", "--to", "medium")
	return "medium/plant-1-000001.tar"
}

// manifest gives the manifest of a bundle in the lab.
func (l *lab) manifest(bundlePath string) *bundle.Manifest {
	l.T.Helper()
	var text bytes.Buffer
	c := l.Command("tar", "-xOf", bundlePath, "packhof.json")
	c.Stdout = &text
	if err := c.Run(); err != nil {
		l.T.Fatalf("take packhof.json out of %s: %v", bundlePath, err)
	}
	return manifestOf(l.T, text.Bytes())
}

// snapshot is every file, link and folder below the lab with its content,
// except for the store, which is held to its own rule: what is under a digest
// has that digest, and nothing else is left there.
type snapshot map[string]string

func (l *lab) snapshot() snapshot {
	l.T.Helper()
	s, err := treeState(l.Dir, func(store string) error { l.checkStore(store); return nil })
	if err != nil {
		l.T.Fatal(err)
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

// checkStore makes sure that a command that has ended, however it ended, left
// no half blob under a digest and nothing under a temporary name.
func (l *lab) checkStore(dir string) {
	l.T.Helper()
	for _, empty := range []string{"ingest", "work"} {
		left, err := os.ReadDir(filepath.Join(dir, empty))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.T.Fatal(err)
		}
		for _, entry := range left {
			l.T.Errorf("the store has %s/%s left over", empty, entry.Name())
		}
	}
	testkit.CheckBlobs(l.T, filepath.Join(dir, "blobs", "sha256"))
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
	l.T.Helper()
	if l.Read(a) != l.Read(b) {
		l.T.Errorf("%s and %s differ", a, b)
	}
}
