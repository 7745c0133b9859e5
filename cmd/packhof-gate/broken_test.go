package main

import (
	"context"
	"database/sql"
	"encoding/json/v2"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cli"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// A gate on a full disk still tells what it has, says what is wrong in numbers,
// and goes on once there is space.
func TestAFullDiskLeavesTheGateToAsk(t *testing.T) {
	t.Parallel()
	l := waiting(t)
	needMounts(l)
	o := l.Finish(l.Command("unshare", "-rm", "sh", "-uc", `
		cp -r data copy; mount -t tmpfs -o size=6m tmpfs data; cp -r copy/. data; chmod 700 data
		dd if=/dev/zero of=data/fill bs=1024 2>/dev/null; dd if=/dev/zero of=data/fill2 bs=1 2>/dev/null
		echo LIST; packhof-gate list; echo exit $?
		echo SHOW; packhof-gate show 1; echo exit $?
		echo DOCTOR; packhof-gate doctor; echo exit $?
		echo REJECT; packhof-gate reject 1 --as anna --yes --review "$1" --reason no; echo exit $?
		rm data/fill data/fill2
		echo SPACE; packhof-gate reject 1 --as anna --yes --review "$1" --reason no; echo exit $?`, "sh", l.review("1")))
	parts := map[string]string{}
	name := ""
	for line := range strings.Lines(o.Stdout) {
		if word := strings.TrimSpace(line); word == strings.ToUpper(word) && word != "" && !strings.ContainsAny(word, " -:") {
			name = word
			continue
		}
		parts[name] += line
	}
	for name, want := range map[string][]string{
		"LIST":   {"awaiting approval", "exit 0"},
		"SHOW":   {"awaiting approval", "exit 0"},
		"DOCTOR": {"bytes free in", "is whole", "exit 1"},
		"REJECT": {"exit 1"},
		"SPACE":  {"rejected", "exit 0"},
	} {
		for _, text := range want {
			if !strings.Contains(parts[name], text) {
				t.Errorf("%s does not say %q:\n%s", name, text, parts[name])
			}
		}
	}
	for _, text := range []string{"code: gate/full   exit 1 ", "needed:  ", "free:    "} {
		if !strings.Contains(o.Stderr, text) {
			t.Errorf("the refusal does not say %q:\n%s", text, o.Stderr)
		}
	}
}

// An index of the depot that cannot be made anew, for lack of space, keeps a serve
// from nothing but what the index is wrong about.
func TestAFullDiskLeavesTheIndex(t *testing.T) {
	t.Parallel()
	l := waiting(t)
	needMounts(l)
	l.approve("1")
	l.must("release", "1")
	db, err := sql.Open("sqlite", "file:"+l.Path("data/gate.db"))
	if err == nil {
		_, err = db.ExecContext(t.Context(), `DELETE FROM depot_file`)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	o := l.Finish(l.Command("unshare", "-rm", "sh", "-uc", `
		cp -r data copy; mount -t tmpfs -o size=6m tmpfs data; cp -r copy/. data; chmod 700 data
		dd if=/dev/zero of=data/fill bs=1024 2>/dev/null; dd if=/dev/zero of=data/fill2 bs=1 2>/dev/null
		packhof-gate serve --listen 127.0.0.1:0 2>log & serve=$!
		until grep -q 'was not made anew' log || ! kill -0 $serve; do sleep 0.1; done
		packhof-gate list; packhof-gate doctor
		kill -TERM $serve; wait $serve; echo exit $?; cat log`))
	for _, text := range []string{"serves at", "the index of the depot was not made anew", "code=gate/full", "loaded", "the index of the depot is wrong about", "exit 0"} {
		if !strings.Contains(o.Stdout, text) {
			t.Errorf("it does not say %q:\n%s%s", text, o.Stdout, o.Stderr)
		}
	}
}

// Doctor opens what it can of a gate that cannot be opened.
func TestDoctorOfAGateThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	base := waiting(t)
	for name, c := range map[string]struct {
		spoil func(data string) error
		says  []string
	}{
		"empty":  {func(data string) error { return os.Truncate(filepath.Join(data, "gate.db"), 0) }, []string{"has lost its database", "space"}},
		"cut":    {func(data string) error { return os.Truncate(filepath.Join(data, "gate.db"), 30_000) }, []string{"cannot be read", "space"}},
		"anchor": {func(data string) error { return os.Remove(filepath.Join(data, "gate.anchor")) }, []string{"anchor", "is whole", "none is stuck"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := base.clone(t)
			if err := c.spoil(l.Path("data")); err != nil {
				t.Fatal(err)
			}
			o := l.run("doctor")
			if o.Exit != 1 {
				t.Errorf("exit %d\n%s", o.Exit, o.Stderr)
			}
			for _, text := range c.says {
				if !strings.Contains(o.Stdout, text) {
					t.Errorf("it does not say %q:\n%s%s", text, o.Stdout, o.Stderr)
				}
			}
			if o := l.run("list"); o.Exit != 1 {
				t.Errorf("list ends with %d\n%s", o.Exit, o.Stdout)
			}
		})
	}
}

// A script rejects a case that nobody has judged: it has the empty review.
func TestUnjudgedIsRejectedByAScript(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Write("notes/large.bin", string(testkit.Bytes("large", 100<<10)))
	l.mustPackhof("plan")
	l.mustPackhof("export", "--no-scan", "--to", "medium", "--volume-size", "64KiB")
	if o := l.run("receive", "medium/plant-1-000001.v0002.tar"); o.Exit != 3 { // other volumes are missing, so nobody judges it
		t.Fatalf("exit %d\n%s", o.Exit, o.Stderr)
	}
	if o := l.run("reject", "1", "--as", "anna", "--reason", "no", "--yes"); o.Exit != 2 {
		t.Errorf("without --review: exit %d\n%s", o.Exit, o.Stderr)
	}
	if o := l.run("approve", "1", "--as", "anna", "--reason", "yes", "--yes", "--review", ""); o.Exit == 0 {
		t.Errorf("approved\n%s", o.Stdout)
	}
	o := l.must("reject", "1", "--as", "anna", "--reason", "no", "--yes", "--review", "", "-o", "json")
	var c gate.Case
	if err := json.Unmarshal([]byte(o.Stdout), &c); err != nil || c.State != gate.Rejected {
		t.Errorf("%+v, %v", c, err)
	}
}

// What cannot be said in UTF-8 is refused with a word that helps.
func TestPathsAndReasonsThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	l := waiting(t)
	l.Write("medium/a\xff.tar", l.Read(bundleFile))
	for name, c := range map[string]struct {
		args []string
		code string
	}{
		"file":   {[]string{"receive", "medium/a\xff.tar"}, "receive/path"},
		"reason": {[]string{"reject", "1", "--as", "anna", "--reason", "no\xff", "--yes", "--review", "x"}, "case/reason"},
	} {
		if o := l.run(c.args...); o.Exit != 2 || !strings.Contains(o.Stderr, "code: "+c.code+" ") || !strings.Contains(o.Stderr, "hint: ") {
			t.Errorf("%s: exit %d\n%s", name, o.Exit, o.Stderr)
		}
	}
}

