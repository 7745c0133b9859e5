package depot

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzPage: what a client asks for of a list is bounded, and an answer leads on
// within the list.
func FuzzPage(f *testing.F) {
	for _, q := range []string{"", "n=0", "n=10&last=a", "n=-1", "n=99999999999999999999", "n=5&n=7", "last=%00", "last=" + strings.Repeat("a", 300)} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		p, err := parsePage(query)
		if err != nil {
			var e *refusal
			if !errors.As(err, &e) || e.status != http.StatusBadRequest || e.code == "" {
				t.Errorf("%q: %#v is no answer", raw, err)
			}
			return
		}
		if p.n < 0 || p.n > maxPage || len(p.after) > maxRepository {
			t.Errorf("%q gives %+v", raw, p)
		}
		w := httptest.NewRecorder()
		p.link(w, "/v2/_catalog", p.after)
		if link := w.Header().Get("Link"); strings.ContainsAny(link, "\r\n\x00") {
			t.Errorf("%q leads on to %q", raw, link)
		}
	})
}

// FuzzDigest: digests of others are told apart from ours and from none.
func FuzzDigest(f *testing.F) {
	for _, s := range []string{absent, strings.ToUpper(absent), "sha512:ab", "sha256:", "a:b", "md5+x:00", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ours, err := parseDigest(s)
		if ours && (err != nil || d.String() != s) || !ours && !d.IsZero() || err == nil && !ours && (strings.HasPrefix(s, "sha256:") || len(s) > maxForeignDigest) {
			t.Errorf("%q: %s, %v, %v", s, d, ours, err)
		}
	})
}
