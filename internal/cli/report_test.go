package cli

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/problem"
)

func TestReport(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"everything": {
			problem.New("signing/threshold", "the bundle is not genuine: 1 of 2 required signatures is valid").
				With("valid:    release@example (3f9a…)", "missing:  security@example").Hint("the missing person runs  packhof sign /media/usb/x"),
			`packhof: error: the bundle is not genuine: 1 of 2 required signatures is valid
  valid:    release@example (3f9a…)
  missing:  security@example
hint: the missing person runs  packhof sign /media/usb/x
code: signing/threshold   exit 10   (packhof help errors signing/threshold)
`,
		},
		"no code": {errors.New("words"), `packhof: error: words
code: failed   exit 1   (packhof help errors failed)
`},
		"remedy of the catalogue": {problem.New("lock/expired", "the lock is too old"), `packhof: error: the lock is too old
hint: packhof plan
code: lock/expired   exit 1   (packhof help errors lock/expired)
`},
		"interrupted": {fmt.Errorf("fetch x: %w", context.Canceled), `packhof: error: interrupted
hint: run the same command again; it goes on where it can
code: interrupted   exit 130   (packhof help errors interrupted)
`},
		"hostile text": {problem.New("source/failed", "said \x1b]0;title\x07 and \u202egnp.exe\nsecond line").With("a\x1b[31mb\r").Hint("type\x00this"),
			`packhof: error: said ?]0;title? and ?gnp.exe; second line
  a?[31mb
hint: type?this
code: source/failed   exit 20   (packhof help errors source/failed)
`},
		"text without end": {problem.New("never/heard", "%s", strings.Repeat("x", 1<<20)).With(strings.Repeat("y", 1<<20)), "packhof: error: " + strings.Repeat("x", 3999) + "…\n  " + strings.Repeat("y", 3999) + `…
code: never/heard   exit 1   (packhof help errors never/heard)
`},
		"an unknown code": {problem.New("never/heard", "words"), `packhof: error: words
code: never/heard   exit 1   (packhof help errors never/heard)
`},
	} {
		var out bytes.Buffer
		Report(&out, "packhof", c.err, false)
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestReportAsJSON(t *testing.T) {
	var out bytes.Buffer
	Report(&out, "packhof", problem.New("lock/missing", "there is \"no\" lock\x1b").With("one", "two").Hint("packhof plan"), true)
	if strings.Count(out.String(), "\n") != 1 {
		t.Errorf("more than one line: %q", out.String())
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "packhof/v1", "kind": "Error", "error": `there is "no" lock?`, "evidence": []any{"one", "two"},
		"hint": "packhof plan", "code": "lock/missing", "exit": float64(2),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	Report(&out, "packhof", errors.New("x"), true)
	if !strings.Contains(out.String(), `"evidence":[]`) {
		t.Errorf("no evidence is written as %s", out.String())
	}
}

func TestExitOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		code string
		exit int
	}{
		{errors.New("x"), "failed", 1},
		{&UsageError{What: "x", Command: "packhof plan"}, "usage", 2},
		{problem.New("export/incomplete", "x"), "export/incomplete", 3},
		{problem.New("auth/required", "x"), "auth/required", 4},
		{problem.New("signing/threshold", "x"), "signing/threshold", 10},
		{problem.New("volume/damaged", "x"), "volume/damaged", 11},
		{problem.New("source/unreachable", "x"), "source/unreachable", 20},
		{fmt.Errorf("wrapped: %w", problem.New("volume/damaged", "x")), "volume/damaged", 11},
		{errors.Join(problem.New("volume/damaged", "x"), context.Canceled), "interrupted", 130},
		{context.Canceled, "interrupted", 130},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "disk/full", 1},
		{syscall.EDQUOT, "disk/full", 1},
		{syscall.EFBIG, "disk/file-too-large", 1},
		{syscall.EROFS, "disk/read-only", 1},
		{fs.ErrPermission, "file/permission", 1},
		{fs.ErrNotExist, "file/missing", 1},
		{os.ErrDeadlineExceeded, "source/unreachable", 20},
	} {
		if code, exit := CodeOf(c.err), ExitOf(c.err); code != c.code || exit != c.exit {
			t.Errorf("%v: %s, exit %d; want %s, exit %d", c.err, code, exit, c.code, c.exit)
		}
	}
	if ExitOf(nil) != 0 {
		t.Error("no error is a failure")
	}
}

// TestExitCodesAreAPromise: this list may only grow.
func TestExitCodesAreAPromise(t *testing.T) {
	want := []int{0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 130}
	var got []int
	for _, e := range ExitCodes() {
		got = append(got, e.Code)
		if e.Meaning == "" {
			t.Errorf("exit code %d means nothing", e.Code)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCatalog(t *testing.T) {
	all := Catalog()
	for i, e := range all {
		if i > 0 && all[i-1].Code >= e.Code {
			t.Errorf("%s and %s: not sorted, or twice", all[i-1].Code, e.Code)
		}
		if !slices.ContainsFunc(ExitCodes(), func(m ExitMeaning) bool { return m.Code == e.Exit }) || e.Exit == 0 {
			t.Errorf("%s has exit code %d", e.Code, e.Exit)
		}
		if !strings.HasSuffix(e.Meaning, ".") || strings.HasSuffix(e.Remedy, ".") {
			t.Errorf("%s: meaning %q, remedy %q", e.Code, e.Meaning, e.Remedy)
		}
		if found, ok := Lookup(e.Code); !ok || found != e {
			t.Errorf("%s is looked up as %+v", e.Code, found)
		}
	}
	if _, ok := Lookup("no/such"); ok {
		t.Error("found a code that is not there")
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                  "plain",
		" \ttrimmed \n":          "trimmed",
		"two\nlines":             "two; lines",
		"ä ö 模型 😀":               "ä ö 模型 😀",
		"\x1b[2J":                "?[2J",
		"a\rb":                   "a?b",
		"a\u202eb\u2066c\u200bd": "a?b?c?d",
		"a\u2028b\u2029c":        "a?b?c",
		"a\x9bb":                 "a?b",
		"\ufeffa":                "?a",
		"a\xffb":                 "a?b",
		"a\u00adb":               "a?b", // a soft hyphen is not seen
		"a\U000e0041b":           "a?b", // nor is a tag
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	Table(&out, [][]string{{"NAME", "SIZE", "FROM"}, {"größe", "1 B", ""}, {}, {"x", "", "evil\x1b[2J\u202e"}, {"only"}, {"two\nlines", "2 B"}})
	want := "NAME        SIZE  FROM\ngröße       1 B\n\nx                 evil?[2J?\nonly\ntwo\\nlines  2 B\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBytesAndShorten(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 1<<30 + 1<<29: "1.5 GiB", 1 << 40: "1.0 TiB", 1 << 50: "1.0 PiB", 5 << 60: "5120.0 PiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
	for _, c := range []struct {
		in   string
		most int
		want string
	}{{"short", 5, "short"}, {"longer", 5, "long…"}, {"größer!", 5, "größ…"}, {"", 1, ""}} {
		if got := Shorten(c.in, c.most); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
}
