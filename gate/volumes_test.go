package gate_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// volumes writes a bundle as volumes of at most so many bytes.
func volumes(t *testing.T, f *testkit.Forged, dir string, limit int64) []string {
	t.Helper()
	set, err := bundle.PlanSet(f.Head, bundle.SetOptions{Limits: []int64{limit}})
	if err != nil {
		t.Fatal(err)
	}
	written, err := set.WriteTo(t.Context(), dir, f.Content, bundle.SetWriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, w := range written {
		paths = append(paths, w.Path)
	}
	return paths
}

// inVolumes is a bundle whose content is spread over several volumes, one file
// cut between them.
func inVolumes(t *testing.T, l *lab) (*testkit.Forged, []string) {
	t.Helper()
	f := l.forge(nil)
	large := bytes.Repeat([]byte("0123456789abcdef"), 2000)
	f.AddTree(t, bundle.Files, "large", []bundle.File{{Path: "large.txt", Size: int64(len(large)), Digest: f.Content.Add(large)}})
	manifest, err := bundle.EncodeManifest(f.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Seal(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
	l.trust(f)
	paths := volumes(t, f, l.t.TempDir(), int64(len(f.Volume))-20_000)
	if len(paths) < 3 {
		t.Fatalf("only %d volumes", len(paths))
	}
	return f, paths
}

// TestVolumesComeOneByOne: the case waits, says for what, survives a restart,
// and goes on by itself with the last volume, whichever that is.
func TestVolumesComeOneByOne(t *testing.T) {
	l := newLab(t)
	f, paths := inVolumes(t, l)
	slices.Reverse(paths)
	for i, path := range paths {
		c, err := l.gate.Receive(t.Context(), operator, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == len(paths)-1 {
			if c.State != gate.Awaiting || c.Lacks != nil || c.Progress != c.Size {
				t.Errorf("after the last volume: %s, lacks %+v, problem %+v", c.State, c.Lacks, c.Problem)
			}
			break
		}
		if c.State != gate.Received || c.Lacks == nil || c.Lacks.Of != len(paths) || len(c.Lacks.Volumes) != len(paths)-1-i || c.Lacks.Bytes != c.Size-c.Progress {
			t.Errorf("after volume %d of %d: %s, lacks %+v, %d of %d bytes", i+1, len(paths), c.State, c.Lacks, c.Progress, c.Size)
		}
		if _, err := l.gate.Release(t.Context(), operator, c.ID, nil); problem.CodeOf(err) != "case/unfinished" {
			t.Errorf("a part of a bundle was released: %v", err)
		}
		again, err := l.gate.Receive(t.Context(), operator, path, nil)
		if err != nil || again.Known || !again.KnownVolume || !again.Waiting || again.Lacks == nil || again.Lacks.Bytes != c.Lacks.Bytes {
			t.Errorf("the same volume again: %+v, %v", again.Lacks, err)
		}
		l.restart()
		if err := l.gate.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if shown, err := l.gate.Case(t.Context(), operator, c.ID); err != nil || shown.State != gate.Received || !shown.Waiting || shown.Progress != c.Progress {
			t.Errorf("after a restart: %s with %d bytes, %v", shown.State, shown.Progress, err)
		}
	}
	l.approve(1)
	if c := l.mustRelease(1); c.State != gate.Loaded {
		t.Errorf("released: %s", c.State)
	}
	if tag, err := l.gate.Depot().Tag(t.Context(), "large", "1.0"); err != nil || tag.Digest != f.Manifest.Artifacts[1].Root.Digest {
		t.Errorf("depot: %+v, %v", tag, err)
	}
}

// TestADamagedVolumeCostsOnlyItself: the others count, and a sound copy of it
// makes the bundle whole.
func TestADamagedVolumeCostsOnlyItself(t *testing.T) {
	l := newLab(t)
	_, paths := inVolumes(t, l)
	good, err := os.ReadFile(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(good)
	bad[bytes.LastIndex(bad, []byte("SHA256SUMS"))-600] ^= 1
	for i, path := range paths {
		if i == 1 {
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := l.gate.Receive(t.Context(), operator, path, nil)
		if i == 1 {
			if problem.CodeOf(err) != "volume/damaged" || c == nil || c.State != gate.Received || c.Problem != nil {
				t.Fatalf("the damaged volume: %+v, %v", c, err)
			}
			checkNamed(t, err, c, filepath.Base(path))
		} else if err != nil {
			t.Fatal(err)
		}
	}
	sound := filepath.Join(t.TempDir(), "copied again.tar")
	if err := os.WriteFile(sound, good, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := l.gate.Receive(t.Context(), operator, sound, nil)
	if err != nil || c.State != gate.Awaiting || c.Lacks != nil {
		t.Errorf("with a sound copy: %+v, %v", c, err)
	}
}

// checkNamed makes sure that an error and the newest event of its case say which
// file is damaged.
func checkNamed(t *testing.T, err error, c *gate.Case, file string) {
	t.Helper()
	var evident interface{ Evidence() []string }
	if !errors.As(err, &evident) || evident.Evidence()[0] != "file:  "+file {
		t.Errorf("the error does not name %s: %v", file, err)
	}
	if e := c.History[len(c.History)-1]; e.Type != "case.damaged" || e.Detail != file+" is damaged" {
		t.Errorf("the newest event is %+v", e)
	}
}

// TestSegmentsThatDoNotFit: volumes that are each sound and make a wrong blob
// are in the history, without a word against any of them; once the wrong one
// is replaced, the case goes on.
func TestSegmentsThatDoNotFit(t *testing.T) {
	l := newLab(t)
	_, paths := inVolumes(t, l)
	wrong := 0
	var c *gate.Case
	for _, path := range paths {
		genuine := forgeSegment(t, path, wrong == 0)
		var err error
		if c, err = l.gate.Receive(t.Context(), operator, path, nil); problem.CodeOf(err) == "volume/pieces-wrong" {
			wrong = len(c.History)
			if e := c.History[wrong-1]; e.Type != "case.damaged" || e.Code != "volume/pieces-wrong" || strings.Contains(e.Detail, ".tar") || c.State != gate.Received {
				t.Errorf("%s, %+v", c.State, e)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, genuine, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if wrong == 0 {
		t.Fatal("what does not fit was taken")
	}
	for _, path := range paths {
		var err error
		if c, err = l.gate.Receive(t.Context(), operator, path, nil); err != nil {
			t.Fatal(err)
		}
	}
	if c.State != gate.Awaiting {
		t.Errorf("with what is genuine: %s, lacks %+v", c.State, c.Lacks)
	}
}

// forgeSegment changes a byte of a segment in a volume, and its line of
// SHA256SUMS with it, if it has one; it gives what the volume was.
func forgeSegment(t *testing.T, path string, change bool) (genuine []byte) {
	t.Helper()
	genuine, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(bytes.NewReader(genuine)); change; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(h.Name, ".s0") {
			continue
		}
		segment, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		forged := bytes.Clone(segment)
		forged[1] ^= 1
		volume := bytes.Replace(genuine, segment, forged, 1)
		volume = bytes.ReplaceAll(volume, []byte(cas.DigestOf(segment).Hex()), []byte(cas.DigestOf(forged).Hex()))
		if err := os.WriteFile(path, volume, 0o600); err != nil {
			t.Fatal(err)
		}
		break
	}
	return genuine
}

// TestATornVolumeIsInTheHistory of the case that it belongs to, and leaves it as
// it is; before there is a case, it makes none.
func TestATornVolumeIsInTheHistory(t *testing.T) {
	l := newLab(t)
	_, paths := inVolumes(t, l)
	torn := filepath.Join(t.TempDir(), "torn.tar")
	b, err := os.ReadFile(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(torn, b[:len(b)-1024], 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := l.gate.Receive(t.Context(), operator, torn, nil); problem.CodeOf(err) != "volume/damaged" || c != nil {
		t.Errorf("first of all a torn volume: %+v, %v", c, err)
	}
	if _, err := l.gate.Receive(t.Context(), operator, paths[0], nil); err != nil {
		t.Fatal(err)
	}
	c, err := l.gate.Receive(t.Context(), operator, torn, nil)
	if problem.CodeOf(err) != "volume/damaged" || c == nil || c.State != gate.Received || c.Problem != nil || !c.Waiting {
		t.Fatalf("a torn volume: %+v, %v", c, err)
	}
	checkNamed(t, err, c, "torn.tar")
	if _, err := l.gate.WantList(t.Context(), operator, c.ID); err != nil {
		t.Error(err)
	}
	if _, err := l.gate.WantList(t.Context(), operator, c.ID+1); problem.CodeOf(err) != "case/unknown" {
		t.Errorf("what a case that there is not lacks: %v", err)
	}
	if all, err := l.gate.Cases(t.Context(), operator); err != nil || len(all) != 1 || !all[0].Waiting {
		t.Errorf("the list: %+v, %v", all, err)
	}
}

// TestPreviewOfAVolume: what a single volume of many tells, and that proving it
// says how much that is.
func TestPreviewOfAVolume(t *testing.T) {
	l := newLab(t)
	_, paths := inVolumes(t, l)
	for _, path := range paths {
		p, err := l.gate.Preview(t.Context(), operator, path)
		if err != nil || !p.Genuine || p.Decision == nil {
			t.Errorf("%s: %+v, %v", path, p, err)
		}
		v, err := l.gate.VerifyFile(t.Context(), operator, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(v.Checks, func(c gate.VerificationCheck) bool { return c.Name == "blobs" })
		if len(v.Missing) != len(paths)-1 || slices.Contains(v.Missing, v.Volume.Number) || v.Volume.Count != len(paths) || v.Lacking <= 0 {
			t.Errorf("%s: volume %+v, missing %v, lacking %d", path, v.Volume, v.Missing, v.Lacking)
		}
		if i < 0 || !strings.Contains(v.Checks[i].Detail, "are in this volume") {
			t.Errorf("%s claims %+v", path, v.Checks)
		}
	}
	if _, err := l.gate.Receive(t.Context(), operator, filepath.Dir(paths[0]), nil); problem.CodeOf(err) != "volume/not-a-file" {
		t.Errorf("a folder was received: %v", err)
	}
}

// TestProgressIsThatOfTheMedium: copying one of several volumes counts what it
// holds, and comes to its end.
func TestProgressIsThatOfTheMedium(t *testing.T) {
	l := newLab(t)
	_, paths := inVolumes(t, l)
	var last gate.Progress
	c, err := l.gate.Receive(t.Context(), operator, paths[1], func(p gate.Progress) {
		if p.Phase == "copy" {
			last = p
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if last.Done != last.Total || last.Total <= 0 || last.Total >= c.Size {
		t.Errorf("copied %d of %d bytes, from one volume of a bundle of %d", last.Done, last.Total, c.Size)
	}
}

// TestEveryVolumeIsWrittenDown: the one that makes a bundle whole, too.
func TestEveryVolumeIsWrittenDown(t *testing.T) {
	l := newLab(t)
	_, paths := inVolumes(t, l)
	var c *gate.Case
	for _, path := range paths {
		var err error
		if c, err = l.gate.Receive(t.Context(), operator, path, nil); err != nil {
			t.Fatal(err)
		}
	}
	written := 0
	for _, e := range c.History {
		if e.Type == "case.volume" {
			written++
		}
	}
	if written != len(paths) {
		t.Errorf("%d volumes of %d stand in the history: %+v", written, len(paths), c.History)
	}
}
