package depot

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/testkit"
)

// stocked is a shelf with an image that has an SBOM, and a tree.
func stocked(t testing.TB) (s *shelf, image, tree bundle.OCIDescriptor) {
	t.Helper()
	s = newShelf(t)
	image = s.addImage("team/app", "1.0", must(testkit.Image(testkit.ImageSpec{Seed: "app", PayloadSize: 2 << 20})))
	tree = s.addTree("models/tiny", "v1", bundle.Model, map[string]string{"config.json": "{}", "weights/part 1.bin": "1234567890", "index.html": "<script>alert(1)</script>"})
	return s, image, tree
}

const (
	absent  = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	foreign = "sha512:cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
)

func TestManifests(t *testing.T) {
	s, image, _ := stocked(t)
	server := s.serve(Options{})
	want := string(must(s.store.ReadAll(image.Digest, 1<<20)))
	for _, tc := range []struct{ path, caching string }{
		{"/v2/team/app/manifests/1.0", "no-cache"},
		{"/v2/team/app/manifests/" + image.Digest.String(), "private, max-age=31536000, immutable"},
		{"/v2/team/app/manifests/sha256%3A" + image.Digest.Hex(), "private, max-age=31536000, immutable"},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			got := ask(t, method, server.URL+tc.path, "Accept: application/vnd.docker.distribution.manifest.v1+prettyjws")
			header := map[string]string{}
			for _, name := range []string{"Content-Type", "Docker-Content-Digest", "Etag", "Cache-Control", "Docker-Distribution-Api-Version", "Content-Length"} {
				header[name] = got.Header.Get(name)
			}
			wantHeader := map[string]string{
				"Content-Type": bundle.TypeOCIManifest, "Docker-Content-Digest": image.Digest.String(), "Etag": `"` + image.Digest.String() + `"`,
				"Cache-Control": tc.caching, "Docker-Distribution-Api-Version": "registry/2.0", "Content-Length": fmt.Sprint(len(want)),
			}
			if diff := cmp.Diff(wantHeader, header); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", method, tc.path, diff)
			}
			if wantBody := map[string]string{"GET": want, "HEAD": ""}[method]; got.StatusCode != 200 || got.body != wantBody {
				t.Errorf("%s %s: %d %q", method, tc.path, got.StatusCode, got.body)
			}
		}
	}
}

