package main

import (
	"encoding/json/v2"
	"os"
	"syscall"
	"testing"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
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
	*testkit.Lab
	vacate func() // undoes occupy
}

type (
	outcome = testkit.Outcome
	running = testkit.Running
)

// environment is that of every program here.
func environment() []string {
	return []string{"PACKHOF_PASSPHRASE=" + passphrase, "PACKHOF_DATA=data", "PACKHOF_PASSWORD=" + password}
}

// emptyLab is a lab before its first day.
func emptyLab(t testing.TB) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("needs packhof, which short tests do not build")
	}
	l := &lab{Lab: testkit.NewLab(t, environment()...)}
	l.mustPackhof("init")
	l.Write("packhof.yaml", notes)
	l.Write("notes/README.md", "read me\n")
	l.Write("notes/data/values.csv", "a,b\n1,2\n")
	l.Mkdir("medium")
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
	l.T.Helper()
	l.must("init", "--owner", "Plant 1, hall B")
	l.mustPackhof("key", "generate")
	l.mustPackhof("trust", "init", "--owner", "release@example")
	l.mustPackhof("trust", "add-gate", "data/enrol.json", "--fingerprint", l.fingerprint("data/enrol.json"))
}

func (l *lab) fingerprint(name string) string {
	l.T.Helper()
	return signing.FingerprintOf([]byte(l.Read(name))).String()
}

// exported plans and exports without a scanner.
func (l *lab) exported() {
	l.T.Helper()
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
	return &lab{Lab: l.Clone(t)}
}

func (l *lab) run(args ...string) outcome {
	l.T.Helper()
	return l.Finish(l.Command("packhof-gate", args...))
}

func (l *lab) must(args ...string) outcome {
	l.T.Helper()
	return l.MustFinish(l.Command("packhof-gate", args...))
}

func (l *lab) mustPackhof(args ...string) outcome {
	l.T.Helper()
	return l.MustFinish(l.Command("packhof", args...))
}

// review is the digest that a decision on a case is bound to.
func (l *lab) review(id string) string {
	l.T.Helper()
	var shown showDocument
	if err := json.Unmarshal([]byte(l.must("show", id, "-o", "json").Stdout), &shown); err != nil {
		l.T.Fatal(err)
	}
	return shown.Review.Digest
}

// approve lets a case through as anna.
func (l *lab) approve(id string) {
	l.T.Helper()
	l.must("approve", id, "--as", "anna", "--yes", "--review", l.review(id), "--reason", "read it")
}

// state is where a case stands.
func (l *lab) state(id string) gate.State {
	l.T.Helper()
	var shown showDocument
	if err := json.Unmarshal([]byte(l.must("show", id, "-o", "json").Stdout), &shown); err != nil {
		l.T.Fatal(err)
	}
	return shown.Case.State
}

// occupy holds the data directory as another process would, until the test
// ends.
func (l *lab) occupy() {
	l.T.Helper()
	f, err := os.OpenFile(l.Path("data/gate.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err == nil {
		_, err = f.WriteString("4711\n")
	}
	if err != nil {
		l.T.Fatal(err)
	}
	l.vacate = func() {
		if err := f.Close(); err != nil {
			l.T.Error(err)
		}
	}
}

// cases are all that there are.
func (l *lab) cases() []gate.Summary {
	l.T.Helper()
	var all struct {
		Cases []gate.Summary `json:"cases"`
	}
	if err := json.Unmarshal([]byte(l.must("list", "-o", "json").Stdout), &all); err != nil {
		l.T.Fatal(err)
	}
	return all.Cases
}

// checkStore makes sure that the gate's store holds no half blob under a
// digest, however the last command ended.
func (l *lab) checkStore() {
	l.T.Helper()
	testkit.CheckBlobs(l.T, l.Path("data/store/blobs/sha256"))
}
