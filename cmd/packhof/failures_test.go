package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
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
	golden := readGolden(t)
	planned := newLab(t)
	planned.mustRun("plan")
	all := slices.Concat(configFailures(), commandFailures(), keyFailures(), trustFailures(), lockFailures(), folderFailures(),
		targetFailures(), registryFailures(), platformFailures(), webFailures(), bundleFailures())
	said := make([]string, len(all))
	// The group ends when all of its parallel tests have ended.
	t.Run("of", func(t *testing.T) {
		for i, f := range all {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				said[i] = f.check(planned.clone(t))
				if want := golden[f.name]; !*update && want != said[i] {
					t.Errorf("stderr (-want +got), if it is right run  go test -run TestFailures -update\n%s", cmp.Diff(want, said[i]))
				}
			})
		}
	})
	for name := range golden {
		if !*update && !slices.ContainsFunc(all, func(f failure) bool { return f.name == name }) {
			t.Errorf("%s has a section %q, which is no test", goldenFailures, name)
		}
	}
	if *update {
		writeGolden(t, golden, all, said)
	}
}

func (f *failure) check(l *lab) (said string) {
	l.t.Helper()
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
		l.t.Errorf("files have changed (-before +after):\n%s", diff)
	}
	if o.exit != f.exit || !strings.Contains(o.stderr, fmt.Sprintf("code: %s   exit %d ", f.code, f.exit)) {
		l.t.Errorf("exit %d, want exit %d and code %s:\n%s", o.exit, f.exit, f.code, o.stderr)
	}
	if o.stdout != "" && args[0] != "inspect" {
		l.t.Errorf("something on stdout:\n%s", o.stdout)
	}
	if inside := insides.FindString(o.stderr); inside != "" {
		l.t.Errorf("%q is not for people:\n%s", inside, o.stderr)
	}
	return l.steady(o.stderr)
}

// insides is what nobody but us can make sense of: types of Go, addresses,
// what is left of a crash.
var insides = regexp.MustCompile(`\bGo [a-z]+\.[A-Z]\w*|\bunmarshal\b|%!|0x[0-9a-f]{6,}|goroutine`)

var (
	exportArgs = []string{"export", "--no-scan", "--to", "medium"}
	planArgs   = []string{"plan"}
)

// steady replaces what differs from run to run. Digests and keys become
// numbers in the order in which they turn up, so that it still shows which of
// them are the same.
func (l *lab) steady(text string) string {
	text = strings.ReplaceAll(text, l.dir, "$LAB")
	for _, r := range []struct{ from, to string }{
		{`127\.0\.0\.1:\d+`, "$$HOST"},
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "<time>"},
		{`\d{4}-\d\d-\d\d`, "<date>"},
		{`stream ID \d+`, "stream ID <n>"},
		{`free:    \d+ bytes`, "free:    <n> bytes"},
	} {
		text = regexp.MustCompile(r.from).ReplaceAllString(text, r.to)
	}
	var seen []string
	return regexp.MustCompile(`\b([0-9a-f]{64}|[0-9a-f]{16}|[0-9a-f]{4}( [0-9a-f]{4}){15})\b`).ReplaceAllStringFunc(text, func(hex string) string {
		if !slices.Contains(seen, hex) {
			seen = append(seen, hex)
		}
		return fmt.Sprintf("<hex %d>", slices.Index(seen, hex)+1)
	})
}

func readGolden(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile(goldenFailures)
	if err != nil && !*update {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, f := range txtar.Parse(b).Files {
		said[f.Name] = string(f.Data)
	}
	return said
}

func writeGolden(t *testing.T, golden map[string]string, all []failure, said []string) {
	t.Helper()
	archive := &txtar.Archive{Comment: []byte("What packhof says on stderr when it fails; see TestFailures.\n\n")}
	for i, f := range all {
		if said[i] == "" { // skipped here: root may read everything
			said[i] = golden[f.name]
		}
		archive.Files = append(archive.Files, txtar.File{Name: f.name, Data: []byte(said[i])})
	}
	if err := os.WriteFile(goldenFailures, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}
