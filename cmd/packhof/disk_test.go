package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/testkit"
)

// inNamespace runs a shell script in which file systems can be mounted that
// nobody else sees and that are gone afterwards.
func (l *lab) inNamespace(script string) outcome {
	l.T.Helper()
	if err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt").Run(); err != nil {
		l.T.Skipf("no file systems of one's own here: unshare -rm: %v", err)
	}
	return l.Finish(l.Command("unshare", "-rm", "sh", "-euc", script))
}

// checkFull holds an export that could not write against what it must say and
// what may be left on the disk, and makes sure that the tree is as before.
func (l *lab) checkFull(before snapshot, o outcome, code, left string) {
	l.T.Helper()
	if o.Exit != 1 || !strings.Contains(o.Stderr, "code: "+code+"   exit 1 ") {
		l.T.Errorf("exit %d, want 1 and the code %s:\n%s", o.Exit, code, o.Stderr)
	}
	if o.Stdout != left {
		l.T.Errorf("left on the disk:\n%swant:\n%s", o.Stdout, left)
	}
	if diff := cmp.Diff(before, l.snapshot()); diff != "" {
		l.T.Errorf("files have changed (-before +after):\n%s", diff)
	}
}

// withLarge gives a planned lab with an artifact of 6 MiB.
func withLarge(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.Write("notes/large.bin", string(testkit.Bytes("large", 6<<20)))
	l.mustRun("plan")
	return l
}

// exportSet is listRest for a set of volumes.
func exportSet(size string) string {
	return strings.Replace(listRest, "--no-scan", "--no-scan --volume-size "+size, 1)
}

// numbered tells whether an error has the numbers that were compared.
func numbered(o outcome, limit string) bool {
	return regexp.MustCompile(`\n  needed:  \d+ bytes\n  ` + limit + `: +\d+ bytes\n`).MatchString(o.Stderr)
}

// listRest prints what is left below a folder, and ends as packhof did.
const listRest = `
status=0
packhof --quiet export --no-scan --to medium || status=$?
find "$disk" -type f ! -path '*/blobs/sha256/*' ! -path '*/notes/*' ! -name lock ! -name packhof-store
exit $status
`