func TestOCIErrors(t *testing.T) {
	s, image, tree := stocked(t)
	s.withdrawn[tree.Digest] = "poisoned weights"
	server := s.serve(Options{})
	long := strings.Repeat("a", 256)
	for _, tc := range []struct {
		request string
		status  int
		code    string
	}{
		{"GET /v2/nobody/here/manifests/1.0", 404, "NAME_UNKNOWN"},
		{"GET /v2/team/app/manifests/2.0", 404, "MANIFEST_UNKNOWN"},
		{"GET /v2/team/app/manifests/" + absent, 404, "MANIFEST_UNKNOWN"},
		{"GET /v2/team/app/manifests/" + foreign, 404, "MANIFEST_UNKNOWN"},
		{"GET /v2/team/app/manifests/sha256:ABC", 400, "DIGEST_INVALID"},
		{"GET /v2/team/app/manifests/-bad", 400, "DIGEST_INVALID"},
		{"GET /v2/team/app/manifests/" + strings.Repeat("t", 129), 400, "DIGEST_INVALID"},
		{"GET /v2/team/app/blobs/" + absent, 404, "BLOB_UNKNOWN"},
		{"GET /v2/team/app/blobs/" + foreign, 404, "BLOB_UNKNOWN"},
		{"GET /v2/team/app/blobs/1.0", 400, "DIGEST_INVALID"},
		{"GET /v2/models/tiny/blobs/" + image.Digest.String(), 404, "BLOB_UNKNOWN"}, // of another repository
		{"GET /v2/models/tiny/manifests/v1", 403, "DENIED"},
		{"GET /v2/models/tiny/manifests/" + tree.Digest.String(), 403, "DENIED"},
		{"GET /v2/models/tiny/blobs/" + tree.Digest.String(), 403, "DENIED"},
		{"GET /v2/nobody/here/tags/list", 404, "NAME_UNKNOWN"},
		{"GET /v2/team/app/tags/list?n=-1", 400, "PAGINATION_NUMBER_INVALID"},
		{"GET /v2/team/app/tags/list?n=many", 400, "PAGINATION_NUMBER_INVALID"},
		{"GET /v2/team/app/tags/list?last=" + long, 400, "NAME_INVALID"},
		{"GET /v2/_catalog?n=99999999999999999999", 400, "PAGINATION_NUMBER_INVALID"},
		{"GET /v2/team/app/referrers/nothing", 400, "DIGEST_INVALID"},
		{"GET /v2/" + long + "/manifests/1.0", 400, "NAME_INVALID"},
		{"GET /v2/Team/app/manifests/1.0", 400, "NAME_INVALID"},
		{"GET /v2/team/../app/manifests/1.0", 400, "NAME_INVALID"},
		{"GET /v2/team/%2e%2e/manifests/1.0", 400, "NAME_INVALID"},
		{"GET /v2//manifests/1.0", 400, "NAME_INVALID"},
		{"GET /v2/team//app/manifests/1.0", 400, "NAME_INVALID"},
		{"GET /v2/t%C3%A9am/manifests/1.0", 400, "NAME_INVALID"},
		{"GET /v2/team%00/manifests/1.0", 400, "NAME_INVALID"},
		{"GET /v2/team%0a/manifests/1.0", 400, "NAME_INVALID"},
		{"GET /v2/team%2Fapp/manifests/1.0", 400, "NAME_INVALID"},
		{"GET /v2/team/app/manifests/1.0%2f..", 400, "NAME_INVALID"},
		{"GET /v2/team/app/manifests/", 400, "DIGEST_INVALID"},
		{"GET /v2/team/app", 404, "UNSUPPORTED"},
		{"GET /v2/app", 404, "UNSUPPORTED"},
		{"GET /v2/team/app/blobs/uploads/", 404, "UNSUPPORTED"},
		{"GET /v2/team/app/tags/other", 404, "UNSUPPORTED"},
		{"POST /v2/team/app/blobs/uploads/", 405, "UNSUPPORTED"},
		{"POST /v2/team/app/blobs/uploads/?mount=" + image.Digest.String(), 405, "UNSUPPORTED"},
		{"PATCH /v2/team/app/blobs/uploads/1", 405, "UNSUPPORTED"},
		{"PUT /v2/team/app/manifests/1.0", 405, "UNSUPPORTED"},
		{"DELETE /v2/team/app/manifests/1.0", 405, "UNSUPPORTED"},
		{"DELETE /v2/team/app/blobs/" + image.Digest.String(), 405, "UNSUPPORTED"},
		{"OPTIONS /v2/", 405, "UNSUPPORTED"},
		{"QUERY /v2/", 405, "UNSUPPORTED"},
	} {
		t.Run(tc.request, func(t *testing.T) {
			method, path, _ := strings.Cut(tc.request, " ")
			got := ask(t, method, server.URL+path)
			if got.StatusCode != tc.status || got.Header.Get("Content-Type") != "application/json" {
				t.Errorf("status %d, %s, want %d", got.StatusCode, got.Header.Get("Content-Type"), tc.status)
			}
			var document ociErrors
			if err := json.Unmarshal([]byte(got.body), &document); err != nil || len(document.Errors) != 1 || document.Errors[0].Code != tc.code {
				t.Errorf("%v, body %s, want the code %s", err, got.body, tc.code)
			}
			if tc.status == 405 && got.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow %q", got.Header.Get("Allow"))
			}
			if tc.code == "DENIED" && !strings.Contains(got.body, "poisoned weights") {
				t.Errorf("the reason is not in %s", got.body)
			}
		})
	}
}

func TestStoreThatDoesNotAnswer(t *testing.T) {
	s, _, _ := stocked(t)
	s.failed = errors.New("database /var/secret is locked")
	server := s.serve(Options{})
	for _, path := range []string{"/v2/_catalog", "/v2/team/app/tags/list", "/v2/team/app/manifests/1.0", "/files/", "/files/models/tiny/v1/", "/v2/team/app/referrers/" + absent} {
		got := ask(t, "GET", server.URL+path)
		if got.StatusCode != http.StatusInternalServerError || strings.Contains(got.body, "secret") {
			t.Errorf("%s: %d %s, want 500 and nothing of the inside", path, got.StatusCode, got.body)
		}
	}
}

