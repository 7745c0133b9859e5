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
// A file that is itself called SHA256SUMS has no line: under that name the list
// stands. Its bytes are a blob of the repository.
type sums struct{}

func (sums) begin(io.Writer) error { return nil }
func (sums) end(io.Writer) error   { return nil }

func (sums) file(w io.Writer, f gate.DepotFile) error {
	if f.Path == sumsName {
		return nil
	}
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
	href := treePath(tag) + (&url.URL{Path: f.Path}).EscapedPath()
	if f.Path == sumsName {
		href = "/v2/" + tag.Repository + "/blobs/" + f.Digest.String()
	}
	return fileEntry{f.Path, f.Size, f.Digest.String(), href}
}

// treeHead is what a listing says of the tree itself.
type treeHead struct{ Repository, Tag, Kind, Digest, Sums string }

func headOf(tag gate.DepotTag) treeHead {
	return treeHead{tag.Repository, tag.Tag, string(tag.Kind), tag.Digest.String(), treePath(tag) + sumsName}
}

// listingPage is a listing for people.
type listingPage struct{ tag gate.DepotTag }

func (l listingPage) begin(w io.Writer) error {
	return pages.ExecuteTemplate(w, "listing-begin", headOf(l.tag))
}

func (l listingPage) file(w io.Writer, f gate.DepotFile) error {
	return pages.ExecuteTemplate(w, "listing-file", entryOf(l.tag, f))
}

func (l listingPage) end(w io.Writer) error { return pages.ExecuteTemplate(w, "listing-end", nil) }

// listingJSON is a listing for programs: repository, tag, kind, digest and
// sha256sums of the tree, and files, each with path, size, digest and href.
type listingJSON struct {
	tag gate.DepotTag
	enc *jsontext.Encoder
}

func (l *listingJSON) begin(w io.Writer) error {
	l.enc = jsontext.NewEncoder(w)
	head := headOf(l.tag)
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