// An older database that is copied over the one of a serve that runs ends it;
// nothing opens by it what was done since.
func TestAnOlderDatabaseIsCopiedOverThatOfAServe(t *testing.T) {
	t.Parallel()
	l := arrived(t)
	older := l.Read("data/gate.db")
	l.must("user", "add", "carl", "--role", "auditor")
	s := l.serve()
	l.must("receive", bundleFile)
	l.Write("data/gate.db", older)
	if o := l.run("user", "add", "berta", "--role", "reviewer"); o.Exit != 1 || !strings.Contains(o.Stderr, "code: gate/database-overwritten") {
		t.Errorf("exit %d: %s", o.Exit, o.Stderr)
	}
	if o := s.End(); o.Exit != 1 || !strings.Contains(o.Stderr, "code: gate/database-overwritten") {
		t.Errorf("serve: exit %d: %s", o.Exit, o.Stderr)
	}
	if l.Read("data/gate.db") != older {
		t.Error("something was written into it")
	}
	if o := l.run("list"); o.Exit != 1 || !strings.Contains(o.Stderr, "code: gate/history-rolled-back") {
		t.Errorf("exit %d: %s", o.Exit, o.Stderr)
	}
}

// A serve that nobody writes to looks for itself, and says at its end what it saw.
func TestServeLooksAtItsDatabase(t *testing.T) {
	t.Parallel()
	base := arrived(t)
	older := base.Read("data/gate.db")
	base.must("user", "add", "carl", "--role", "auditor")
	for name, c := range map[string]struct {
		spoil func(l *lab) error
		stop  bool // or it ends by itself
		code  string
	}{
		"copied over": {func(l *lab) error { l.Write("data/gate.db", older); return nil }, false, "gate/database-overwritten"},
		"deleted":     {func(l *lab) error { return os.Remove(l.Path("data/gate.db")) }, true, "gate/no-database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := base.clone(t)
			s := l.serve()
			if err := c.spoil(l); err != nil {
				t.Fatal(err)
			}
			if c.stop {
				s.Signal(syscall.SIGTERM)
			}
			if o := s.End(); o.Exit != 1 || !strings.Contains(o.Stderr, "code: "+c.code) {
				t.Errorf("exit %d: %s", o.Exit, o.Stderr)
			}
		})
	}
}