func TestBase(t *testing.T) {
	server := newShelf(t).serve(Options{})
	for _, path := range []string{"/v2/", "/v2"} {
		got := ask(t, "GET", server.URL+path)
		if got.StatusCode != 200 || got.Header.Get("Docker-Distribution-Api-Version") != "registry/2.0" || got.body != "{}" {
			t.Errorf("%s: %d %q %v", path, got.StatusCode, got.body, got.Header)
		}
	}
	if got := ask(t, "GET", server.URL+"/"); got.StatusCode != 404 {
		t.Errorf("/: %d", got.StatusCode)
	}
}

// nextPage reads a Link header.
var nextPage = regexp.MustCompile(`^<([^>]*)>; rel="next"$`)

// allPages follows Link headers and gives the body of every page.
func allPages(t *testing.T, base, path string) (bodies []string) {
	t.Helper()
	for path != "" {
		got := ask(t, "GET", base+path)
		if got.StatusCode != 200 || len(bodies) > 20 {
			t.Fatalf("%s: %d, page %d", path, got.StatusCode, len(bodies))
		}
		bodies = append(bodies, got.body)
		link := nextPage.FindStringSubmatch(got.Header.Get("Link"))
		path = ""
		if link != nil {
			path = link[1]
		}
	}
	return bodies
}

func TestLists(t *testing.T) {
	s := newShelf(t)
	image := must(testkit.Image(testkit.ImageSpec{Seed: "lists"}))
	for _, name := range []string{"a", "b/c", "d"} {
		for _, tag := range []string{"1", "10", "2", "latest"} {
			s.addImage(name, tag, image)
		}
	}
	server := s.serve(Options{})
	for _, tc := range []struct {
		path string
		want []string
	}{
		{"/v2/_catalog", []string{`{"repositories":["a","b/c","d"]}`}},
		{"/v2/_catalog?n=2", []string{`{"repositories":["a","b/c"]}`, `{"repositories":["d"]}`}},
		{"/v2/_catalog?n=3", []string{`{"repositories":["a","b/c","d"]}`}},
		{"/v2/_catalog?n=0", []string{`{"repositories":[]}`}},
		{"/v2/_catalog?last=b", []string{`{"repositories":["b/c","d"]}`}},
		{"/v2/b/c/tags/list", []string{`{"name":"b/c","tags":["1","10","2","latest"]}`}},
		{"/v2/b/c/tags/list?n=3", []string{`{"name":"b/c","tags":["1","10","2"]}`, `{"name":"b/c","tags":["latest"]}`}},
		{"/v2/b/c/tags/list?n=100000&last=10", []string{`{"name":"b/c","tags":["2","latest"]}`}},
		{"/v2/b/c/tags/list?n=0", []string{`{"name":"b/c","tags":[]}`}},
		{"/v2/b/c/tags/list?last=zzz", []string{`{"name":"b/c","tags":[]}`}},
	} {
		if diff := cmp.Diff(tc.want, allPages(t, server.URL, tc.path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.path, diff)
		}
	}
}

func TestLongLists(t *testing.T) {
	s := newShelf(t)
	image := s.putImage(must(testkit.Image(testkit.ImageSpec{Seed: "long"})))
	for i := range maxPage + 1 {
		s.tags = append(s.tags, gate.DepotTag{Repository: "r", Tag: fmt.Sprintf("t%05d", i), Kind: bundle.Image, Digest: image.Digest})
	}
	pages := allPages(t, s.serve(Options{}).URL, "/v2/r/tags/list")
	if len(pages) != 2 || pages[1] != `{"name":"r","tags":["t01000"]}` {
		t.Errorf("%d pages, the last is %s", len(pages), pages[len(pages)-1])
	}
}

