package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/problem"
)

type garden struct {
	Channel string          `json:"channel"`
	Count   int             `json:"count,omitempty"`
	Open    bool            `json:"open,omitempty"`
	Hosts   map[string]host `json:"hosts,omitempty"`
	Beds    []bed           `json:"beds,omitempty"`
}

type host struct {
	PlainHTTP bool   `json:"plainHTTP,omitempty"`
	CA        string `json:"ca,omitempty"`
}

type bed struct {
	Name   string            `json:"name"`
	Plants []string          `json:"plants,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// remedy is what to do where there is no document.
const remedy = "make one with  program init"

// unchecked reads into a garden without looking at its values.
func unchecked(g *garden) Form {
	return Form{Into: g, Check: func() error { return nil }, Remedy: remedy}
}

// written gives the path of a file with this text.
func written(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "garden.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t testing.TB, text string) (garden, *File, error) {
	t.Helper()
	var g garden
	c, err := Read(written(t, text), unchecked(&g))
	return g, c, err
}

func TestRead(t *testing.T) {
	want := garden{
		Channel: "plant-7", Count: 3, Open: true,
		Hosts: map[string]host{"registry.example:5000": {PlainHTTP: true}, "10.0.0.1": {CA: "ca.pem"}},
		Beds:  []bed{{Name: "roses", Plants: []string{"a", "1.10"}, Labels: map[string]string{"a.b/c": "d"}}},
	}
	text := `# a comment
channel: plant-7
count: 3
open: true
hosts:
  registry.example:5000:
    plainHTTP: true
  10.0.0.1: {ca: ca.pem}
beds:
- name: roses
  plants: [a, "1.10"]
  labels:
    a.b/c: d
`
	for name, text := range map[string]string{"as it is": text, "with CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "with a BOM": "\ufeff" + text, "with a mark": "---\n" + text} {
		got, _, err := load(t, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMistakesSayWhere(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string // line:column: what
		kind string
		fix  string
	}{
		"unknown key":          {"channel: x\nchanel: y\n", `2:1: unknown key "chanel"`, "config/unknown-key", `did you mean "channel"?`},
		"unknown far off":      {"channel: x\nzzzzzz: y\n", `2:1: unknown key "zzzzzz"`, "config/unknown-key", "known here: channel, count, open, hosts, beds"},
		"in a list":            {"channel: x\nbeds:\n- name: a\n- nmae: b\n", `4:3: unknown key "nmae"`, "config/unknown-key", `did you mean "name"?`},
		"in a map":             {"hosts:\n  a.example:5000:\n    plainhttp: true\n", `3:5: unknown key "plainhttp"`, "config/unknown-key", `did you mean "plainHTTP"?`},
		"other case":           {"Channel: x\n", `1:1: unknown key "Channel"`, "config/unknown-key", `did you mean "channel"?`},
		"in CRLF":              {"channel: x\r\nchanel: y\r\n", `2:1: unknown key "chanel"`, "config/unknown-key", `did you mean "channel"?`},
		"number for text":      {"channel: 1.10\n", "1:1: channel: a number stands where text belongs", "config/invalid", "put it in quotes"},
		"text for a number":    {"channel: x\ncount: many\n", "2:1: count: text stands where a number belongs", "config/invalid", ""},
		"text for a switch":    {"channel: x\nopen: yes\n", "2:1: open: text stands where true or false belongs", "config/invalid", ""},
		"text for a list":      {"beds: x\n", "1:1: beds: text stands where a list belongs", "config/invalid", ""},
		"list for a map":       {"hosts:\n- a\n", "1:1: hosts: a list stands where a group of keys belongs", "config/invalid", ""},
		"switch in a list":     {"beds:\n- name: a\n  plants:\n  - b\n  - true\n", "5:5: beds[0].plants[1]: true or false stands where text belongs", "config/invalid", "put it in quotes"},
		"a scalar":             {"hello\n", "1:1: the file: text stands where a group of keys belongs", "config/invalid", ""},
		"duplicate key":        {"channel: x\nchannel: y\n", `2:1: mapping key "channel" already defined at [1:1]`, "config/syntax", "check indentation and quotes at this place"},
		"duplicate inside":     {"beds:\n- name: x\n  name: y\n", `3:3: mapping key "name" already defined at [2:3]`, "config/syntax", "check indentation and quotes at this place"},
		"tab":                  {"channel: x\nbeds:\n\t- name: y\n", `3:1: found character '\t' that cannot start any token`, "config/syntax", "check indentation and quotes at this place"},
		"anchor":               {"channel: &a x\nbeds:\n- name: *a\n", "1:10: anchors (&) and aliases (*) are not accepted", "config/syntax", "write the value out, or put the text in quotes"},
		"merge key":            {"hosts:\n  a: {ca: x}\n  b:\n    <<: {ca: y}\n", "4:5: anchors (&) and aliases (*) are not accepted", "config/syntax", "write the value out, or put the text in quotes"},
		"an alias of nothing":  {"channel: *a\n", "1:10: anchors (&) and aliases (*) are not accepted", "config/syntax", "write the value out, or put the text in quotes"},
		"nothing":              {"", "it is empty", "config/syntax", remedy},
		"comments":             {"# nothing\n", "it is empty", "config/syntax", remedy},
		"two documents":        {"channel: x\n---\nchannel: y\n", "it holds 2 documents, one is needed", "config/syntax", ""},
		"keys without end":     {"hosts:\n" + strings.Repeat("  a:\n", 12_000), "it has 12001 keys, and a configuration file at most 10000", "config/unreadable", "split it, or take together what belongs together"},
		"keys in braces":       {"hosts: {" + strings.Repeat("a: 1, ", 11_000) + "}\n", "it has 11001 keys, and a configuration file at most 10000", "config/unreadable", "split it, or take together what belongs together"},
		"words without end":    {"plants: [a" + strings.Repeat(",a", 300_000) + "]\n", "it has more than 60000 lines and signs", "config/unreadable", "split it, or take together what belongs together"},
		"nested without end":   {"channel: " + strings.Repeat("[", 40_000) + "\n", "1:109: it nests deeper than 100", "config/syntax", ""},
		"nested and closed":    {"channel: " + strings.Repeat("{a: ", 5000) + strings.Repeat("}", 5000) + "\n", "1:208: it nests deeper than 100", "config/syntax", ""},
		"tag":                  {"channel: !!str 1.10\n", "1:10: tags (!) are not accepted", "config/syntax", "take it out, or put the text in quotes"},
		"a long name":          {"channel: x\n" + strings.Repeat("k", 1000) + ": 1\n", `2:1: unknown key "` + strings.Repeat("k", 60) + `"`, "config/unknown-key", "known here: channel, count, open, hosts, beds"},
		"a long text":          {"channel: " + strings.Repeat("k", 65537) + "\n", "1:10: the text has 65537 bytes, and one at most 65536", "config/syntax", "shorten it"},
		"NUL":                  {"channel: x\ncount: \x00\n", "2:8: the control character U+0000 stands there", "config/syntax", "take it out"},
		"an escape sequence":   {"channel: x\nnote: \x1b[31m\n", "2:7: the control character U+001B stands there", "config/syntax", "take it out"},
		"C1":                   {"channel: \u009b31m\n", "1:10: the control character U+009B stands there", "config/syntax", "take it out"},
		"escaped":              {"channel: x\nbeds:\n- name: \"a\\e[31m\"\n", "3:9: the text holds the control character U+001B", "config/syntax", "take it out"},
		"escaped in a key":     {"channel: x\n\"a\\0\": 1\n", "2:1: the text holds the control character U+0000", "config/syntax", "take it out"},
		"UTF-16 with a mark":   {"\xff\xfec\x00:\x00", "1:1: it is not UTF-8; it looks like UTF-16 or UTF-32", "config/syntax", "save it as UTF-8 text"},
		"UTF-16":               {"c\x00:\x00", "1:1: it is not UTF-8; it looks like UTF-16 or UTF-32", "config/syntax", "save it as UTF-8 text"},
		"Latin 1":              {"channel: x\nbeds: f\xfcr\n", "2:8: the byte 0xFC is no UTF-8", "config/syntax", "save it as UTF-8 text"},
		"hexadecimal":          {"channel: x\ncount: 0x10\n", `2:8: "0x10" is no plain decimal number`, "config/syntax", "write it with the digits 0 to 9 alone, or in quotes if it is text"},
		"octal":                {"channel: x\ncount: 010\n", `2:8: "010" is no plain decimal number`, "config/syntax", "write it with the digits 0 to 9 alone, or in quotes if it is text"},
		"minus nothing":        {"channel: x\ncount: -0\n", `2:8: "-0" is no plain decimal number`, "config/syntax", "write it with the digits 0 to 9 alone, or in quotes if it is text"},
		"plus":                 {"channel: x\ncount: +1\n", `2:8: "+1" is no plain decimal number`, "config/syntax", "write it with the digits 0 to 9 alone, or in quotes if it is text"},
		"underscores":          {"channel: x\ncount: 1_0\n", `2:8: "1_0" is no plain decimal number`, "config/syntax", "write it with the digits 0 to 9 alone, or in quotes if it is text"},
		"without end":          {"channel: x\ncount: .inf\n", `2:8: ".inf" is no plain decimal number`, "config/syntax", "write it with the digits 0 to 9 alone, or in quotes if it is text"},
		"no number":            {"channel: x\ncount: .nan\n", `2:8: ".nan" is no plain decimal number`, "config/syntax", "write it with the digits 0 to 9 alone, or in quotes if it is text"},
		"brackets in comments": {"# " + strings.Repeat("[", 5000) + "\nchanel: x\n", `2:1: unknown key "chanel"`, "config/unknown-key", `did you mean "channel"?`},
		"brackets in a string": {"channel: x\ncount: \"" + strings.Repeat("[]", 5000) + "\"\n", "2:1: count: text stands where a number belongs", "config/invalid", ""},
	} {
		_, _, err := load(t, c.text)
		var e *Mistake
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := strings.TrimPrefix(strings.TrimPrefix(e.Error(), e.File), ":")
		if strings.TrimSpace(got) != c.want || e.Code() != c.kind || e.Remedy() != c.fix {
			t.Errorf("%s:\n got %q, %s, %q\nwant %q, %s, %q", name, strings.TrimSpace(got), e.Code(), e.Remedy(), c.want, c.kind, c.fix)
		}
	}
}

func TestBillionLaughs(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 ha\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	if _, _, err := load(t, b.String()); problem.CodeOf(err) != "config/syntax" {
		t.Errorf("got %v", err)
	}
}

func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	var g garden
	_, err := Read(filepath.Join(dir, "none.yaml"), unchecked(&g))
	if problem.CodeOf(err) != "config/missing" {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := Read(dir, unchecked(&g)); problem.CodeOf(err) != "config/unreadable" {
		t.Errorf("a folder: %v", err)
	}
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte("channel: x #"+strings.Repeat(" ", maxFile)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(large, unchecked(&g)); problem.CodeOf(err) != "config/unreadable" {
		t.Errorf("too large a file: %v", err)
	}
	if _, err := Read(filepath.Join(large, "x"), unchecked(&g)); err == nil {
		t.Error("loaded a file below a file")
	}
}

func TestLocate(t *testing.T) {
	_, c, err := load(t, "channel: x\nhosts:\n  a.example:5000: {ca: y}\n  b: {}\nbeds:\n- name: a\n- name: b\n  plants: [c, d]\n")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"channel": "1:1", "hosts.a.example:5000": "3:3", "hosts.a.example:5000.ca": "3:20", "hosts.b": "4:3", "beds[0]": "6:3", "beds[1].plants[1]": "8:15",
		"beds[1].labels": "7:3", "beds[9]": "5:1", "count": "1:1", "nowhere.at.all": "1:1", "": "1:1",
	} {
		err := c.Locate(fmt.Errorf("wrapped: %w", problem.Field(path, "is wrong", "mend it")))
		var e *Mistake
		if !errors.As(err, &e) || e.Remedy() != "mend it" {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got := fmt.Sprintf("%d:%d", e.Line, e.Column); got != want {
			t.Errorf("%s is at %s, want %s", path, got, want)
		}
	}
	other := problem.New("lock/missing", "x")
	if got := c.Locate(other); got != error(other) {
		t.Errorf("another error became %v", got)
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"channel: x\n", "hosts:\n  a:5000: {ca: b}\n", "beds:\n- name: a\n  plants: [b, 'c']\n", "a: &b [*b]\n", "? [x]\n: y\n", "- |\n  x\n", "!!binary x: y\n", "\xff", "---\n...\n---\n", "a: >-\n b\n", "{a: [}", "1:\n0:", "open: 1\nbeds: [x, {}, 1]\n",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "c.yaml")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		var g garden
		c, err := Read(path, Form{Into: &g, Check: g.check})
		one, isOne := errors.AsType[*Mistake](err)
		several, isSeveral := errors.AsType[*Mistakes](err)
		if err != nil && (!isOne || one.Code() == "") && (!isSeveral || several.Code() == "" || len(several.Evidence()) < 2) {
			t.Errorf("refused without a code: %v", err)
		}
		if err == nil {
			if located := c.Locate(problem.Field("beds[0].name", "x", "")); problem.CodeOf(located) != "config/invalid" {
				t.Errorf("located as %v", located)
			}
		}
	})
}
