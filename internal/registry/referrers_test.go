package registry

import (
	"strings"
	"testing"
)

func TestNextPage(t *testing.T) {
	for link, want := range map[string]string{
		"":                                        "",
		`</v2/a?n=1>; rel="next"`:                 "?n=1",
		`</v2/a?n=1>;rel = "next"`:                "?n=1",
		`</v2/a?n=1>; rel="prev"`:                 "",
		`</v2/a>; rel="next"`:                     "",
		`/v2/a?n=1; rel="next"`:                   "",
		`</v2/a?n=1; rel="next"`:                  "",
		`<%zz?n=1>; rel="next"`:                   "",
		`<a?p>; rel="prev" , <b?q,r>; rel="next"`: "?q,r",
	} {
		if got := nextPage(link); got != want {
			t.Errorf("%s: %q, want %q", link, got, want)
		}
	}
}

// Whatever a registry sends, it is read within its bounds and leads nowhere
// else.
func FuzzReferrers(f *testing.F) {
	f.Add([]byte(`{"manifests":[{"digest":"sha256:`+strings.Repeat("0", 64)+`"}]}`), `</v2/a?n=1>; rel="next"`)
	f.Add([]byte(`{"manifests":null}`), `<a?p>; rel="prev" , <b?q>; rel="next"`)
	f.Fuzz(func(t *testing.T, b []byte, link string) {
		if list, err := parseReferrers(b); err != nil && list != nil || len(list)*2 > len(b) {
			t.Errorf("%d digests of %d bytes, %v", len(list), len(b), err)
		}
		if next := nextPage(link); next != "" && (next[0] != '?' || !strings.Contains(link, next)) {
			t.Errorf("%q of %q", next, link)
		}
	})
}
