package gate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
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
		if _, err := l.gate.Release(t.Context(), operator, c.ID, nil); err == nil {
			t.Error("a part of a bundle was released")
		}
		again, err := l.gate.Receive(t.Context(), operator, path, nil)
		if err != nil || !again.Known || again.Lacks == nil || again.Lacks.Bytes != c.Lacks.Bytes {
			t.Errorf("the same volume again: %+v, %v", again.Lacks, err)
		}
		l.restart()
		if err := l.gate.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		if shown, err := l.gate.Case(t.Context(), operator, c.ID); err != nil || shown.State != gate.Received || shown.Progress != c.Progress {
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
			if codeOf(err) != "volume/damaged" || c == nil {
				t.Fatalf("the damaged volume: %v, %v", c, err)
			}
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
		if i < 0 || !strings.Contains(v.Checks[i].Detail, "are in this volume") {
			t.Errorf("%s claims %+v", path, v.Checks)
		}
	}
	if _, err := l.gate.Receive(t.Context(), operator, filepath.Dir(paths[0]), nil); codeOf(err) != "volume/not-a-file" {
		t.Errorf("a folder was received: %v", err)
	}
}
