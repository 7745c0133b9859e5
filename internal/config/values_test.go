package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/internal/problem"
)

func TestSpan(t *testing.T) {
	for text, want := range map[string]struct {
		span    time.Duration
		written string
	}{
		"30d": {720 * time.Hour, "30d"}, "12h": {12 * time.Hour, "12h0m0s"}, "48h": {48 * time.Hour, "2d"}, "1h30m": {90 * time.Minute, "1h30m0s"},
		"15m": {15 * time.Minute, "15m0s"}, "0s": {0, "0s"}, "0d": {0, "0s"}, "106751d": {106751 * day, "106751d"}, "1ms": {time.Millisecond, "1ms"},
	} {
		var s Span
		if err := s.UnmarshalText([]byte(text)); err != nil || time.Duration(s) != want.span || s.String() != want.written {
			t.Errorf("%s is %d, written %s, %v", text, s, s, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "1.5d", "106752d", "4294967296d", "-5s", "10", "a month", "1d12h", "30D", " 1h", "30 d", "1y"} {
		s := Span(7)
		if err := s.UnmarshalText([]byte(text)); err == nil || s != 7 {
			t.Errorf("%q is %s", text, s)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]struct {
		bytes   int64
		written string
	}{
		"512MiB": {512 << 20, "512MiB"}, "4GiB": {4 << 30, "4GiB"}, "4096MiB": {4 << 30, "4GiB"}, "1TiB": {1 << 40, "1TiB"}, "1KiB": {1 << 10, "1KiB"},
		"1025KiB": {1025 << 10, "1025KiB"}, "0KiB": {0, "0KiB"}, "4194304TiB": {1 << 62, "4194304TiB"},
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || int64(s) != want.bytes || s.String() != want.written {
			t.Errorf("%s is %d, written %s, %v", text, s, s, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1MiB", "+1MiB", "1.5GiB", "512", "512MB", "512 MiB", "512mib", "much", "4194305TiB", "2147483648KiB", "9223372036854775807GiB", "GiB", "4"} {
		s := Size(7)
		if err := s.UnmarshalText([]byte(text)); err == nil || s != 7 {
			t.Errorf("%q is %s", text, s)
		}
	}
}

// What is read is written so that it is read as the same.
func FuzzValues(f *testing.F) {
	for _, text := range []string{"30d", "12h", "1h2m3.5s", "512MiB", "1KiB", "0d", "-1s", "2400000h", "4194304TiB"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var span, span2 Span
		if span.UnmarshalText([]byte(text)) == nil {
			if written, _ := span.MarshalText(); span2.UnmarshalText(written) != nil || span2 != span || span < 0 {
				t.Errorf("%q is %d, written %s, read as %d", text, span, written, span2)
			}
		}
		var size, size2 Size
		if size.UnmarshalText([]byte(text)) == nil {
			if written, _ := size.MarshalText(); size2.UnmarshalText(written) != nil || size2 != size || size < 0 {
				t.Errorf("%q is %d, written %s, read as %d", text, size, written, size2)
			}
		}
	})
}

// A text that is no span and no size is refused with examples that suit the
// field.
func TestExamplesSuitTheField(t *testing.T) {
	var clock struct {
		Keep   Span `json:"keep"`
		Ring   Span `json:"ring" such:"10s or 2m"`
		Room   Size `json:"room"`
		Alarms []struct {
			Snooze *Span `json:"snooze" such:"5m"`
		} `json:"alarms"`
		Moods map[string]Span `json:"moods"`
	}
	for text, want := range map[string]string{
		"keep: soon":                "1:1: keep: \"soon\" is no span of time such as 30d, 12h or 15m",
		"ring: soon":                "1:1: ring: \"soon\" is no span of time such as 10s or 2m",
		"room: much":                "1:1: room: \"much\" is no size such as 512MiB or 4GiB",
		"alarms:\n- {snooze: soon}": "2:4: alarms[0].snooze: \"soon\" is no span of time such as 5m",
		"moods: {bad: soon}":        "1:9: moods.bad: \"soon\" is no span of time such as 30d, 12h or 15m",
	} {
		_, err := Read(written(t, text), Form{Into: &clock, Check: func() error { return nil }})
		m, ok := errors.AsType[*Mistake](err)
		if !ok || !strings.HasSuffix(m.Error(), "garden.yaml:"+want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCheckHead(t *testing.T) {
	for _, c := range []struct{ version, kind, want string }{
		{"packhof/v1", "Export", ""},
		{"packhof/v9", "Export", "apiVersion"},
		{"packhof/v1", "Gate", "kind"},
	} {
		var wrong problem.Fields
		CheckHead(c.version, c.kind, "Export", &wrong)
		field, _ := errors.AsType[*problem.FieldError](wrong.Err())
		if (field == nil) != (c.want == "") || field != nil && field.Path != c.want {
			t.Errorf("%s, %s: %v", c.version, c.kind, field)
		}
	}
}
