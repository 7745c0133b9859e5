package depot

import (
	"context"
	"embed"
	"encoding/json/v2"
	"errors"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/packhof/packhof/gate"
)

//go:embed pages/*.html
var pageFiles embed.FS

var pages = template.Must(template.ParseFS(pageFiles, "pages/*.html"))

// treeEntry is a tree in the index.
type treeEntry struct {
	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	Kind       string `json:"kind"`
	Digest     string `json:"digest"`
	Size       int64  `json:"size"`
	Href       string `json:"href"`
}

// treeIndex is a page of the index. Next is where it goes on, "" at the end.
type treeIndex struct {
	Trees []treeEntry `json:"trees"`
	Next  string      `json:"next,omitempty"`
}

// index lists the trees that there are, a page at a time.
func (s *server) index(w http.ResponseWriter, r *http.Request) error {
	after := r.URL.Query().Get("last")
	if len(after) > maxRepository+1+maxTag {
		return &refusal{http.StatusBadRequest, "NAME_INVALID", "last is longer than any name"}
	}
	trees, more, err := s.trees(r.Context(), after)
	if err != nil {
		return err
	}
	page := treeIndex{Trees: make([]treeEntry, len(trees))}
	for i, t := range trees {
		page.Trees[i] = treeEntry{t.Repository, t.Tag, string(t.Kind), t.Digest.String(), t.Size, treePath(t)}
	}
	if more {
		last := trees[len(trees)-1]
		page.Next = "/files/?" + url.Values{"last": {last.Repository + ":" + last.Tag}}.Encode()
	}
	return show(w, r, "index.html", page)
}

// trees collects up to a page of trees that come after repository:tag.
func (s *server) trees(ctx context.Context, after string) (trees []gate.DepotTag, more bool, err error) {
	repository, tag, _ := strings.Cut(after, ":")
	if repository != "" {
		trees, err = s.treesOf(ctx, repository, tag, nil)
		var missing *gate.NotReleasedError
		if err != nil && !errors.As(err, &missing) { // it may be gone since
			return nil, false, err
		}
	}
	for len(trees) <= maxPage {
		names, err := s.store.Repositories(ctx, repository, 100)
		if err != nil {
			return nil, false, err
		}
		if len(names) == 0 {
			return trees, false, nil
		}
		for _, name := range names {
			if trees, err = s.treesOf(ctx, name, "", trees); err != nil {
				return nil, false, err
			}
		}
		repository = names[len(names)-1]
	}
	return trees[:maxPage], true, nil
}

// treesOf appends the trees of one repository, until there is more than a page.
func (s *server) treesOf(ctx context.Context, repository, after string, trees []gate.DepotTag) ([]gate.DepotTag, error) {
	for len(trees) <= maxPage {
		tags, err := s.store.Tags(ctx, repository, after, 100)
		if err != nil {
			return trees, err
		}
		if len(tags) == 0 {
			return trees, nil
		}
		for _, t := range tags {
			if t.Kind.IsTree() {
				trees = append(trees, t)
			}
		}
		after = tags[len(tags)-1].Tag
	}
	return trees, nil
}

// show answers with a page for people, or as JSON for whoever asks for it.
func show(w http.ResponseWriter, r *http.Request, page string, data any) error {
	w.Header().Set("Vary", "Accept")
	if wantsJSON(r) {
		return writeJSON(w, "application/json", data)
	}
	var b strings.Builder
	if err := pages.ExecuteTemplate(&b, page, data); err != nil {
		return err
	}
	return writeText(w, http.StatusOK, "text/html; charset=utf-8", b.String())
}

// wantsJSON tells whether a client asks for JSON by name.
func wantsJSON(r *http.Request) bool {
	for accepted := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		if mediaType, _, err := mime.ParseMediaType(accepted); err == nil && mediaType == "application/json" {
			return true
		}
	}
	return false
}

func writeText(w http.ResponseWriter, status int, mediaType, body string) error {
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-cache")
	}
	w.WriteHeader(status)
	if _, err := w.Write([]byte(body)); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// textProblem is an error below /files/ for those who ask for JSON (RFC 9457).
type textProblem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

// tellText answers with an error in words.
func (s *server) tellText(w http.ResponseWriter, r *http.Request, e *refusal) {
	forgetContent(w.Header())
	// Words of people end on terminals: nothing in them moves a cursor.
	message := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, e.message)
	body, mediaType := message+"\n", "text/plain; charset=utf-8"
	if wantsJSON(r) {
		if b, err := json.Marshal(textProblem{e.status, http.StatusText(e.status), message}); err == nil {
			body, mediaType = string(b), "application/problem+json"
		}
	}
	if err := writeText(w, e.status, mediaType, body); err != nil {
		panic(http.ErrAbortHandler)
	}
}
