package depot

import (
	"bytes"
	"encoding/json/v2"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/testkit"
)

func TestFiles(t *testing.T) {
	s := newShelf(t)
	files := map[string]string{
		"config.json": "{}", "weights/part 1.bin": "1234567890", "index.html": "<script>alert(1)</script>", "a.SVG": "<svg/>",
		"müll/ß%2F.txt": "ü", "README.md": "# x", "data.csv": "a,b", "empty": "", "x.deb": "!<arch>", "page.xhtml": "<x/>", "s.js": "alert(1)",
	}
	s.addTree("models/tiny", "v1", bundle.Model, files)
	server := s.serve(Options{})
	for path, content := range files {
		got := ask(t, "GET", server.URL+"/files/models/tiny/v1/"+escape(path))
		if got.StatusCode != 200 || got.body != content || !strings.HasPrefix(got.Header.Get("Content-Disposition"), "attachment") || got.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d %q %v", path, got.StatusCode, got.body, got.Header)
		}
		kind, _, _ := strings.Cut(got.Header.Get("Content-Type"), ";")
		if strings.Contains(kind, "html") || strings.Contains(kind, "svg") || strings.Contains(kind, "xml") || strings.Contains(kind, "script") {
			t.Errorf("%s is served as %s", path, kind)
		}
	}
	for path, want := range map[string]string{"config.json": "application/json", "weights/part 1.bin": typeBytes, "index.html": typeBytes, "README.md": "text/plain; charset=utf-8", "x.deb": "application/vnd.debian.binary-package"} {
		if got := ask(t, "HEAD", server.URL+"/files/models/tiny/v1/"+escape(path)); got.Header.Get("Content-Type") != want {
			t.Errorf("%s: %s, want %s", path, got.Header.Get("Content-Type"), want)
		}
	}
	got := ask(t, "GET", server.URL+"/files/models/tiny/v1/weights/part%201.bin", "Range: bytes=2-4")
	if got.StatusCode != 206 || got.body != "345" || got.Header.Get("Content-Disposition") != `attachment; filename="part 1.bin"` {
		t.Errorf("a part: %d %q %v", got.StatusCode, got.body, got.Header)
	}
	etag := got.Header.Get("Etag")
	if got := ask(t, "GET", server.URL+"/files/models/tiny/v1/weights/part%201.bin", "If-None-Match: "+etag); got.StatusCode != 304 {
		t.Errorf("with its own ETag: %d", got.StatusCode)
	}
}

