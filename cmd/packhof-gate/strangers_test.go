package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
)

// spread is a lab with a bundle in volumes on the medium, of which each holds a
// piece of one blob.
func spread(t *testing.T, bytes int) (l *lab, volumes []string) {
	t.Helper()
	l = newLab(t)
	l.Write("notes/large.bin", string(testkit.Bytes("large", bytes)))
	l.mustPackhof("plan")
	l.mustPackhof("export", "--no-scan", "--to", "medium", "--volume-size", "64KiB")
	return l, l.volumesIn("medium")
}

// ways are those in which a set is judged on its medium.
var ways = [][]string{{"packhof", "verify"}, {"packhof-gate", "verify"}, {"packhof-gate", "receive"}}

// judged runs one of them for a set.
func (l *lab) judged(way []string, more ...string) outcome {
	l.T.Helper()
	return l.Finish(l.Command(way[0], append([]string{way[1], "medium"}, more...)...))
}

// refused wants exit code 11 with a code and texts, whoever judges.
func (l *lab) refused(code string, texts ...string) {
	l.T.Helper()
	for _, way := range ways {
		o := l.judged(way)
		if o.Exit != 11 || !strings.Contains(o.Stderr, "code: "+code) {
			l.T.Errorf("%s: exit %d\n%s%s", way, o.Exit, o.Stdout, o.Stderr)
		}
		for _, text := range texts {
			if !strings.Contains(o.Stderr, text) {
				l.T.Errorf("%s does not say %q:\n%s", way, text, o.Stderr)
			}
		}
	}
}

// TestForgedVolumeIsNotSound: a volume whose changed piece fits its own sums is
// sound alone, and both proofs of the set say what receive says.
func TestForgedVolumeIsNotSound(t *testing.T) {
	t.Parallel()
	l, volumes := spread(t, 100<<10)
	l.Write(volumes[0], forgePiece(t, l.Read(volumes[0])))
	for i, way := range ways {
		o := l.judged(way)
		if o.Exit != 11 || !strings.Contains(o.Stderr, "code: volume/") {
			t.Errorf("%s: exit %d\n%s%s", way, o.Exit, o.Stdout, o.Stderr)
		}
		if i < 2 && len(l.cases()) > 0 {
			t.Errorf("%s made a case", way)
		}
	}
	if o := l.run("verify", volumes[1]); o.Exit != 0 {
		t.Errorf("a good volume alone: exit %d\n%s", o.Exit, o.Stderr)
	}
}

// TestStrangerIsNamed: beside the good volume the forged one is named, counts
// for nothing and is in no document.
func TestStrangerIsNamed(t *testing.T) {
	t.Parallel()
	l, volumes := spread(t, 100<<10)
	for _, name := range []string{"0.tar", "z.tar"} {
		l := l.clone(t)
		l.Write("medium/"+name, forgePiece(t, l.Read(volumes[0])))
		for _, way := range ways {
			o := l.judged(way, "-o", "json")
			if o.Exit != 0 || way[1] == "verify" && strings.Contains(o.Stdout, name) {
				t.Errorf("%s beside %s: exit %d\n%s%s", way, name, o.Exit, o.Stdout, o.Stderr)
			}
			if named := strings.Contains(o.Stderr, "warning: "+name+" was left out"); !named && (way[1] == "verify" || name == "0.tar") {
				t.Errorf("%s does not name %s:\n%s", way, name, o.Stderr)
			}
		}
		if o := l.mustPackhof("verify", "medium"); !strings.Contains(o.Stdout, fmt.Sprintf("%d volumes, strict profile", len(volumes))) {
			t.Errorf("a stranger is counted:\n%s", o.Stdout)
		}
		l.Remove(volumes[2])
		for _, way := range ways[:2] {
			if o := l.judged(way); o.Exit != 3 || !strings.Contains(o.Stderr, "claim one place") {
				t.Errorf("%s of a part: exit %d\n%s", way, o.Exit, o.Stderr)
			}
		}
	}
}

