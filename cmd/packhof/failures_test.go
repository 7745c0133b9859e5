package main

import (
	"flag"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/testkit"
)

// failure is a command that must fail, and how.
type failure struct {
	name  string // also of the section in testdata/failures.txtar
	given func(l *lab)
	run   []string // the command; nil means export
	exit  int
	code  string
}

const goldenFailures = "testdata/failures.txtar"

var update = flag.Bool("update", false, "write "+goldenFailures+" instead of comparing with it")

// TestFailures is every way to fail that a person can meet: the exit code, the
// stable code, every word on stderr (testdata/failures.txtar has them all), and
// that no file came into being or changed.
func TestFailures(t *testing.T) {
	golden := testkit.ReadGolden(t, goldenFailures, *update)
	planned := newLab(t)
	planned.mustRun("plan")
	var names []string
	// The group ends when all of its parallel tests have ended.
	t.Run("of", func(t *testing.T) {
		for _, f := range slices.Concat(configFailures(), commandFailures(), keyFailures(), trustFailures(), lockFailures(), folderFailures(),
			targetFailures(), registryFailures(), platformFailures(), webFailures(), bundleFailures(), encryptedFailures()) {
			names = append(names, f.name)
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				golden.Check(t, f.name, f.check(planned.clone(t)))
			})
		}
	})
	golden.Finish(t, "What packhof says on stderr when it fails; see TestFailures.", names)
}

func (f *failure) check(l *lab) (said string) {
	l.T.Helper()
	if f.given != nil {
		f.given(l)
	}
	args := f.run
	if args == nil {
		args = exportArgs
	}
	before := l.snapshot()
	o := l.run(append([]string{"--quiet"}, args...)...)
	if diff := cmp.Diff(before, l.snapshot()); diff != "" {
		l.T.Errorf("files have changed (-before +after):\n%s", diff)
	}
	o.CheckFailure(l.T, f.exit, f.code)
	if o.Stdout != "" && args[0] != "inspect" {
		l.T.Errorf("something on stdout:\n%s", o.Stdout)
	}
	return l.Steady(o.Stderr, [2]string{`stream ID \d+`, "stream ID <n>"}, [2]string{`free:    \d+ bytes`, "free:    <n> bytes"})
}

var (
	exportArgs = []string{"export", "--no-scan", "--to", "medium"}
	planArgs   = []string{"plan"}
)