// escape is a path as a link has it.
func escape(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c == '/' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func TestFilesThatAreNotThere(t *testing.T) {
	s, _, _ := stocked(t)
	bad := s.addTree("models/bad", "v1", bundle.Model, map[string]string{"x": "1"})
	leaf := s.addTree("models/leaf", "v1", bundle.Model, map[string]string{"x": "22", "y": "3"})
	s.withdrawn[bad.Digest] = "poisoned \x1b[31mweights"
	s.withdrawn[s.trees[leaf.Digest][0].Digest] = "one file only"
	secret := filepath.Join(filepath.Dir(s.store.Dir()), "secret")
	if err := os.WriteFile(secret, []byte("of the inside"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := s.serve(Options{})
	for _, tc := range []struct {
		request string
		status  int
	}{
		{"GET /files/models/tiny/v1/none", 404},
		{"GET /files/models/tiny/v1/weights", 404},
		{"GET /files/models/tiny/v1/weights/", 404},
		{"GET /files/models/tiny/v1/config.json/", 404},
		{"GET /files/models/tiny/v1/./config.json", 404},
		{"GET /files/models/tiny/v1//config.json", 404},
		{"GET /files/models/tiny/v1/../v1/config.json", 404},
		{"GET /files/models/tiny/v1/..%2f..%2fsecret", 400},
		{"GET /files/models/tiny/v1/%2e%2e/%2e%2e/secret", 404},
		{"GET /files/models/tiny/v1/" + secret, 404},
		{"GET /files/" + secret, 404},
		{"GET /files/models/tiny/v1/weights%2Fpart%201.bin", 400},
		{"GET /files/models/tiny/v1/weights%5Cpart%201.bin", 404},
		{"GET /files/models/tiny/v1/config.json%00", 404},
		{"GET /files/models/tiny/v1/CONFIG.JSON", 404},
		{"GET /files/models/tiny/v1/%ff", 404},
		{"GET /files/models/tiny/v1/" + strings.Repeat("a/", 4000), 404},
		{"GET /files/" + strings.Repeat("a/", 4000), 404},
		{"GET /files/models/tiny/v2/config.json", 404},
		{"GET /files/models/tiny/", 404},
		{"GET /files/models", 404},
		{"GET /files/team/app/1.0/", 404}, // an image is no tree
		{"GET /files/?last=" + strings.Repeat("a", 400), 400},
		{"GET /files", 404},
		{"GET /files/models/bad/v1/", 403},
		{"GET /files/models/bad/v1/x", 403},
		{"GET /files/models/bad/v1/SHA256SUMS", 403},
		{"GET /files/models/leaf/v1/x", 403},
		{"GET /files/models/leaf/v1/y", 200},
		{"PUT /files/models/tiny/v1/config.json", 405},
		{"DELETE /files/models/tiny/v1/", 405},
		{"PROPFIND /files/", 405},
		{"GET /files/models/tiny/v1", 308},
	} {
		method, path, _ := strings.Cut(tc.request, " ")
		for _, accept := range []string{"*/*", "text/html, application/json;q=0.9"} {
			got := ask(t, method, server.URL+path, "Accept: "+accept)
			if got.StatusCode != tc.status || strings.Contains(got.body, "of the inside") || strings.ContainsRune(got.body, '\x1b') {
				t.Errorf("%s (%s): %d %q, want %d", tc.request, accept, got.StatusCode, got.body, tc.status)
			}
			if tc.status == 403 && !strings.Contains(got.body, "poisoned") && !strings.Contains(got.body, "one file only") {
				t.Errorf("%s: the reason is not in %q", tc.request, got.body)
			}
			if tc.status >= 400 && (got.Header.Get("Etag") != "" || got.Header.Get("Cache-Control") != "no-store") {
				t.Errorf("%s: %v", tc.request, got.Header)
			}
		}
	}
	if got := ask(t, "GET", server.URL+"/files/models/tiny/v1"); got.Header.Get("Location") != "/files/models/tiny/v1/" {
		t.Errorf("redirect to %q", got.Header.Get("Location"))
	}
}

// A name with slashes means the longest repository that has such a tree.
func TestLongestRepositoryIsMeant(t *testing.T) {
	s := newShelf(t)
	s.addTree("a", "1", bundle.Files, map[string]string{"b/2/x": "short", "b/2/only-here": "short", "c": "c"})
	s.addTree("a/1/b", "2", bundle.Files, map[string]string{"x": "long"})
	s.addImage("a/1/b/2/x", "3", must(testkit.Image(testkit.ImageSpec{Seed: "image in between"})))
	server := s.serve(Options{})
	for path, want := range map[string]string{"a/1/b/2/x": "long", "a/1/c": "c"} {
		if got := ask(t, "GET", server.URL+"/files/"+path); got.body != want {
			t.Errorf("%s: %d %q, want %q", path, got.StatusCode, got.body, want)
		}
	}
	if got := ask(t, "GET", server.URL+"/files/a/1/b/2/only-here"); got.StatusCode != 404 {
		t.Errorf("what a longer name hides: %d %q", got.StatusCode, got.body)
	}
}

func TestListings(t *testing.T) {
	s := newShelf(t)
	root := s.addTree("models/tiny", "v1", bundle.Model, map[string]string{"config.json": "{}", `we"ird/<b>&?#%.txt`: "1", "SHA256SUMS": "upstream's own"})
	server := s.serve(Options{})

	got := ask(t, "GET", server.URL+"/files/models/tiny/v1/", "Accept: application/json")
	var listing treeListing
	if err := json.Unmarshal([]byte(got.body), &listing, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	if listing.Digest != root.Digest.String() || len(listing.Files) != 3 || got.Header.Get("Vary") != "Accept" {
		t.Errorf("%s", got.body)
	}
	for _, f := range listing.Files { // every link leads to the file
		content := ask(t, "GET", server.URL+f.Href)
		if content.StatusCode != 200 || "sha256:"+sum(content.body) != f.Digest || int64(len(content.body)) != f.Size {
			t.Errorf("%s: %d %q", f.Href, content.StatusCode, content.body)
		}
	}
	page := ask(t, "GET", server.URL+"/files/models/tiny/v1/", "Accept: text/html")
	if page.Header.Get("Content-Type") != "text/html; charset=utf-8" || strings.Contains(page.body, "<b>") || !strings.Contains(page.body, "we&#34;ird/&lt;b&gt;&amp;?#%.txt") {
		t.Errorf("%s", page.body)
	}
	for _, f := range listing.Files {
		if !strings.Contains(page.body, `href="`+html.EscapeString(f.Href)+`"`) {
			t.Errorf("%s is not a link of\n%s", f.Href, page.body)
		}
	}
	sums := ask(t, "GET", server.URL+listing.Sums)
	want := sum("upstream's own") + "  SHA256SUMS\n" + sum("{}") + "  config.json\n" + sum("1") + `  we"ird/<b>&?#%.txt` + "\n"
	if diff := cmp.Diff(want, sums.body); diff != "" || sums.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A file called SHA256SUMS is the file that was released, and the list of
// digests stands elsewhere; below the root the name means nothing.
func TestOwnSums(t *testing.T) {
	s := newShelf(t)
	s.addTree("odd", "1.0", bundle.Files, map[string]string{"SHA256SUMS": "upstream's own", "x": "1"})
	s.addTree("plain", "1.0", bundle.Files, map[string]string{"sub/SHA256SUMS": "of the folder", "x": "1"})
	server := s.serve(Options{})
	odd := sum("upstream's own") + "  SHA256SUMS\n" + sum("1") + "  x\n"
	plain := sum("of the folder") + "  sub/SHA256SUMS\n" + sum("1") + "  x\n"
	for path, want := range map[string]string{
		"odd/1.0/SHA256SUMS": "upstream's own", "odd/1.0/?list=sha256": odd,
		"plain/1.0/sub/SHA256SUMS": "of the folder", "plain/1.0/SHA256SUMS": plain, "plain/1.0/?list=sha256": plain,
	} {
		if got := ask(t, "GET", server.URL+"/files/"+path); got.StatusCode != 200 || got.body != want {
			t.Errorf("%s: %d %q, want %q", path, got.StatusCode, got.body, want)
		}
	}
	for path, want := range map[string]string{"odd/1.0/": "/files/odd/1.0/?list=sha256", "plain/1.0/": "/files/plain/1.0/SHA256SUMS"} {
		var listing treeListing
		got := ask(t, "GET", server.URL+"/files/"+path, "Accept: application/json")
		if err := json.Unmarshal([]byte(got.body), &listing); err != nil || listing.Sums != want {
			t.Errorf("%s: %v, the list is at %q, want %q", path, err, listing.Sums, want)
		}
		if page := ask(t, "GET", server.URL+"/files/"+path); !strings.Contains(page.body, `href="`+want+`"`) {
			t.Errorf("%s: no link to %s in\n%s", path, want, page.body)
		}
	}
}

func sum(s string) string { return cas.DigestOf([]byte(s)).Hex() }

func TestIndexOfTrees(t *testing.T) {
	s := newShelf(t)
	if got := ask(t, "GET", s.serve(Options{}).URL+"/files/"); got.StatusCode != 200 || !strings.Contains(got.body, "No model") {
		t.Errorf("an empty depot: %d %s", got.StatusCode, got.body)
	}
	root := s.addTree("tree", "0", bundle.Files, map[string]string{"x": "1"})
	s.addImage("image", "1", must(testkit.Image(testkit.ImageSpec{Seed: "no tree"})))
	var want []string
	s.tags = s.tags[:0]
	for r := range 12 {
		for i := range 210 {
			kind := []bundle.Kind{bundle.Files, bundle.Image, bundle.Model}[i%3]
			tag := gate.DepotTag{Repository: fmt.Sprintf("r/%02d", r), Tag: fmt.Sprintf("t%04d", i), Kind: kind, Digest: root.Digest}
			s.tags = append(s.tags, tag)
			if kind.IsTree() {
				want = append(want, "/files/"+tag.Repository+"/"+tag.Tag+"/")
			}
		}
	}
	server := s.serve(Options{})
	var got []string
	pages := 0
	for path := "/files/"; path != ""; pages++ {
		var page treeIndex
		if err := json.Unmarshal([]byte(ask(t, "GET", server.URL+path, "Accept: application/json").body), &page); err != nil {
			t.Fatal(err)
		}
		for _, tree := range page.Trees {
			got = append(got, tree.Href)
		}
		path = page.Next
	}
	if diff := cmp.Diff(want, got); diff != "" || pages != 2 {
		t.Errorf("%d pages (-want +got):\n%s", pages, diff)
	}
	if page := ask(t, "GET", server.URL+"/files/").body; !strings.Contains(page, `href="/files/r/00/t0000/"`) || !strings.Contains(page, `rel="next"`) {
		t.Errorf("%.2000s", page)
	}
}

// sha256sum reads what is served as its own.
func TestSHA256SumsAreReadBySha256sum(t *testing.T) {
	sha256sum := testkit.Tool(t, "sha256sum")
	s := newShelf(t)
	files := map[string]string{"a/b c.txt": "1", "ü": "2", " leading": "3", "-dash": "4", "*star": "5"}
	s.addTree("set", "1", bundle.Files, files)
	server := s.serve(Options{})
	dir := t.TempDir()
	for path := range files {
		name := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(ask(t, "GET", server.URL+"/files/set/1/"+escape(path)).body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), sha256sum, "--check", "--strict", "--quiet")
	command.Dir = dir
	command.Stdin = bytes.NewReader([]byte(ask(t, "GET", server.URL+"/files/set/1/SHA256SUMS").body))
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func FuzzCandidates(f *testing.F) {
	for _, text := range []string{"", "a/1", "a/1/", "a/b/c/1/x/y", "/", "a//1", "../1/x", "a/1/../x", strings.Repeat("a/", 300)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		longest := maxRepository + 1
		for _, c := range candidates(text) {
			if !validRepository(c.repository) || !validTag(c.tag) || len(c.repository) >= longest {
				t.Errorf("%q gives %+v", text, c)
			}
			longest = len(c.repository)
			again := c.repository + "/" + c.tag
			if text != again && text != again+"/"+c.inside {
				t.Errorf("%q was read as %+v", text, c)
			}
		}
	})
}
