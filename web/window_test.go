package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// at is what a request with a query asks for.
func at(query string) parts {
	r := httptest.NewRequest(http.MethodGet, "/cases/1?"+query, nil)
	return partsOf(echo.New().NewContext(r, httptest.NewRecorder()), "/cases/1", nil)
}

func TestWindow(t *testing.T) {
	for _, c := range []struct {
		query    string
		n        int
		from, to int
	}{
		{"", 0, 0, 0},
		{"", 1, 0, 1},
		{"", rowsShown, 0, rowsShown},
		{"", rowsShown + 1, 0, rowsShown},
		{"list=loads&from=200", 250, 200, 250},
		{"list=loads&from=201", 450, 200, 400},
		{"list=loads&from=9223372036854775807", 450, 400, 450},
		{"list=loads&from=99999999999999999999", 450, 0, 200},
		{"list=loads&from=-1", 450, 0, 200},
		{"list=loads&from=x", 450, 0, 200},
		{"list=loads&from=200", 0, 0, 0},
		{"list=history&from=200", 450, 0, 200},
		{"list=loads" + strings.Repeat("x", 1000) + "&from=200", 450, 0, 200},
	} {
		if w := at(c.query).Of("loads", c.n); w.From != c.from || w.To != c.to || w.Long() != (c.n > rowsShown) || w.More() != c.n-c.to {
			t.Errorf("%.40s of %d: %d to %d", c.query, c.n, w.From, w.To)
		}
	}
	w := at("list=loads&from=200").Of("loads", 450)
	if w.Before() != "/cases/1?from=0&list=loads#loads" || w.After() != "/cases/1?from=400&list=loads#loads" {
		t.Errorf("%s, %s", w.Before(), w.After())
	}
	for query, want := range map[string]string{"": "/cases/1", "list=%3Cb%3E%23&from=3": "/cases/1?from=3&list=%3Cb%3E%23#%3Cb%3E%23"} {
		if got := at(query).address(); got != want || localPath(got) != got {
			t.Errorf("%s: the address is %s", query, got)
		}
	}
}

// Who asks for a part of a list of an artifact gets the artifact, opened.
func TestContentsHoldWhatIsAskedFor(t *testing.T) {
	artifacts := make([]gate.ReviewArtifact, 1000)
	for i := range artifacts {
		artifacts[i].Files = make([]gate.ReviewFile, 50)
	}
	for _, c := range []struct {
		query       string
		first, open int
		fileFrom    int
	}{
		{"", 0, -1, 0},
		{"list=contents&from=400", 400, -1, 0},
		{"list=files-450&from=20", 400, 450, 20},
		{"list=files-99999&from=20", 800, -1, 0},
		{"list=files-&from=20", 0, -1, 0},
		{"list=sboms-3&from=20", 0, 3, 0},
	} {
		shown, w := contentsOf(artifacts, at(c.query))
		if w.From != c.first || len(shown) != rowsShown {
			t.Errorf("%s: %d artifacts from %d", c.query, len(shown), w.From)
		}
		for i, a := range shown {
			number := w.From + i
			want := 0
			if number == c.open {
				want = c.fileFrom
			}
			if a.Open != (number == c.open) || a.Tree.From != want || a.Tree.To-a.Tree.From != rowsLeast {
				t.Errorf("%s: artifact %d is open: %t, files %d to %d", c.query, number, a.Open, a.Tree.From, a.Tree.To)
			}
		}
	}
}

