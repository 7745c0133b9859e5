package depot

import (
	"bufio"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
)

// form is how the files of a tree are listed.
type form interface {
	begin(io.Writer) error
	file(io.Writer, gate.DepotFile) error
	end(io.Writer) error
}

// list lists the files of a tree a page at a time, so that the largest takes no
// more memory than a small one, and a client that is slow holds nothing but its
// connection. A list that cannot be finished is cut off: none ends early and
// looks whole.
func (s *server) list(w http.ResponseWriter, r *http.Request, tag gate.DepotTag, mediaType string, f form) error {
	if !r.ProtoAtLeast(1, 1) {
		return &refusal{http.StatusHTTPVersionNotSupported, "UNSUPPORTED", "lists are for HTTP/1.1 and later, where a client sees whether one is whole"}
	}
	page, err := s.store.Files(r.Context(), tag, "", maxPage)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", cacheByName)
	if r.Method == http.MethodHead {
		return nil
	}
	out := bufio.NewWriterSize(s.patient(w), listBuffer)
	err = s.writeList(r.Context(), out, tag, page, f)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return s.cut(r, err)
	}
	return nil
}

// listBuffer is the size of a piece of a list, in bytes.
const listBuffer = 32 << 10

func (s *server) writeList(ctx context.Context, out io.Writer, tag gate.DepotTag, page []gate.DepotFile, f form) (err error) {
	if err := f.begin(out); err != nil {
		return err
	}
	for len(page) > 0 {
		for _, file := range page {
			if err := f.file(out, file); err != nil {
				return err
			}
		}
		if len(page) < maxPage {
			break
		}
		if page, err = s.store.Files(ctx, tag, page[len(page)-1].Path, maxPage); err != nil {
			return err
		}
	}
	return f.end(out)
}

// patient gives the client of an answer some time for each piece of it.
func (s *server) patient(w http.ResponseWriter) io.Writer {
	return &patientWriter{w: w, control: http.NewResponseController(w), patience: s.patience}
}

type patientWriter struct {
	w        io.Writer
	control  *http.ResponseController
	patience time.Duration
}

// Write implements io.Writer.
func (p *patientWriter) Write(b []byte) (int, error) {
	// What ends the write is a deadline that has passed. Where the connection
	// has none, as in memory, nothing blocks either.
	impatience := time.AfterFunc(p.patience, func() { _ = p.control.SetWriteDeadline(time.Unix(1, 0)) })
	defer impatience.Stop()
	n, err := p.w.Write(b)
	if err != nil {
		err = sendError{err}
	}
	return n, err
}

// sums lists the digests of a tree, as sha256sum -c reads them. Paths hold no
// backslash and no line break, so that no line needs the escapes of sha256sum.
type sums struct{}

func (sums) begin(io.Writer) error { return nil }
func (sums) end(io.Writer) error   { return nil }

func (sums) file(w io.Writer, f gate.DepotFile) error {
	if err := bundle.CheckPath(f.Path); err != nil {
		return fmt.Errorf("a tree of the depot: %w", err)
	}
	_, err := io.WriteString(w, f.Digest.Hex()+"  "+f.Path+"\n")
	return err
}

// fileEntry is a file in the listing of a tree.
type fileEntry struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Digest string `json:"digest"`
	Href   string `json:"href"`
}

func entryOf(tag gate.DepotTag, f gate.DepotFile) fileEntry {
	return fileEntry{f.Path, f.Size, f.Digest.String(), treePath(tag) + (&url.URL{Path: f.Path}).EscapedPath()}
}

// treeHead is what a listing says of the tree itself.
type treeHead struct{ Repository, Tag, Kind, Digest, Sums string }

// headOf names as the list of digests the file SHA256SUMS, unless the tree has
// one of its own.
func headOf(tag gate.DepotTag, own bool) treeHead {
	sums := treePath(tag) + sumsName
	if own {
		sums = treePath(tag) + "?" + sumsQuery
	}
	return treeHead{tag.Repository, tag.Tag, string(tag.Kind), tag.Digest.String(), sums}
}

// listingPage is a page of a listing for people. Next is where it goes on, ""
// at the end.
type listingPage struct {
	treeHead
	Files []fileEntry
	Next  string
}

// maxLast is how long a path can be, in bytes.
const maxLast = 1024

// page shows the files of a tree that come after ?last=, a page at a time:
// browsers do not stand the whole of a large tree.
func (s *server) page(w http.ResponseWriter, r *http.Request, tag gate.DepotTag, head treeHead) error {
	last := r.URL.Query().Get("last")
	if len(last) > maxLast {
		return &refusal{http.StatusBadRequest, "NAME_INVALID", "last is longer than any path"}
	}
	files, err := s.store.Files(r.Context(), tag, last, maxPage+1)
	if err != nil {
		return err
	}
	page := listingPage{treeHead: head}
	if len(files) > maxPage {
		files = files[:maxPage]
		page.Next = treePath(tag) + "?" + url.Values{"last": {files[maxPage-1].Path}}.Encode()
	}
	for _, f := range files {
		page.Files = append(page.Files, entryOf(tag, f))
	}
	var b strings.Builder
	if err := pages.ExecuteTemplate(&b, "listing.html", page); err != nil {
		return err
	}
	return writeText(w, http.StatusOK, "text/html; charset=utf-8", b.String())
}

// listingJSON is a listing for programs: repository, tag, kind, digest and
// sha256sums of the tree, and files, each with path, size, digest and href.
type listingJSON struct {
	tag  gate.DepotTag
	head treeHead
	enc  *jsontext.Encoder
}

func (l *listingJSON) begin(w io.Writer) error {
	l.enc = jsontext.NewEncoder(w)
	head := l.head
	tokens := []jsontext.Token{jsontext.BeginObject}
	for _, field := range [][2]string{{"repository", head.Repository}, {"tag", head.Tag}, {"kind", head.Kind}, {"digest", head.Digest}, {"sha256sums", head.Sums}} {
		tokens = append(tokens, jsontext.String(field[0]), jsontext.String(field[1]))
	}
	return l.write(append(tokens, jsontext.String("files"), jsontext.BeginArray)...)
}

func (l *listingJSON) file(_ io.Writer, f gate.DepotFile) error {
	return json.MarshalEncode(l.enc, entryOf(l.tag, f))
}

func (l *listingJSON) end(io.Writer) error { return l.write(jsontext.EndArray, jsontext.EndObject) }

func (l *listingJSON) write(tokens ...jsontext.Token) error {
	for _, t := range tokens {
		if err := l.enc.WriteToken(t); err != nil {
			return err
		}
	}
	return nil
}
