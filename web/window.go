package web

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

// Rows that a page shows at once.
const (
	rowsShown  = 200  // of a table, or of a list
	rowsNested = 2000 // of all tables within the rows of another, about
	rowsLeast  = 10   // of such a table

	longestList = 200 // bytes of a list's id
)

// parts says which part of which long list a page shows; all others are shown
// from their beginning.
type parts struct {
	path  string
	query url.Values // besides list and from
	list  string
	from  int
}

// partsOf reads what a request asks for: list names a list by its id on the
// page, from counts its rows from 0.
func partsOf(c echo.Context, path string, query url.Values) parts {
	from, err := strconv.Atoi(c.QueryParam("from"))
	if err != nil || from < 0 {
		from = 0
	}
	list := c.QueryParam("list")
	if len(list) > longestList {
		list = ""
	}
	return parts{path: path, query: query, list: list, from: from}
}

// window is the part of a list that a page shows: rows From to before To.
type window struct {
	parts
	ID       string
	From, To int
	Total    int
	step     int
}

// Of gives the part of a list of n rows.
func (p parts) Of(id string, n int) window { return p.of(id, n, rowsShown) }

func (p parts) of(id string, n, step int) window {
	w := window{parts: p, ID: id, Total: n, step: step}
	if id == p.list && n > 0 {
		w.From = min(p.from, n-1) / step * step
	}
	w.To = min(w.From+step, n)
	return w
}

// First is the number of the first row, for people.
func (w window) First() int { return w.From + 1 }

// More is how many rows follow.
func (w window) More() int { return w.Total - w.To }

// Long tells whether the list has more rows than are shown.
func (w window) Long() bool { return w.To-w.From < w.Total }

// Before is the address of the rows before these.
func (w window) Before() string { return w.at(max(0, w.From-w.step)) }

// After is the address of the rows that follow.
func (w window) After() string { return w.at(w.To) }

func (w window) at(from int) string {
	query := url.Values{"list": {w.ID}, "from": {strconv.Itoa(from)}}
	for name, values := range w.query {
		query[name] = values
	}
	return w.path + "?" + query.Encode() + "#" + url.PathEscape(w.ID)
}

// address is that of the page with these parts.
func (p parts) address() string {
	if p.list == "" {
		return p.path
	}
	return window{parts: p, ID: p.list}.at(p.from)
}

// Ids of lists of a case; those of an artifact end with its place.
const (
	idContents = "contents"
	idSBOMs    = "sboms-"
	idRefs     = "attached-"
	idFiles    = "files-"
)

// artifact is the place of the artifact whose list is asked for, if one is.
func (p parts) artifact() (place int, ok bool) {
	for _, prefix := range []string{idSBOMs, idRefs, idFiles} {
		if text, found := strings.CutPrefix(p.list, prefix); found {
			place, err := strconv.Atoi(text)
			return place, err == nil && place >= 0
		}
	}
	return 0, false
}
