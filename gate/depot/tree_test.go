package depot

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// TestHugeListsTakeNoMemory lists 100,000 files in each form, a page of them
// for people, and looks at the heap now and then.
func TestHugeListsTakeNoMemory(t *testing.T) {
	const limit = 8 << 20
	s := newShelf(t)
	s.addTree("models/huge", "v1", bundle.Model, map[string]string{"x": "1"})
	h := Handler(s, Options{})
	for name, c := range map[string]struct {
		path, accept, line string
		files              int
	}{
		"sums": {"/files/models/huge/v1/SHA256SUMS", "", "  some/folder/part-", 100_000},
		"page": {"/files/models/huge/v1/", "text/html", "<tr><td>", maxPage},
		"JSON": {"/files/models/huge/v1/", "application/json", `"path":`, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			s.made = 100_000
			r := httptest.NewRequest("GET", c.path, nil)
			r.Header.Set("Accept", c.accept)
			w := &weigher{header: http.Header{}, line: c.line, before: heap()}
			h.ServeHTTP(w, r)
			if w.lines < c.files-c.files/100 { // a line may be cut in two by pieces
				t.Errorf("%d lines, want %d", w.lines, c.files)
			}
			if w.most > limit {
				t.Errorf("%d bytes at once, want at most %d", w.most, limit)
			}
		})
	}
}

// weigher is an answer that counts lines, and weighs the heap at every hundredth
// piece.
type weigher struct {
	header        http.Header
	line          string
	pieces, lines int
	before, most  int64
}

func (w *weigher) Header() http.Header { return w.header }
func (w *weigher) WriteHeader(int)     {}

func (w *weigher) Write(b []byte) (int, error) {
	w.lines += strings.Count(string(b), w.line)
	if w.pieces++; w.pieces%100 == 1 {
		w.most = max(w.most, heap()-w.before)
	}
	return len(b), nil
}

// treeListing is a listing as programs read it.
type treeListing struct {
	Repository string      `json:"repository"`
	Tag        string      `json:"tag"`
	Kind       string      `json:"kind"`
	Digest     string      `json:"digest"`
	Sums       string      `json:"sha256sums"`
	Files      []fileEntry `json:"files"`
}

// TestListsOfManyPages compares lists that need several questions with the tree.
func TestListsOfManyPages(t *testing.T) {
	s := newShelf(t)
	s.addTree("models/long", "v1", bundle.Model, map[string]string{"x": "1"})
	server := s.serve(Options{})
	for _, n := range []int{1, maxPage - 1, maxPage, maxPage + 1, 3 * maxPage} {
		s.made = n
		var listing treeListing
		got := ask(t, "GET", server.URL+"/files/models/long/v1/", "Accept: application/json")
		if err := json.Unmarshal([]byte(got.body), &listing); err != nil || listing.Repository != "models/long" || len(listing.Files) != n {
			t.Errorf("%d files: %v, %d", n, err, len(listing.Files))
		}
		if last := fmt.Sprintf("some/folder/part-%07d", n-1); len(listing.Files) == n && listing.Files[n-1].Path != last {
			t.Errorf("%d files: the last is %s", n, listing.Files[n-1].Path)
		}
		pages, rows := 0, 0
		for next := "/files/models/long/v1/"; next != ""; pages++ {
			page := ask(t, "GET", server.URL+next, "Accept: text/html")
			rows += strings.Count(page.body, "<tr><td>")
			next = linkToMore(page.body)
		}
		if want := (n + maxPage - 1) / maxPage; rows != n || pages != want {
			t.Errorf("%d files: %d rows on %d pages, want %d", n, rows, pages, want)
		}
		if got := ask(t, "GET", server.URL+"/files/models/long/v1/SHA256SUMS"); strings.Count(got.body, "\n") != n {
			t.Errorf("%d files: %d sums", n, strings.Count(got.body, "\n"))
		}
	}
	if got := ask(t, "GET", server.URL+"/files/models/long/v1/?last="+strings.Repeat("a", maxLast+1)); got.StatusCode != 400 {
		t.Errorf("after what is longer than any path: %d", got.StatusCode)
	}
	if got := ask(t, "HEAD", server.URL+"/files/models/long/v1/SHA256SUMS"); got.StatusCode != 200 || got.body != "" {
		t.Errorf("HEAD: %d, %q", got.StatusCode, got.body)
	}
}

var moreLink = regexp.MustCompile(`<a href="([^"]+)" rel="next">`)

func linkToMore(page string) string {
	if m := moreLink.FindStringSubmatch(page); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}

// breaking fails after the first page.
type breaking struct{ *shelf }

func (b breaking) Files(ctx context.Context, tree gate.DepotTag, after string, limit int) ([]gate.DepotFile, error) {
	if after != "" {
		return nil, errors.New("the disk is gone")
	}
	return b.shelf.Files(ctx, tree, after, limit)
}

func TestAListThatBreaksOffDoesNotLookWhole(t *testing.T) {
	s := newShelf(t)
	s.addTree("models/long", "v1", bundle.Model, map[string]string{"x": "1"})
	s.made = 2 * maxPage
	server := httptest.NewServer(Handler(breaking{s}, Options{}))
	defer server.Close()
	for path, accept := range map[string]string{"/files/models/long/v1/SHA256SUMS": "text/plain", "/files/models/long/v1/": "application/json"} {
		if got, err := tryAsk(t, "GET", server.URL+path, "Accept: "+accept); err == nil {
			t.Errorf("%s: %d with %d bytes looks whole", path, got.StatusCode, len(got.body))
		}
	}
	c := must(net.Dial("tcp", server.Listener.Addr().String()))
	defer func() { _ = c.Close() }()
	must(fmt.Fprint(c, "GET /files/models/long/v1/SHA256SUMS HTTP/1.0\r\n\r\n"))
	if answer := must(io.ReadAll(c)); !strings.HasPrefix(string(answer), "HTTP/1.0 505 ") {
		t.Errorf("by HTTP/1.0: %.100q", answer)
	}
}

// TestClientsThatDoNotReadListsAreCut has many ask for a list and read nothing:
// others get theirs, and those who wait are let go.
func TestClientsThatDoNotReadListsAreCut(t *testing.T) {
	s := newShelf(t)
	s.addTree("models/huge", "v1", bundle.Model, map[string]string{"x": "1"})
	s.made = 150_000
	h := Handler(s, Options{}).(*server)
	h.patience = 200 * time.Millisecond
	const clients = 9
	ended := make(chan any, clients+1)
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			ended <- p
			if p != nil {
				panic(p)
			}
		}()
		h.ServeHTTP(w, r)
	}))
	defer served.Close()
	for range clients {
		c := must(net.Dial("tcp", served.Listener.Addr().String()))
		defer func() { _ = c.Close() }()
		must(fmt.Fprint(c, "GET /files/models/huge/v1/SHA256SUMS HTTP/1.1\r\nHost: depot\r\n\r\n"))
		must(io.ReadFull(c, make([]byte, 100)))
	}
	for range clients {
		if p := <-ended; p != http.ErrAbortHandler {
			t.Errorf("one ended with %v", p)
		}
	}
	h.patience = time.Minute // this machine may have other things to do
	if got := ask(t, "GET", served.URL+"/files/models/huge/v1/SHA256SUMS"); strings.Count(got.body, "\n") != s.made {
		t.Errorf("who reads gets %d lines", strings.Count(got.body, "\n"))
	}
}
