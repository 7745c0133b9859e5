package registry

import (
	"strings"
	"testing"
)

const someDigest = "sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

func TestParseReference(t *testing.T) {
	for in, want := range map[string]string{
		"nginx:1.27":                                    "docker.io/library/nginx:1.27",
		"nginx:latest":                                  "docker.io/library/nginx:latest",
		"team/app:1":                                    "docker.io/team/app:1",
		"docker.io/nginx:1":                             "docker.io/library/nginx:1",
		"index.docker.io/library/nginx:1":               "docker.io/library/nginx:1",
		"nginx@" + someDigest:                           "docker.io/library/nginx@" + someDigest,
		"ghcr.io/a/b/c:v1.2_3-x":                        "ghcr.io/a/b/c:v1.2_3-x",
		"GHCR.io/a:1":                                   "ghcr.io/a:1",
		"localhost/a:1":                                 "localhost/a:1",
		"127.0.0.1:5000/a__b/c-d:1@" + someDigest:       "127.0.0.1:5000/a__b/c-d:1@" + someDigest,
		"[2001:db8::1]:5000/a:1":                        "[2001:db8::1]:5000/a:1",
		"harbor.plant.example:8443/p/app@" + someDigest: "harbor.plant.example:8443/p/app@" + someDigest,
	} {
		got, err := ParseReference(in)
		if err != nil || got.String() != want {
			t.Errorf("ParseReference(%q) = %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestParseReferenceRefuses(t *testing.T) {
	for _, in := range []string{
		"", ":1", "nginx", "registry.example/app", "registry.example:5000/app", "nginx:", "nginx:a b", "nginx:" + strings.Repeat("x", 129),
		"Nginx:1", "Team/app:1", "a//b:1", "a/../b:1", "-a/b:1", "a.b/:1", "nginx@sha256:0a", "nginx@sha256:" + strings.Repeat("0", 64), "nginx@sha512:" + strings.Repeat("0", 128),
		"nginx@" + strings.ToUpper(someDigest), "https://registry.example/app:1", "oci://registry.example/app:1", "nginx:1@" + someDigest + "@" + someDigest,
		"a.b:x/c:1", "reg ister.example/a:1", "nginx:1\n", "nginx:1?x=y", "example.com/" + strings.Repeat("a", 256) + ":1", strings.Repeat("a", 2000) + ":1",
	} {
		if got, err := ParseReference(in); err == nil {
			t.Errorf("ParseReference(%q) = %s, want an error", in, got)
		}
	}
}

func TestParseReferenceAsksForATag(t *testing.T) {
	_, err := ParseReference("team/app")
	if hint := remedyOf(err); !strings.Contains(hint, "the tag or the digest") {
		t.Errorf("remedy %q does not ask for a tag or a digest", hint)
	}
}

func TestParseReferenceKeepsPasswordsToItself(t *testing.T) {
	for _, in := range []string{"anna:geheim@registry.example/app:1", "https://anna:geheim@registry.example/app:1"} {
		_, err := ParseReference(in)
		if err == nil || strings.Contains(err.Error()+remedyOf(err), "geheim") {
			t.Errorf("%q: error %v, remedy %q; want one without the password", in, err, remedyOf(err))
		}
	}
}

func FuzzParseReference(f *testing.F) {
	f.Add("nginx:1.27")
	f.Add("[::1]:5000/a__b:1@" + someDigest)
	f.Add("index.docker.io/x:1")
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := ParseReference(s)
		if err != nil {
			return
		}
		again, err := ParseReference(ref.String())
		if err != nil || again != ref {
			t.Errorf("%q is %s, and that is %s, %v", s, ref, again, err)
		}
		if strings.ContainsAny(ref.Host+ref.Repository+ref.Tag, "?#%@ \\") || strings.Contains(ref.Repository, "..") {
			t.Errorf("%q would not stay in its place in a URL: %+v", s, ref)
		}
	})
}

func remedyOf(err error) string {
	if r, ok := err.(interface{ Remedy() string }); ok {
		return r.Remedy()
	}
	return ""
}
