package gate

import (
	"encoding/json/v2"
	"testing"
	"time"
)

func TestSentence(t *testing.T) {
	noon := time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)
	for want, s := range map[string]Sentence{
		"":                               {},
		"none is stuck":                  said("none is stuck"),
		"1 file":                         counted(1, "{n} file", "{n} files"),
		"0 files at depot":               counted(int64(0), "{n} file", "{n} files at {where}", "where", "depot"),
		"until 2026-11-30T12:00:00Z":     said("until {at}", "at", noon),
		"{b} and two, {c} and {unknown}": said("{a} and {b}, {c} and {unknown}", "a", "{b}", "b", "two", "c", "{c}"),
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		stored, err := canonical(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Sentence
		if err := json.Unmarshal(stored, &back); err != nil || back.Form != s.Form || len(back.Params) != len(s.Params) {
			t.Errorf("%s comes back as %+v, %v", stored, back, err)
		}
	}
}
