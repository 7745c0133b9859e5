package cli

import (
	"bytes"
	"encoding/json/v2"
	"strings"
	"testing"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/internal/problem"
)

type said struct {
	Reason string            `json:"reason"`
	Labels map[string]string `json:"labels"`
	Sizes  []float64         `json:"sizes"`
	Large  uint64            `json:"large"`
	None   *int              `json:"none"`
	Empty  struct{}          `json:"empty"`
	Yes    bool              `json:"yes"`
}

func printed(t testing.TB, format string, document any) string {
	t.Helper()
	var out bytes.Buffer
	a := App{Stdout: &out, Format: format}
	if err := a.Print("Said", document, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const acts = "x\x1b]0;t\x07\r\u009b31m\x7f\u202egnp\u200b\u2028\ufeff\U000e0041 ä日\n two\t"

func TestDocumentsDoNotActOnATerminal(t *testing.T) {
	want := said{Reason: acts, Labels: map[string]string{"b": "lines\nof text\n"}, Sizes: []float64{1, 2.5, 1e300}, Large: 1<<64 - 1, Yes: true}
	for format, lines := range map[string][]string{
		"json": {`"reason": "x\u001b]0;t\u0007\r\u009b31m\u007f\u202egnp\u200b\u2028\ufeff\udb40\udc41 ä日\n two\t"`},
		"yaml": {`reason: "x\x1b]0;t\a\r\u009b31m\x7f\u202egnp\u200b\u2028\ufeff\U000e0041 ä日\n two\t"`, "  b: |\n    lines\n    of text\n", "large: 18446744073709551615", "none: null", "empty: {}"},
	} {
		out := printed(t, format, want)
		for _, line := range lines {
			if !strings.Contains(out, line) {
				t.Errorf("%s lacks\n%s\nand is\n%s", format, line, out)
			}
		}
		if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s has %q", format, out[i:])
		}
		if diff := cmp.Diff(want, parsed(t, format, out)); diff != "" {
			t.Errorf("%s is something else (-want +got):\n%s", format, diff)
		}
	}
}

func parsed(t testing.TB, format, document string) (s said) {
	t.Helper()
	var err error
	if format == "json" {
		err = json.Unmarshal([]byte(document), &s)
	} else {
		err = yaml.Unmarshal([]byte(document), &s)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return s
}

// A key that is not to be printed stands there as its escaped form.
func TestKeysDoNotActOnATerminal(t *testing.T) {
	out := printed(t, "yaml", said{Labels: map[string]string{"a\x1b\nb": "c"}})
	if !strings.Contains(out, "\n  \"a\\\\x1b\\\\nb\": c\n") {
		t.Error(out)
	}
	if out := printed(t, "json", said{Labels: map[string]string{"a\u009b\nb": "c"}}); !strings.Contains(out, `"a\u009b\nb": "c"`) {
		t.Error(out)
	}
}

func FuzzPrint(f *testing.F) {
	for _, text := range []string{acts, "", "\n", " a", "- a", "a: b", "'", "\"", "#", "true", "1", "\\u001b", "\u3164", "\U0001f642", "? a", "?", "a\n b\n\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := said{Reason: strings.ToValidUTF8(text, "?")}
		asJSON := printed(t, "json", want)
		if got := parsed(t, "json", asJSON); got.Reason != want.Reason || strings.ContainsFunc(asJSON, func(r rune) bool { return r != '\n' && problem.Hidden(r) }) {
			t.Errorf("%q became %q", text, asJSON)
		}
		asYAML := printed(t, "yaml", want)
		if got := parsed(t, "yaml", asYAML); got.Reason != want.Reason || strings.ContainsFunc(asYAML, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%q became %q", text, asYAML)
		}
	})
}