func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	// The store cannot take the blobs: found before the first is fetched.
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		l := withLarge(t)
		before := l.snapshot()
		o := l.inNamespace(`disk=.packhof; cp -r .packhof copy; mount -t tmpfs -o size=3m tmpfs .packhof
			cp -r copy/. .packhof; rm -r copy` + listRest)
		l.checkFull(before, o, "disk/full", "")
		if !regexp.MustCompile(`needed:  6291\d{3} bytes\n  free:    \d{6,7} bytes\n`).MatchString(o.Stderr) {
			t.Errorf("no numbers in\n%s", o.Stderr)
		}
	})
	// The store has the bytes and no entry for the last blobs: the system says
	// so in the middle.
	t.Run("store without entries", func(t *testing.T) {
		t.Parallel()
		l := withLarge(t)
		before := l.snapshot()
		o := l.inNamespace(`disk=.packhof; cp -r .packhof copy; mount -t tmpfs -o nr_inodes=$(($(find copy | wc -l) + 1)) tmpfs .packhof
			cp -r copy/. .packhof; rm -r copy` + listRest)
		l.checkFull(before, o, "disk/full", "")
		if strings.Contains(o.Stderr, "needed:") {
			t.Errorf("it was found before:\n%s", o.Stderr)
		}
	})
	// The medium is too small: found before the first byte is written.
	t.Run("medium", func(t *testing.T) {
		t.Parallel()
		l := withLarge(t)
		l.Mkdir("whole")
		l.mustRun("export", "--no-scan", "--to", "whole")
		before := l.snapshot()
		l.checkFull(before, l.inNamespace(`disk=medium; mount -t tmpfs -o size=3m tmpfs medium`+listRest), "medium/full", "")
	})
	// Nothing was fetched and sealed before: it is found before that, too.
	t.Run("medium, of a serial that is not sealed", func(t *testing.T) {
		t.Parallel()
		l := withLarge(t)
		before := l.snapshot()
		o := l.inNamespace(`disk=medium; mount -t tmpfs -o size=3m tmpfs medium` + listRest)
		l.checkFull(before, o, "medium/full", "")
		if !numbered(o, "free") {
			t.Errorf("no numbers in\n%s", o.Stderr)
		}
	})
	// All of a set is held against the medium before its first volume.
	t.Run("medium for a part of a set", func(t *testing.T) {
		t.Parallel()
		l := withLarge(t)
		l.Mkdir("whole")
		l.mustRun("export", "--no-scan", "--to", "whole")
		before := l.snapshot()
		o := l.inNamespace(`disk=medium; mount -t tmpfs -o size=5m tmpfs medium` + exportSet("2MiB"))
		l.checkFull(before, o, "medium/full", "")
		if !numbered(o, "free") {
			t.Errorf("no numbers in\n%s", o.Stderr)
		}
	})
	// The second volume of a set has no entry any more: the first one stays.
	t.Run("medium without entries for a set", func(t *testing.T) {
		t.Parallel()
		l := withLarge(t)
		l.Mkdir("whole")
		l.mustRun("export", "--no-scan", "--to", "whole")
		before := l.snapshot()
		first := strings.Replace(bundleFile, ".tar", ".v0001.tar", 1)
		l.checkFull(before, l.inNamespace(`disk=medium; mount -t tmpfs -o nr_inodes=2 tmpfs medium`+exportSet("4MiB")), "medium/full", first+"\n")
	})
	// The medium has the bytes and no entry for another file.
	t.Run("medium without entries", func(t *testing.T) {
		t.Parallel()
		l := withLarge(t)
		l.Mkdir("whole")
		l.mustRun("export", "--no-scan", "--to", "whole")
		before := l.snapshot()
		l.checkFull(before, l.inNamespace(`disk=medium; mount -t tmpfs -o nr_inodes=1 tmpfs medium`+listRest), "medium/full", "")
	})
	// The medium takes the volume, which stays, and not the manifest beside it.
	t.Run("medium for all but the last file", func(t *testing.T) {
		t.Parallel()
		l := withLarge(t)
		l.Mkdir("whole")
		l.mustRun("export", "--no-scan", "--to", "whole")
		before := l.snapshot()
		l.checkFull(before, l.inNamespace(`disk=medium; mount -t tmpfs -o nr_inodes=2 tmpfs medium`+listRest), "medium/full", bundleFile+"\n")
	})
}