func TestReferrers(t *testing.T) {
	s, image, _ := stocked(t)
	sbom := s.addReferrer("team/app", "application/vnd.cyclonedx+json", `{"bomFormat":"CycloneDX"}`, image, map[string]string{"k": "v<"})
	scan := s.addReferrer("team/app", "application/vnd.example.scan", `{}`, image, nil)
	server := s.serve(Options{})
	for _, tc := range []struct {
		query, filters string
		want           []bundle.Digest
	}{
		{image.Digest.String(), "", []bundle.Digest{sbom, scan}},
		{image.Digest.String() + "?artifactType=application/vnd.example.scan", "artifactType", []bundle.Digest{scan}},
		{image.Digest.String() + "?artifactType=application%2Fvnd.cyclonedx%2Bjson", "artifactType", []bundle.Digest{sbom}},
		{image.Digest.String() + "?artifactType=none", "artifactType", nil},
		{absent, "", nil},
		{foreign, "", nil},
	} {
		got := ask(t, "GET", server.URL+"/v2/team/app/referrers/"+tc.query)
		var index ociIndex
		if err := json.Unmarshal([]byte(got.body), &index); err != nil {
			t.Fatalf("%s: %v", tc.query, err)
		}
		digests := map[bundle.Digest]bool{}
		for _, d := range index.Manifests {
			digests[d.Digest] = true
		}
		want := map[bundle.Digest]bool{}
		for _, d := range tc.want {
			want[d] = true
		}
		if diff := cmp.Diff(want, digests); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.query, diff)
		}
		if got.StatusCode != 200 || got.Header.Get("Content-Type") != bundle.TypeOCIIndex || got.Header.Get("OCI-Filters-Applied") != tc.filters || index.SchemaVersion != 2 || index.MediaType != bundle.TypeOCIIndex {
			t.Errorf("%s: %d %v %s", tc.query, got.StatusCode, got.Header, got.body)
		}
		if len(tc.want) == 0 && !strings.Contains(got.body, `"manifests":[]`) {
			t.Errorf("%s: no list in %s", tc.query, got.body)
		}
	}
	if got := ask(t, "GET", server.URL+"/v2/never/seen/referrers/"+absent); got.StatusCode != 200 {
		t.Errorf("an unknown repository: %d", got.StatusCode)
	}
}

// Annotations are foreign: an answer stays below what clients read.
func TestReferrersInPages(t *testing.T) {
	s, image, _ := stocked(t)
	fat := map[string]string{"fat": strings.Repeat("x", 900<<10)}
	want := map[bundle.Digest]bool{}
	for i := range 5 {
		r := gate.DepotReferrer{Digest: s.put(fmt.Appendf(nil, "referrer %d", i)), MediaType: bundle.TypeOCIManifest, Size: 10, ArtifactType: "a/b", Annotations: fat}
		s.refer("team/app", image.Digest, r)
		want[r.Digest] = true
	}
	server := s.serve(Options{})
	pages := allPages(t, server.URL, "/v2/team/app/referrers/"+image.Digest.String()+"?artifactType=a/b")
	got := map[bundle.Digest]bool{}
	for _, page := range pages {
		if len(page) > 4<<20 {
			t.Errorf("a page of %d bytes", len(page))
		}
		var index ociIndex
		if err := json.Unmarshal([]byte(page), &index); err != nil {
			t.Fatal(err)
		}
		for _, d := range index.Manifests {
			got[d.Digest] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(pages) != 3 {
		t.Errorf("%d pages (-want +got):\n%s", len(pages), diff)
	}
}

// Every answer says that nothing in it is to be guessed at or run.
func TestEveryAnswerIsInert(t *testing.T) {
	s, image, _ := stocked(t)
	server := s.serve(Options{})
	for _, path := range []string{"/", "/v2/", "/v2/x", "/v2/team/app/blobs/" + image.Digest.String(), "/files/", "/files/models/tiny/v1/", "/files/models/tiny/v1/index.html", "/files/none"} {
		got := ask(t, "GET", server.URL+path)
		if got.Header.Get("X-Content-Type-Options") != "nosniff" || got.Header.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
			t.Errorf("%s: %v", path, got.Header)
		}
	}
}

func FuzzOCIPath(f *testing.F) {
	for _, path := range []string{"/v2/", "/v2", "/v2/_catalog", "/v2/a/tags/list", "/v2/a/b/manifests/1", "/v2/a/blobs/" + absent, "/v2/a/manifests/tags/list", "/v2/../manifests/x", "/v2//", "/v3/"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		p, err := parseOCIPath(path)
		if err != nil {
			var e *refusal
			if !errors.As(err, &e) || e.status < 400 || e.status > 499 || e.code == "" {
				t.Errorf("%q: %#v is no answer", path, err)
			}
			return
		}
		var again string
		switch p.end {
		case endBase:
			again = "/v2/"
			path = strings.TrimSuffix(path, "/") + "/"
		case endCatalog:
			again = "/v2/_catalog"
		case endTags:
			again = "/v2/" + p.repository + "/tags/list"
		default:
			again = "/v2/" + p.repository + "/" + string(p.end) + "/" + p.reference
		}
		if again != path {
			t.Errorf("%q was read as %+v, which is %q", path, p, again)
		}
		if p.repository != "" && (!validRepository(p.repository) || strings.Contains("/"+p.repository+"/", "/../")) || strings.Contains(p.reference, "/") {
			t.Errorf("%q gives %+v", path, p)
		}
	})
}
