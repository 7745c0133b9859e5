package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/policy"
)

// A serve that runs through an update of its program asks no other program
// for a verdict: the case is not decided, and says what to do.
func TestProgramIsReplaced(t *testing.T) {
	t.Parallel()
	template := arrived(t)
	for name, replace := range map[string]func(*lab){
		"gone": without("bin/packhof-gate"),
		"another one": func(l *lab) {
			l.Remove("bin/packhof-gate")
			l.Write("bin/packhof-gate", "#!/bin/sh\ncat >/dev/null; echo asked > "+l.Path("asked")+"\n")
			if err := os.Chmod(l.Path("bin/packhof-gate"), 0o755); err != nil {
				l.T.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := template.clone(t)
			served := l.serveFrom("bin/packhof-gate")
			replace(l)
			o := l.run("--quiet", "receive", bundleFile)
			if o.Exit != 1 || !strings.Contains(o.Stderr, "code: policy/error ") || !strings.Contains(o.Stderr, "restart packhof-gate serve") {
				t.Errorf("exit %d\n%s", o.Exit, o.Stderr)
			}
			if got := l.state("1"); got != gate.CheckFailed {
				t.Errorf("the case is %s, want %s", got, gate.CheckFailed)
			}
			if _, err := os.Stat(l.Path("asked")); err == nil {
				t.Error("the program that lies there now was asked")
			}
			served.Signal(syscall.SIGTERM)
			if o := served.End(); o.Exit != 0 {
				t.Errorf("serve: exit %d\n%s", o.Exit, o.Stderr)
			}
			l.must("receive", bundleFile)
			if got := l.state("1"); got != gate.Awaiting {
				t.Errorf("after a restart the case is %s", got)
			}
		})
	}
}

// serveFrom serves with a copy of the program.
func (l *lab) serveFrom(name string) *serving {
	l.T.Helper()
	program, err := exec.LookPath("packhof-gate")
	if err != nil {
		l.T.Fatal(err)
	}
	l.Mkdir("bin")
	copyProgram(l, program, name)
	return l.serveWith(l.Path(name))
}

func copyProgram(l *lab, from, to string) {
	l.T.Helper()
	in, err := os.Open(from)
	if err != nil {
		l.T.Fatal(err)
	}
	out, err := os.OpenFile(l.Path(to), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		l.T.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		l.T.Error(err)
	}
	if err := out.Close(); err != nil {
		l.T.Error(err)
	}
	if err := in.Close(); err != nil {
		l.T.Error(err)
	}
}

// markProven writes down that a folder's rules were proven.
func (l *lab) markProven(by string) {
	l.T.Helper()
	library, err := policy.Library()
	if err != nil {
		l.T.Fatal(err)
	}
	whole, err := library.Extend(os.DirFS(l.Path("data/policy")))
	if err != nil {
		l.T.Fatal(err)
	}
	digest, err := whole.ProofDigest()
	if err != nil {
		l.T.Fatal(err)
	}
	l.Write("data/policy.proven", digest+" "+by+"\n")
}

// Tests of the plant's rules run once, until rules, tests or the program
// change.
func TestProofIsRemembered(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Write("data/policy/own_number.rego", numberRule)
	l.Write("data/policy/own_number_test.rego", numberTests)
	l.must("list")
	mark := l.Read("data/policy.proven")
	l.markProven(program())
	if got := l.Read("data/policy.proven"); got != mark {
		t.Errorf("the mark is %q, want %q", mark, got)
	}
	untested := func(when string) {
		t.Helper()
		if o := l.run("list"); o.Exit != 1 || !strings.Contains(o.Stderr, "code: policy/untested ") {
			t.Errorf("%s: exit %d\n%s", when, o.Exit, o.Stderr)
		}
	}
	l.Write("data/policy/own_number_test.rego", numberTests+"\ntest_fires_never if false\n")
	untested("other tests than were run")
	l.markProven(program() + ".1")
	untested("proven by another program")
	l.markProven(program()) // untrue, and not looked into again: that is how one sees it
	l.must("list")
	if err := os.Remove(l.Path("data/policy.proven")); err != nil {
		t.Fatal(err)
	}
	untested("no mark")
}

// doctor says where the plant's rules are, how many there are, and whether a
// serve judges by them.
func TestDoctorNamesRules(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if o := l.must("doctor"); !strings.Contains(o.Stdout, "data/policy: 0 rules") {
		t.Errorf("doctor does not name the folder:\n%s", o.Stdout)
	}
	l.serve()
	l.Write("data/policy/own_number.rego", numberRule)
	l.Write("data/policy/own_number_test.rego", numberTests)
	if o := l.must("doctor"); !strings.Contains(o.Stdout, "data/policy: 1 rule;") || !strings.Contains(o.Stdout, "restart packhof-gate serve") {
		t.Errorf("doctor does not see that the folder was changed:\n%s", o.Stdout)
	}
	l.Write("data/policy/README.md", "hello\n")
	if o := l.run("doctor"); o.Exit != 1 || !strings.Contains(o.Stdout, "neither rule nor test") {
		t.Errorf("doctor does not see what is wrong: exit %d\n%s", o.Exit, o.Stdout)
	}
}
