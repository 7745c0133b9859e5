package gate_test

import (
	"strings"
	"testing"

	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/problem"
)

func TestReasonsSaySomething(t *testing.T) {
	for reason, good := range map[string]bool{
		"": true, "seen with the vendor": true, "geprüft,\r\n\tin zwei Zeilen": true, "确认": true, "known 🙂\ufe0f": true,
		strings.Repeat("a", gate.MaxReason):     true,
		strings.Repeat("a", gate.MaxReason+1):   false,
		"...":                                   false,
		"\u200b\u2060\u3164":                    false,
		"\u115f\uffa0\u2800\u00ad":              false,
		"zalgo" + strings.Repeat("\u0301", 500): false,
		"x\x1b]0;title\x07":                     false,
		"x\u009b31m":                            false,
		"x\x7f":                                 false,
		"x\x00":                                 false,
		"\xff":                                  false,
	} {
		if err := gate.CheckReason(reason); (err == nil) != good || !good && problem.CodeOf(err) != "case/reason" {
			t.Errorf("%.40q: %v", reason, err)
		}
	}
}

// A decision is not taken without one that can be read.
func TestADecisionNeedsAReasonThatCanBeRead(t *testing.T) {
	l, _, id, digest := waiting(t, 1)
	anna := l.anna()
	for _, choice := range []gate.Choice{gate.Approve, gate.Reject} {
		if _, err := l.gate.Decide(t.Context(), anna, id, choice, digest, " \u3164\u200b "); problem.CodeOf(err) != "case/reason" {
			t.Errorf("%s: %v", choice, err)
		}
	}
}