// TestMoreForgeriesThanChoices: what cannot be told by trying names all of them,
// and what helps.
func TestMoreForgeriesThanChoices(t *testing.T) {
	t.Parallel()
	l, volumes := spread(t, 300<<10)
	if len(volumes) < 6 {
		t.Fatalf("%d volumes", len(volumes))
	}
	for i, name := range volumes[:6] {
		l.Write(fmt.Sprintf("medium/%d.tar", i), forgePiece(t, l.Read(name)))
	}
	l.refused("volume/", "suspects:  0.tar, "+filepath.Base(volumes[0]), "put only the files of the set into a folder of their own")
}

// TestSpoiltHead: a head that does not fit the sums of its own volume is damage
// and no forgery: it makes no case, and beside a whole set it is a stranger.
func TestSpoiltHead(t *testing.T) {
	t.Parallel()
	l, volumes := spread(t, 100<<10)
	for entry, change := range map[string][2]string{
		"packhof.json": {`"serial":1`, `"serial":3`},
		"signatures/":  {`"signature":"`, `"signaturf":"`},
	} {
		l := l.clone(t)
		spoilt := l.Read(volumes[1])
		if strings.Count(spoilt, change[0]) == 0 {
			t.Fatalf("no %s in the volume", change[0])
		}
		spoilt = strings.Replace(spoilt, change[0], change[1], 1)
		whole := l.clone(t)
		whole.Write("medium/spoilt.tar", spoilt)
		for _, way := range ways {
			o := whole.judged(way)
			if o.Exit != 0 || !strings.Contains(o.Stderr, "warning: ") || !strings.Contains(o.Stderr, "spoilt.tar is damaged") {
				t.Errorf("%s, %s beside the set: exit %d\n%s", entry, way, o.Exit, o.Stderr)
			}
		}
		l.Write(volumes[1], spoilt)
		l.refused("volume/damaged", filepath.Base(volumes[1])+` is damaged: entry "`+entry, "missing")
		if got := l.cases(); len(got) != 1 || got[0].State != "received" {
			t.Errorf("%s: %v", entry, got)
		}
	}
}

// TestPassedOver: a file that is called as a volume and is none is named where a
// volume is missing, and nowhere else.
func TestPassedOver(t *testing.T) {
	t.Parallel()
	l, volumes := spread(t, 100<<10)
	l.Write("medium/other.tar", "no volume")
	for _, way := range ways {
		if o := l.clone(t).judged(way); o.Exit != 0 || strings.Contains(o.Stderr, "other.tar") {
			t.Errorf("%s of a whole set: exit %d\n%s", way, o.Exit, o.Stderr)
		}
	}
	l.Write(volumes[1], "q"+l.Read(volumes[1])[1:])
	l.Write("medium/empty.age", "")
	l.Write("medium/lost.age", "bge-encryption.org/v1\n")
	for _, way := range ways {
		o := l.judged(way)
		if o.Exit != 3 || strings.Contains(o.Stderr, "empty.age") {
			t.Errorf("%s: exit %d\n%s", way, o.Exit, o.Stderr)
		}
		for _, name := range []string{filepath.Base(volumes[1]), "lost.age", "other.tar"} {
			if want := "passed over:  " + name + ": is no volume"; !strings.Contains(o.Stderr, want) {
				t.Errorf("%s does not say %q:\n%s", way, want, o.Stderr)
			}
		}
	}
}

// TestNameOfABundle: one that says nothing that can be read has its file's name.
func TestNameOfABundle(t *testing.T) {
	s := receiverAt(t, nil, gate.Lacking{}).site
	for want, b := range map[string]bundleAt{
		"a.tar":             {name: "a.tar"},
		"plant-1, serial 2": {name: "b.tar", channel: "plant-1", serial: 2},
	} {
		if got := s.nameOf(b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
