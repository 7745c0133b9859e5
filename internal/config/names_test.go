package config

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"channel", "audience", "ca", "plainHTTP"}
	for name, want := range map[string]string{"chanel": "channel", "hcannel": "channel", "CA": "ca", "audienc": "audience", "xx": "", "": "", "plain_http": "plainHTTP", "completelyelse": ""} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%q is near %q, want %q", name, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abx", 1}, {"kitten", "sitting", 3}} {
		if got := editDistance(c.a, c.b); got != c.want || editDistance(c.b, c.a) != got {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