// Encrypted volumes are held against the medium with what encryption adds, and
// nothing of them is left in the clear or under half a name.
func TestDiskIsFullForEncryptedVolumes(t *testing.T) {
	t.Parallel()
	template := withLarge(t)
	key := template.identity("home/key.txt")
	template.Mkdir("whole")
	template.mustRun("export", "--no-scan", "--to", "whole")
	for name, c := range map[string]struct {
		mount, size string
		left        int
	}{
		"too small":                      {"size=3m", "1GiB", 0},
		"too small for a part of a set":  {"size=5m", "2MiB", 0},
		"without entries":                {"nr_inodes=1", "1GiB", 0},
		"without an entry for the third": {"nr_inodes=3", "2MiB", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := template.clone(t)
			before := l.snapshot()
			script := strings.NewReplacer("--no-scan", "--no-scan --encrypt-to "+key.Recipient().String()+" --volume-size "+c.size).Replace(listRest)
			script = strings.Replace(script, "exit $status", `cp medium/*.age kept || test $? = 1
exit $status`, 1)
			l.Mkdir("kept")
			o := l.inNamespace("disk=medium; mount -t tmpfs -o " + c.mount + " tmpfs medium" + script)
			left := strings.Count(o.Stdout, "\n")
			if o.Exit != 1 || !strings.Contains(o.Stderr, "code: medium/full   exit 1 ") || !numbered(o, "free") || left != c.left {
				t.Errorf("exit %d, numbers %v, left on the disk:\n%s%s", o.Exit, numbered(o, "free"), o.Stdout, o.Stderr)
			}
			for line := range strings.Lines(o.Stdout) {
				if !regexp.MustCompile(`^medium/[0-9a-f]{16}\.v000[12]\.age\n$`).MatchString(line) {
					t.Errorf("left on the disk: %s", line)
				}
			}
			if c.left > 0 {
				if o := l.run("verify", "--identity", "home/key.txt", "kept"); o.Exit != 3 || !strings.Contains(o.Stderr, "missing:  3, 4 of 4") {
					t.Errorf("what is left: exit %d\n%s", o.Exit, o.Stderr)
				}
			}
			l.Remove("kept")
			if diff := cmp.Diff(before, l.snapshot()); diff != "" {
				t.Errorf("files have changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestMediumIsReadOnly(t *testing.T) {
	t.Parallel()
	l := withLarge(t)
	l.Mkdir("whole")
	l.mustRun("export", "--no-scan", "--to", "whole")
	before := l.snapshot()
	l.checkFull(before, l.inNamespace(`disk=medium; mount -t tmpfs -o ro tmpfs medium`+listRest), "disk/read-only", "")
}

// A limit on the size of files stands for file systems such as FAT32.
func TestFileIsTooLarge(t *testing.T) {
	t.Parallel()
	limited := func(l *lab, volumes string) outcome {
		l.T.Helper()
		return l.Finish(l.Command(testkit.Tool(l.T, "prlimit"), "--fsize=3145728", "packhof", "--quiet", "export", "--no-scan", "--volume-size", volumes, "--to", "medium"))
	}
	t.Run("for the store", func(t *testing.T) {
		t.Parallel()
		l := withLarge(t)
		before := l.snapshot()
		l.checkFull(before, limited(l, "2MiB"), "disk/file-too-large", "")
	})
	t.Run("for the medium", func(t *testing.T) {
		t.Parallel()
		l := withLarge(t)
		l.Mkdir("whole")
		l.mustRun("export", "--no-scan", "--to", "whole")
		before := l.snapshot()
		o := limited(l, "1GiB")
		l.checkFull(before, o, "medium/file-too-large", "")
		if !numbered(o, "limit") || !strings.Contains(o.Stderr, "hint: raise the limit:  ulimit -f unlimited\n") {
			t.Errorf("no numbers or no remedy in\n%s", o.Stderr)
		}
	})
	// Of a set the last volume alone is too large.
	t.Run("for one volume of a set", func(t *testing.T) {
		t.Parallel()
		l := withLarge(t)
		l.Mkdir("whole")
		l.mustRun("export", "--no-scan", "--to", "whole")
		before := l.snapshot()
		o := limited(l, "1MiB,1MiB,1GiB")
		l.checkFull(before, o, "medium/file-too-large", "")
		if !numbered(o, "limit") {
			t.Errorf("no numbers in\n%s", o.Stderr)
		}
	})
}

// What stands where the bundle should go is not damaged.
func TestTargetIsTaken(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.mustRun("plan")
	l.Mkdir(bundleFile)
	l.mustRun("export", "--no-scan", "--to", "notes")
	before := l.snapshot()
	o := l.run("export", "--no-scan", "--to", "medium")
	if o.Exit != 1 || !strings.Contains(o.Stderr, "code: medium/taken   exit 1 ") {
		t.Errorf("exit %d\n%s", o.Exit, o.Stderr)
	}
	if diff := cmp.Diff(before, l.snapshot()); diff != "" {
		t.Errorf("files have changed (-before +after):\n%s", diff)
	}
}
