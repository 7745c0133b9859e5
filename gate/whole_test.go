package gate_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
)

// following is a bundle with the content of f, large file included, and the next
// serial.
func following(t *testing.T, l *lab, f *testkit.Forged, serial int64) *testkit.Forged {
	t.Helper()
	n := l.next(f, serial)
	large := bytes.Repeat([]byte("0123456789abcdef"), 2000)
	n.AddTree(t, bundle.Files, "large", []bundle.File{{Path: "large.txt", Size: int64(len(large)), Digest: n.Content.Add(large)}})
	manifest, err := bundle.EncodeManifest(n.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Seal(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	return n
}

func (l *lab) caseNow(id gate.CaseID) *gate.Case {
	l.t.Helper()
	c, err := l.gate.Case(l.t.Context(), operator, id)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func (l *lab) doctorOfCases() gate.Check {
	l.t.Helper()
	checks, err := l.gate.Doctor(l.t.Context(), operator)
	if err != nil {
		l.t.Fatal(err)
	}
	return checks[slices.IndexFunc(checks, func(c gate.Check) bool { return c.Name == "cases" })]
}

// TestWhatAnotherBundleBroughtMakesACaseGoOn: the case of which nothing is
// lacking any more is proven, looked into and judged by itself.
func TestWhatAnotherBundleBroughtMakesACaseGoOn(t *testing.T) {
	l := newLab(t)
	f, paths := inVolumes(t, l)
	if _, err := l.gate.Receive(t.Context(), operator, paths[0], nil); err != nil {
		t.Fatal(err)
	}
	two := l.mustReceive(following(t, l, f, 2))
	one := l.caseNow(1)
	if one.State != gate.Awaiting || one.Lacks != nil || two.ID != 2 || two.State != gate.Awaiting {
		t.Fatalf("case 1 is %s, lacks %+v; case %d is %s", one.State, one.Lacks, two.ID, two.State)
	}
	i := slices.IndexFunc(one.History, func(e gate.Event) bool { return e.Type == "case.verified" })
	if i < 0 || one.History[i].Actor != "gate" {
		t.Errorf("nobody proved it: %+v", one.History)
	}
	l.approve(1)
	l.mustRelease(1)
}

// TestRottenContentLetsNoCaseGoOn: what is here by its name only is read before
// it counts, and then it is lacking.
func TestRottenContentLetsNoCaseGoOn(t *testing.T) {
	l := newLab(t)
	f, paths := inVolumes(t, l)
	if _, err := l.gate.Receive(t.Context(), operator, paths[0], nil); err != nil {
		t.Fatal(err)
	}
	l.stopAt("verified:after", func() { l.mustFail(following(t, l, f, 2)) })
	if c := l.caseNow(1); c.State != gate.Received || c.Progress != c.Size || c.Lacks != nil {
		t.Fatalf("%s, %d of %d bytes, lacks %+v", c.State, c.Progress, c.Size, c.Lacks)
	}
	var largest bundle.Blob
	for _, b := range f.Manifest.Blobs {
		if b.Size > largest.Size {
			largest = b
		}
	}
	blob := filepath.Join(l.dir, "store", "blobs", "sha256", largest.Digest.Hex())
	if err := errors.Join(os.Chmod(blob, 0o644), os.WriteFile(blob, make([]byte, largest.Size), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := l.gate.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := l.caseNow(1); c.State != gate.Received || c.Size-c.Progress != largest.Size {
		t.Errorf("with rotten content: %s, %d of %d bytes", c.State, c.Progress, c.Size)
	}
}

// stopAt has the gate stop at a point while do runs.
func (l *lab) stopAt(point string, do func()) {
	l.t.Helper()
	l.fault = func(at string) error {
		if at == point {
			return errors.New("stopped")
		}
		return nil
	}
	do()
	l.fault = nil
}

func (l *lab) mustFail(f *testkit.Forged) {
	l.t.Helper()
	if _, err := l.receive(f); err == nil {
		l.t.Fatal("it was received")
	}
}

// TestACaseThatIsWholeIsNamedAndGoesOn: where the gate was stopped before it
// could have a case go on, doctor names it and the next start has it go on;
// what fails with that case fails no receive.
func TestACaseThatIsWholeIsNamedAndGoesOn(t *testing.T) {
	l := newLab(t)
	f, paths := inVolumes(t, l)
	if _, err := l.gate.Receive(t.Context(), operator, paths[0], nil); err != nil {
		t.Fatal(err)
	}
	if c := l.doctorOfCases(); c.Result != gate.CheckOK {
		t.Errorf("while volumes are missing: %+v", c)
	}
	times := 0
	l.fault = func(at string) error {
		if at == "verified:before" {
			if times++; times == 2 { // that of the other case
				return errors.New("stopped")
			}
		}
		return nil
	}
	if c := l.mustReceive(following(t, l, f, 2)); c.State != gate.Awaiting || times != 2 {
		t.Errorf("the bundle that brought it: %s, %d cases verified", c.State, times)
	}
	l.fault = nil
	if c := l.doctorOfCases(); c.Result != gate.CheckWarning || !strings.Contains(c.Detail, "case 1 is all here") {
		t.Errorf("doctor: %+v", c)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.gate.Resume(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	l.restart()
	if err := l.gate.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := l.caseNow(1); c.State != gate.Awaiting {
		t.Errorf("after a start: %s", c.State)
	}
	if c := l.doctorOfCases(); c.Result != gate.CheckOK {
		t.Errorf("doctor, then: %+v", c)
	}
}

// TestWhichVolumesAreMissing is known after a restart too, and no longer once
// another bundle has brought some of it.
func TestWhichVolumesAreMissing(t *testing.T) {
	l := newLab(t)
	f, paths := inVolumes(t, l)
	received, err := l.gate.Receive(t.Context(), operator, paths[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	l.restart()
	c := l.caseNow(1)
	if c.Lacks == nil || !slices.Equal(c.Lacks.Volumes, received.Lacks.Volumes) || slices.Contains(c.Lacks.Volumes, 2) || c.Lacks.Bytes != received.Lacks.Bytes || c.Lacks.Of != len(paths) {
		t.Fatalf("lacks %+v, and %+v when it was received", c.Lacks, received.Lacks)
	}
	l.mustReceive(l.next(f, 2))
	if c := l.caseNow(1); c.State != gate.Received || c.Lacks != nil || c.Progress <= received.Progress {
		t.Errorf("after another bundle: %s, %d bytes instead of %d, lacks %+v", c.State, c.Progress, received.Progress, c.Lacks)
	}
}

// TestACaseThatWasOvertaken says so until its end, and so do the list and what
// is decided on.
func TestACaseThatWasOvertaken(t *testing.T) {
	l, f, id, _ := waiting(t, 1)
	if c := l.caseNow(id); c.Later != nil {
		t.Errorf("before: %+v", c.Later)
	}
	two := l.mustReceive(l.next(f, 2))
	l.approve(two.ID)
	l.mustRelease(two.ID)
	want := gate.ReviewLater{Case: two.ID, Epoch: 1, Serial: 2}
	all, err := l.gate.Cases(t.Context(), operator)
	if err != nil {
		t.Fatal(err)
	}
	listed := all[slices.IndexFunc(all, func(s gate.Summary) bool { return s.ID == id })]
	if c := l.caseNow(id); c.Later == nil || *c.Later != want || listed.Later == nil || *listed.Later != want {
		t.Errorf("the case: %+v, in the list: %+v", c.Later, listed.Later)
	}
	l.approve(id)
	if c := l.mustRelease(id); c.Later != nil {
		t.Errorf("at its end: %+v", c.Later)
	}
	if c := l.caseNow(two.ID); c.Later != nil {
		t.Errorf("the later one: %+v", c.Later)
	}
}

// TestAnEarlierSerialIsUnfinished: what is decided on says so, an approval is
// bound to it, and it ends when the rest has come.
func TestAnEarlierSerialIsUnfinished(t *testing.T) {
	l := newLab(t)
	f, paths := inVolumes(t, l)
	if _, err := l.gate.Receive(t.Context(), operator, paths[0], nil); err != nil {
		t.Fatal(err)
	}
	two := l.mustReceive(l.next(f, 2))
	before := mustReview(l, two.ID)
	if !slices.Equal(before.Review.Unfinished, []int64{1}) || len(before.Review.Missing) != 0 {
		t.Fatalf("unfinished %v, missing %v", before.Review.Unfinished, before.Review.Missing)
	}
	l.approve(two.ID)
	for _, path := range paths[1:] {
		if _, err := l.gate.Receive(t.Context(), operator, path, nil); err != nil {
			t.Fatal(err)
		}
	}
	after := mustReview(l, two.ID)
	if after.Review.Unfinished != nil || after.Digest == before.Digest || after.Decisions[0].Counts {
		t.Errorf("with the rest: unfinished %v, decisions %+v", after.Review.Unfinished, after.Decisions)
	}
	if mustReview(l, 1).Review.Unfinished != nil {
		t.Error("the first serial has one before it")
	}
}