// What a gate that lost its database says of that comes before what it had to
// break off, and before what it misread.
func TestClosingSaysWhyTheRestFailed(t *testing.T) {
	lost := problem.New("gate/database-overwritten", "x")
	for _, err := range []error{nil, context.Canceled, problem.New("interrupted", "x"), problem.New("audit/contradiction", "x")} {
		if got := cli.CodeOf(closing(err, lost)); got != "gate/database-overwritten" {
			t.Errorf("%v: %s", err, got)
		}
		if got := closing(err, nil); cli.CodeOf(got) != cli.CodeOf(err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}

// What lies in the place of a blob and is none is named; once it is removed, the
// bundle brings the blob again.
func TestABlobThatIsNone(t *testing.T) {
	t.Parallel()
	base := waiting(t)
	for name, put := range map[string]func(path string) error{
		"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := base.clone(t)
			blobs, err := filepath.Glob(l.Path("data/store/blobs/sha256/*"))
			if err != nil || len(blobs) == 0 {
				t.Fatalf("%v, %v", blobs, err)
			}
			for _, blob := range blobs {
				if err := errors.Join(os.Remove(blob), put(blob)); err != nil {
					t.Fatal(err)
				}
			}
			o := l.run("receive", bundleFile)
			if o.Exit != 1 || !strings.Contains(o.Stderr, "code: file/not-plain") || !strings.Contains(o.Stderr, "hint: remove it, then") {
				t.Fatalf("exit %d: %s", o.Exit, o.Stderr)
			}
			for _, blob := range blobs {
				if err := os.Remove(blob); err != nil {
					t.Fatal(err)
				}
			}
			l.must("receive", bundleFile)
		})
	}
}

// A link that leads to itself has a code of its own, and doctor names it, too.
func TestLinksThatLeadNowhere(t *testing.T) {
	t.Parallel()
	base := waiting(t)
	for file, code := range map[string]string{"gate.db": "file/not-plain", "gate.yaml": "config/unreadable", "policy": "config/invalid"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			l := base.clone(t)
			path := l.Path("data/" + file)
			if err := errors.Join(os.RemoveAll(path), os.Symlink(file, path)); err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{"list", "doctor"} {
				if o := l.run(command); o.Exit == 0 || !strings.Contains(o.Stderr, "code: "+code) && command == "list" || !strings.Contains(o.Stdout+o.Stderr, file) {
					t.Errorf("%s: exit %d: %s%s", command, o.Exit, o.Stdout, o.Stderr)
				}
			}
		})
	}
}

// A pipe, a folder or a link in the place of a file of the data directory keeps
// no command waiting: it says which it is.
func TestAFileOfTheDataDirectoryIsNone(t *testing.T) {
	t.Parallel()
	base := waiting(t)
	for name, put := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"link to pipe": func(path string) error {
			return errors.Join(syscall.Mkfifo(path+".x", 0o600), os.Symlink(path+".x", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for file, c := range map[string]struct {
				code string
				args []string
			}{
				"gate.anchor":         {"gate/no-anchor", []string{"list"}},
				"gate.lock":           {"file/not-plain", []string{"list"}},
				"enrol.json":          {"file/not-plain", []string{"serve", "--listen", "127.0.0.1:0"}},
				"keys/log.pem":        {"file/not-plain", []string{"list"}},
				"keys/receipt.pem":    {"file/not-plain", []string{"receipt", "out.json"}},
				"store/packhof-store": {"file/not-plain", []string{"list"}},
			} {
				l := base.clone(t)
				path := l.Path("data/" + file)
				if err := errors.Join(os.Remove(path), put(path)); err != nil {
					t.Fatal(err)
				}
				if o := l.run(c.args...); !strings.Contains(o.Stderr, "code: "+c.code) {
					t.Errorf("%s: exit %d: %s", file, o.Exit, o.Stderr)
				}
				if o := l.run("doctor"); o.Exit != 1 || !strings.Contains(o.Stdout+o.Stderr, file) {
					t.Errorf("doctor of %s: exit %d: %s%s", file, o.Exit, o.Stdout, o.Stderr)
				}
			}
		})
	}
}