// A case of many artifacts shows them in parts, and every one is in some part.
func TestLongCase(t *testing.T) {
	l := newLab(t)
	l.trust()
	const n = 2*rowsShown + 50
	c := l.receive(l.forge(func(m *bundle.Manifest) {
		for i := range n - 1 {
			another := m.Artifacts[0]
			another.Name = fmt.Sprintf("part-%05d", i)
			m.Artifacts = append(m.Artifacts, another)
		}
	}))
	if c.State != gate.Awaiting {
		t.Fatalf("the case is %s: %+v", c.State, c.Problem)
	}
	b := l.loggedIn(reviewer, "en")
	for from, want := range map[int]string{0: "1 to 200 of 450 are shown, and 250 more follow", 200: "201 to 400 of 450 are shown, and 50 more follow", 400: "401 to 450 of 450 are shown"} {
		for _, list := range []string{"contents", "changed"} {
			s := b.get(fmt.Sprintf("/cases/1?list=%s&from=%d", list, from))
			s.shows(want)
			rows := map[string]int{"contents": len(all(s.doc, "details", "class", "artifact")), "changed": len(all(s.one("table", "id", "changed"), "tr")) - 1}[list]
			if shown := min(rowsShown, n-from); rows != shown {
				t.Errorf("%s from %d: %d rows, want %d", list, from, rows, shown)
			}
			if from+rowsShown < n && len(all(s.doc, "a", "href", fmt.Sprintf("/cases/1?from=%d&list=%s#%s", from+rowsShown, list, list))) == 0 {
				t.Errorf("%s from %d: no link to what follows", list, from)
			}
		}
	}
	form := url.Values{"review": {b.get("/cases/1").field("review")}, "choice": {"approve"}}
	if s := b.post("/cases/1/confirm", form); s.status != http.StatusUnprocessableEntity {
		t.Errorf("a decision without a reason: %d", s.status)
	}
}

// field is the value of a hidden field.
func (s screen) field(name string) string {
	s.t.Helper()
	return attribute(s.one("input", "name", name), "value")
}

// The inbox shows a tab's cases in parts.
func TestLongInbox(t *testing.T) {
	cases := make([]gate.Summary, 450)
	for i := range cases {
		cases[i].State = gate.Loaded
	}
	view := inboxOf(cases, tabDone, gate.Actor{}, at("list=cases&from=400"))
	if len(view.Rows) != 50 || view.Tabs[2].Count != 450 || view.Shown.Before() != "/cases/1?from=200&list=cases&tab=done#cases" {
		t.Errorf("%d rows of %d, before them %s", len(view.Rows), view.Tabs[2].Count, view.Shown.Before())
	}
}

// A listing of the depot goes on in the middle of a repository that has more
// tags than a listing, and loses none.
func TestLongDepot(t *testing.T) {
	l := newLab(t)
	l.trust()
	c := l.receive(l.forge(func(m *bundle.Manifest) {
		for i := range 6 {
			another := m.Artifacts[0]
			another.Version = fmt.Sprintf("1.%d", i+1)
			if i > 3 {
				another.Name, another.Version = fmt.Sprintf("other-%d", i), "1.0"
			}
			m.Artifacts = append(m.Artifacts, another)
		}
	}))
	l.account(reviewer)
	l.approve(reviewer, c.ID)
	if _, err := l.gate.Release(t.Context(), gate.Console("root"), c.ID, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"notes:1.0", "notes:1.1", "notes:1.2", "notes:1.3", "notes:1.4", "other-4:1.0", "other-5:1.0"}
	s := newServer(l.gate, l.options())
	request := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), httptest.NewRecorder())
	for _, room := range []int{1, 2, 3, 5, 6, 7, 100} {
		for _, repositories := range []int{1, 2, 100} {
			var got []string
			for after, first := "", true; first || after != ""; first = false {
				listing, err := s.depot(request, after, repositories, room)
				l.must(err)
				n := 0
				for _, r := range listing.Repositories {
					for _, tag := range r.Tags {
						got = append(got, r.Name+":"+tag.Tag)
						n++
					}
				}
				if n > room || len(listing.Repositories) > repositories || n == 0 {
					t.Fatalf("%d of %d tags, %d of %d repositories", n, room, len(listing.Repositories), repositories)
				}
				after = listing.Next
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d tags of %d repositories at a time: %q", room, repositories, got)
			}
		}
	}
	if listing, err := s.depot(request, "gone:1.0", 100, 100); err != nil || len(listing.Repositories) != 3 {
		t.Errorf("after a repository that is not there any more: %v, %+v", err, listing)
	}
}
