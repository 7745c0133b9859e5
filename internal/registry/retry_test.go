package registry

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	const now = "Mon, 30 Nov 2026 12:00:00 GMT"
	for _, c := range []struct {
		value, date string
		want        time.Duration
	}{
		{"", now, 0},
		{"7", now, 7 * time.Second},
		{"0", now, 0},
		{"-5", now, 0},
		{"86400", now, maxRetryAfter},
		{"9223372036854775807", now, maxRetryAfter},
		{"soon", now, 0},
		{"Mon, 30 Nov 2026 12:00:09 GMT", now, 9 * time.Second},
		{"Mon, 30 Nov 2026 11:00:00 GMT", now, 0},
		{"Tue, 30 Nov 2027 12:00:00 GMT", now, maxRetryAfter},
		{"Mon, 30 Nov 2026 12:00:09 GMT", "", 0},
	} {
		h := http.Header{"Retry-After": {c.value}, "Date": {c.date}}
		if got := retryAfter(h); got != c.want {
			t.Errorf("Retry-After %q, Date %q: %s, want %s", c.value, c.date, got, c.want)
		}
	}
}

func TestBackOffGrowsAndIsBounded(t *testing.T) {
	for attempt := 1; attempt < 100; attempt++ {
		got := backOff(attempt)
		if got < firstWait/2 || got > longestWait {
			t.Fatalf("after attempt %d: %s", attempt, got)
		}
		if attempt == 4 && got < 2*time.Second {
			t.Errorf("after attempt 4 only %s", got)
		}
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"manifest unknown":            "manifest unknown",
		"two\nlines\r\n":              "two lines",
		"\x1b[31mred\x1b[0m\a":        "[31mred [0m",
		"right-to-left \u202egnp.exe": "right-to-left gnp.exe",
		"not utf-8 \xff":              "not utf-8 ?",
	} {
		if got := line(in); got != want {
			t.Errorf("line(%q) = %q, want %q", in, got, want)
		}
	}
	long := make([]byte, 5000)
	for i := range long {
		long[i] = 'x'
	}
	if got := []rune(line(string(long))); len(got) != maxLine {
		t.Errorf("a long line is cut to %d characters, want %d", len(got), maxLine)
	}
}
