package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// receiverAt is a receiver that has come so far, and speaks English.
func receiverAt(t *testing.T, last *gate.Case, lacks gate.Lacking) *receiver {
	t.Helper()
	s := &site{app: &cli.App{Now: testkit.Noon}}
	if err := (language{s}).Set("en"); err != nil {
		t.Fatal(err)
	}
	on := &reception{site: s, names: []string{"/media/usb"}}
	return &receiver{reception: on, last: last, lacks: lacks, done: map[string]bool{}, wrong: map[string]bool{}}
}

// TestWhatIsStillToCome is said whatever the volumes that came tell of others.
func TestWhatIsStillToCome(t *testing.T) {
	begun := &gate.Case{Summary: gate.Summary{ID: 7, Size: 10, State: gate.Received}, Progress: 4}
	for name, c := range map[string]struct {
		last    *gate.Case
		lacks   gate.Lacking
		code    string
		says    string
		waiting string
	}{
		"volumes":             {begun, gate.Lacking{Bytes: 6, Volumes: []int{1, 3, 4, 5}, Of: 5}, "receive/incomplete", "volumes 1, 3 to 5 of 5 are missing", "waiting for volume 1, 3–5 of 5:"},
		"in no volume of it":  {begun, gate.Lacking{Bytes: 6, Of: 1}, "receive/lacking", "does not bring 6 bytes", "waiting for 6 bytes that are lacking:"},
		"first was damaged":   {begun, gate.Lacking{}, "receive/lacking", "does not bring 6 bytes", "waiting for 6 bytes that are lacking:"},
		"no medium was there": {nil, gate.Lacking{}, "", "", "waiting for a medium at /media/usb;"},
	} {
		r := receiverAt(t, c.last, c.lacks)
		if got := r.awaited(); !strings.HasPrefix(got, c.waiting) {
			t.Errorf("%s: %q", name, got)
		}
		if c.last == nil {
			continue
		}
		if err := r.incomplete(); cli.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPassing: while media are waited for, what is wrong with one volume or
// with the place is over with the next medium, and nothing else is.
func TestPassing(t *testing.T) {
	for _, err := range []error{
		problem.New("volume/damaged", "x"), problem.New("volume/not-a-bundle", "x"), problem.New("receive/unreadable", "x"),
		&os.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, &os.PathError{Op: "read", Path: "x", Err: syscall.EIO}, nothingThere{errors.New("x")},
	} {
		if !isPassing(err) {
			t.Errorf("%v ends the wait", err)
		}
	}
	for _, err := range []error{problem.New("signing/not-genuine", "x"), problem.New("receive/several", "x"), errors.New("x")} {
		if isPassing(err) {
			t.Errorf("%v does not end the wait", err)
		}
	}
}

// TestFailedVolumesAreLookedAtAgain once their medium was gone, and others are
// not.
func TestFailedVolumesAreLookedAtAgain(t *testing.T) {
	r := receiverAt(t, nil, gate.Lacking{})
	r.done = map[string]bool{"taken": true, "failed": false, "failed and there": false}
	r.forgetFailed([]volumeAt{{mark: "failed and there"}})
	if _, seen := r.done["failed"]; seen || len(r.done) != 2 {
		t.Errorf("%v", r.done)
	}
}

// TestOneOfSeveralBundles: once it is known which bundle is meant, others at
// the same place do not count, nor do files that lie beside it.
func TestOneOfSeveralBundles(t *testing.T) {
	dir := t.TempDir()
	var manifests []string
	for i, name := range []string{"a.tar", "b.tar"} {
		f := testkit.Forge(t, func(m *bundle.Manifest) { m.Serial = int64(1 + i) })
		if err := os.WriteFile(dir+"/"+name, f.Volume, 0o600); err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, f.Head.Digest().String())
	}
	if err := os.WriteFile(dir+"/a.packhof.json", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&site{dir: t.TempDir()}).volumesAt([]string{dir}, ""); cli.CodeOf(err) != "receive/several" {
		t.Errorf("two bundles: %v", err)
	}
	found, err := (&site{dir: t.TempDir()}).volumesAt([]string{dir}, manifests[1])
	if err != nil || len(found.volumes) != 1 || found.volumes[0].path != dir+"/b.tar" {
		t.Errorf("the second of them: %+v, %v", found, err)
	}
	if _, err := (&site{dir: t.TempDir()}).volumesAt([]string{dir}, "another"); !isNothing(err) {
		t.Errorf("neither of them: %v", err)
	}
	if found, err := (&site{dir: t.TempDir()}).volumesAt([]string{dir + "/a.packhof.json", dir + "/a.tar"}, ""); err != nil || len(found.volumes) != 1 {
		t.Errorf("with the file beside it: %+v, %v", found, err)
	}
	if _, err := (&site{dir: t.TempDir()}).volumesAt([]string{dir + "/a.packhof.json"}, ""); cli.CodeOf(err) != "receive/no-bundle" {
		t.Errorf("the file beside it alone: %v", err)
	}
}

// TestVerifiedVolumes says what is whole, and what is not here.
func TestVerifiedVolumes(t *testing.T) {
	s := receiverAt(t, nil, gate.Lacking{}).site
	volume := func(n int, missing ...int) gate.Verification {
		return gate.Verification{Channel: "plant-1", Serial: 1, Volume: bundle.VolumeState{Number: n, Count: 3}, Missing: missing, Lacking: 9}
	}
	for want, doc := range map[string]verificationDocument{
		"genuine, fresh and whole: ":          {Verification: gate.Verification{}},
		"not here: volume 2, 3 of 3, ":        {Verification: volume(1, 2, 3)},
		"not here: volume 2 of 3, ":           {Verification: volume(1, 2, 3), Others: []gate.Verification{volume(3, 1, 2)}},
		"all volumes of the set are here, ":   {Verification: volume(1, 2, 3), Others: []gate.Verification{volume(2, 1, 3), volume(3, 1, 2)}},
		"the set brings a part: 9 B of the b": {Verification: volume(1)},
	} {
		var out bytes.Buffer
		doc.table(&out, s)
		if !strings.Contains(out.String(), want) || doc.Lacking > 0 == strings.Contains(out.String(), "whole") {
			t.Errorf("not %q:\n%s", want, out.String())
		}
	}
}
