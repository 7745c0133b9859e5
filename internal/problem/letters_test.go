package problem_test

import (
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/problem"
)

func TestHidden(t *testing.T) {
	for _, r := range "\x00\t\n\x1b\x7f\u0085\u009b\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u200b\u200d\u200e\u2028\u2029\u202e\u2060\u2066\u206f\u2800\u3164\ufe00\ufe0f\ufeff\uffa0\ufff9\U0001d173\U000e0001\U000e0041\U000e0100" {
		if !problem.Hidden(r) {
			t.Errorf("%U can be seen", r)
		}
	}
	for _, r := range " aZ0~!ä日本ไทย한\u00a0\u0301\u3000€🙂\ue000" {
		if problem.Hidden(r) {
			t.Errorf("%U cannot be seen", r)
		}
	}
	if !problem.HasHidden("ab\u3164") || problem.HasHidden("two words") || problem.HasHidden("") {
		t.Error("HasHidden looks at something else")
	}
}

func TestHasWords(t *testing.T) {
	for text, want := range map[string]bool{
		"seen by two of us": true, "好": true, "7": true, "geprüft": true, "geprüft 🙂": true, "ทดสอบที่นี่": true, "שָׁלוֹם": true,
		"a" + strings.Repeat("\u0301", 8):       true,
		"":                                      false,
		" \t\n":                                 false,
		"...":                                   false,
		"\u200b\u2060\u3164":                    false,
		"\u115f\u1160\uffa0\u2800":              false,
		"\u0301\u0301":                          false,
		"a" + strings.Repeat("\u0301", 9):       false,
		"a" + strings.Repeat("\u0301\u200b", 9): false,
		"fine" + strings.Repeat("\u20dd", 500) + " b": false,
	} {
		if got := problem.HasWords(text); got != want {
			t.Errorf("HasWords(%.40q) = %t, want %t", text, got, want)
		}
	}
}
