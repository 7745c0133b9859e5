package problem_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/problem"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"manifest unknown":            "manifest unknown",
		"two\nlines\r\n":              "two lines",
		"\x1b[31mred\x1b[0m\a":        "[31mred [0m",
		"right-to-left \u202egnp.exe": "right-to-left gnp.exe",
		"not utf-8 \xff":              "not utf-8 ?",
		strings.Repeat("ä", 5000):     strings.Repeat("ä", 199) + "…",
		strings.Repeat("ä", 200):      strings.Repeat("ä", 200),
	} {
		if got := problem.Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestForeign(t *testing.T) {
	said := errors.New("certificate of\x1b[2J\nevil")
	err := problem.Foreign(said)
	if err.Error() != "certificate of [2J evil" || !errors.Is(err, said) {
		t.Errorf("%q", err)
	}
}
