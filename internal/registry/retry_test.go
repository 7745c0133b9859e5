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
