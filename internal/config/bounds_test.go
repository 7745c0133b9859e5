package config

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml/lexer"
)

// hostile are files made to take time or memory.
func hostile() map[string]string {
	numbered := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	stairs := func(step string, n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Repeat(" ", i) + step + "\n")
		}
		return b.String()
	}
	again := strings.Repeat
	return map[string]string{
		"many unknown keys":       numbered("k%d: 1\n", 20_000),
		"as many as there may be": numbered("k%d: 1\n", 9_900),
		"unknown keys in a group": "hosts:\n  a:\n" + numbered("    k%d: 1\n", 9_900),
		"unknown keys in braces":  "hosts: {" + numbered("k%d: 1, ", 9_900) + "}\n",
		"long keys":               numbered(again("k", 100)+"%d: 1\n", 9_000),
		"one long key":            again("k", 1_000_000) + ": 1\n",
		"short lists in lists":    "beds:\n  " + again("- ", 10_000) + "x\n",
		"lists in lists":          "beds:\n  " + again("- ", 20_000) + "x\n",
		"lists without end":       again("- ", 400_000),
		"lists as stairs":         stairs("-", 1_400),
		"groups in groups":        again("a: ", 100_000),
		"fewer of them":           again("a: ", 9_900),
		"groups as stairs":        stairs("a:", 1_400),
		"brackets":                "beds: " + again("[", 1_000_000),
		"fewer brackets":          "beds: " + again("[", 20_000) + again("]", 20_000),
		"many short brackets":     "beds: [" + again(again("[", 40)+again("]", 40)+",", 500) + "]\n",
		"items":                   "beds:\n" + again("- 1\n", 22_000),
		"items in brackets":       "beds: [" + again("a,", 22_000) + "]\n",
		"questions":               again("? ", 9_000),
		"colons":                  again(": ", 300_000),
		"anchors":                 again("&a ", 300_000),
		"anchors of a value":      "channel: " + again("&a ", 15_000) + "x\n",
		"tags":                    again("!a ", 300_000),
		"tags of a value":         "channel: " + again("!a ", 15_000) + "x\n",
		"aliases":                 "beds: [" + again("*a,", 14_000) + "]\n",
		"directives":              again("%", 1_000_000),
		"quotes":                  again("'' ", 300_000),
		"comments":                again("# x\n", 250_000),
		"documents":               again("--- x\n", 150_000),
		"old line ends":           again("channel: x\r", 100_000),
		"blank lines":             again("\n", 1_000_000),
		"words":                   "channel: " + again("x ", 500_000) + "\n",
		"escapes":                 `channel: "` + again(`\u0041`, 170_000) + "\"\n",
		"an open quote":           `channel: "` + again("x", 1_000_000),
		"a literal":               "channel: |\n" + again("  x\n", 250_000),
	}
}

// hostileFile tells the test below to be the process that reads the file.
const hostileFile = "PACKHOF_TEST_HOSTILE_FILE"

func TestHostileFilesTakeNeitherTimeNorMemory(t *testing.T) {
	if path, ok := os.LookupEnv(hostileFile); ok {
		if _, err := Read(path, unchecked(new(garden))); err == nil {
			t.Error("loaded")
		}
		return
	}
	if raced {
		t.Skip("measured without the race detector, which takes many times as much")
	}
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			path := written(t, text[:min(len(text), maxFile)])
			reader := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHostileFilesTakeNeitherTimeNorMemory$")
			reader.Env = append(os.Environ(), hostileFile+"="+path)
			if out, err := reader.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if took := reader.ProcessState.UserTime() + reader.ProcessState.SystemTime(); took > 2*time.Second {
				t.Errorf("it took %s", took)
			}
			used, ok := reader.ProcessState.SysUsage().(*syscall.Rusage)
			if ok && runtime.GOOS == "linux" && used.Maxrss > 100<<10 { // KiB
				t.Errorf("it took %d MiB", used.Maxrss>>10)
			}
		})
	}
}

// What bounds the memory of the lexer must not count less than it finds.
func FuzzSigns(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text[:min(len(text), 200)])
	}
	f.Add("a: \"b\": [c]\n- {d: 'e'}#f\n--- |\n  g\n...\n%h i\n!j k: &l *m\n? n\n: o")
	f.Fuzz(func(t *testing.T, text string) {
		if legible("x", []byte(text)) != nil {
			return
		}
		if n, most := len(lexer.Tokenize(text)), 2*signs([]byte(text))+2; n > most {
			t.Errorf("%q has %d tokens, more than %d", text, n, most)
		}
	})
}

func TestWhatMayBeNested(t *testing.T) {
	wide := "channel: x\nbeds:\n"
	for i := range 500 {
		wide += fmt.Sprintf("- name: b%d\n  plants: [a, {b: c, d: [e, f]}, g]\n  labels: {a: b, c: d, e: f}\n", i)
	}
	for name, c := range map[string]struct {
		text string
		deep bool
	}{
		"a wide file":             {wide, false},
		"100 brackets":            {strings.Repeat("[", 100) + strings.Repeat("]", 100), false},
		"101 brackets":            {strings.Repeat("[", 101) + strings.Repeat("]", 101), true},
		"brackets side by side":   {"[" + strings.Repeat("[[]],", 1000) + "]", false},
		"in a string and comment": {"channel: \"" + strings.Repeat("[", 500) + "\" # " + strings.Repeat("{", 500), false},
		"in a literal":            {"channel: |\n  " + strings.Repeat("[", 500), false},
		"101 lists":               {strings.Repeat("- ", 101) + "x", true},
		"keys in braces":          {"{" + strings.Repeat("a: b, ", 1000) + "}", false},
		"keys in keys":            {strings.Repeat("{a: ", 51) + strings.Repeat("}", 51), true},
		"closed too often":        {strings.Repeat("]", 1000) + strings.Repeat("[", 50), false},
		"documents":               {strings.Repeat("--- a: b\n", 200), false},
	} {
		if got := tooDeep(lexer.Tokenize(c.text)) != nil; got != c.deep {
			t.Errorf("%s: too deep is %t", name, got)
		}
	}
}

// A file as large as anybody has is read.
func TestALargeFileIsRead(t *testing.T) {
	text := "# " + strings.Repeat("-", 78) + "\nchannel: plant-7\nbeds:\n"
	for i := range 2_400 {
		text += fmt.Sprintf("# - the bed number %d: [as it was]\n- name: https://registry.example:5000/a-b/c-%d@sha256:0123456789abcdef\n  plants: [\"1.%d\"]\n  labels: {a.b/c: 'd, e'}\n", i, i, i)
	}
	g, _, err := load(t, text)
	if err != nil || len(g.Beds) != 2_400 {
		e, _ := errors.AsType[*Mistake](err)
		t.Errorf("%v, %d beds, %+v", err, len(g.Beds), e)
	}
}
