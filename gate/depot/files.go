package depot

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/packhof/packhof/gate"
)

// sumsName is where the digests of a tree are listed, as sha256sum -c reads
// them. A tree that has a file of this name gives that file there: what was
// released is never hidden. sumsQuery is where the list stands for every tree.
const (
	sumsName  = "SHA256SUMS"
	sumsQuery = "list=sha256"
)

// serveFiles answers below /files/.
func (s *server) serveFiles(w http.ResponseWriter, r *http.Request) {
	if err := s.answerFiles(w, r); err != nil {
		s.tellText(w, r, s.refusalOf(r, err, "NAME_UNKNOWN"))
	}
}

func (s *server) answerFiles(w http.ResponseWriter, r *http.Request) error {
	if err := errors.Join(readOnly(w, r), plainSlashes(r)); err != nil {
		return err
	}
	rest := strings.TrimPrefix(r.URL.Path, "/files/")
	if rest == "" {
		return s.index(w, r)
	}
	tag, inside, err := s.find(r.Context(), rest)
	if err != nil {
		return err
	}
	if inside == "" && !strings.HasSuffix(rest, "/") {
		// Links of the listing are relative to the folder.
		w.Header().Set("Location", treePath(tag))
		w.WriteHeader(http.StatusPermanentRedirect)
		return nil
	}
	if inside != "" && inside != sumsName {
		return s.file(w, r, tag, inside)
	}
	own, err := s.hasSums(r.Context(), tag)
	switch {
	case err != nil:
		return err
	case inside == sumsName && own:
		return s.file(w, r, tag, inside)
	case inside == sumsName, r.URL.RawQuery == sumsQuery:
		return s.list(w, r, tag, "text/plain; charset=utf-8", sums{})
	}
	w.Header().Set("Vary", "Accept")
	if wantsJSON(r) {
		return s.list(w, r, tag, "application/json", &listingJSON{tag: tag, head: headOf(tag, own)})
	}
	return s.page(w, r, tag, headOf(tag, own))
}

// hasSums tells whether a tree has a file under the name of the list.
func (s *server) hasSums(ctx context.Context, tag gate.DepotTag) (bool, error) {
	_, err := s.store.File(ctx, tag.Repository, tag.Tag, sumsName)
	var missing *gate.NotReleasedError
	var denied *gate.DeniedError
	switch {
	case errors.As(err, &missing):
		return false, nil
	case errors.As(err, &denied): // there is one; who asks for it is told why not
		return true, nil
	}
	return err == nil, err
}

// treePath is where a tree is served.
func treePath(tag gate.DepotTag) string { return "/files/" + tag.Repository + "/" + tag.Tag + "/" }

// find takes <repository>/<tag>/<path> apart. Repositories have slashes, as
// paths do: the longest repository that has such a tag and is a tree is meant,
// whatever lies in shorter ones. Nothing of the text is ever a path of this
// machine; path is looked up among the strings of the tree.
func (s *server) find(ctx context.Context, text string) (tag gate.DepotTag, inside string, err error) {
	for _, c := range candidates(text) {
		tag, err := s.store.Tag(ctx, c.repository, c.tag)
		var missing *gate.NotReleasedError
		switch {
		case errors.As(err, &missing):
		case err != nil:
			return tag, "", err
		case tag.Kind.IsTree():
			return tag, c.inside, nil
		}
	}
	return gate.DepotTag{}, "", &gate.NotReleasedError{What: "a tree of that name"}
}

// candidate is one way to read <repository>/<tag>/<path>.
type candidate struct{ repository, tag, inside string }

// candidates lists the ways, longest repository first.
func candidates(text string) (ways []candidate) {
	start := 0 // of the part that ends at end
	for end := 0; end <= maxRepository && end < len(text); end++ {
		if text[end] != '/' {
			continue
		}
		if !validRepository(text[start:end]) {
			break // and so is everything longer
		}
		start = end + 1
		tag, inside, _ := strings.Cut(text[start:], "/")
		if validTag(tag) {
			ways = append(ways, candidate{text[:end], tag, inside})
		}
	}
	slices.Reverse(ways)
	return ways
}

// file gives one file. It is always offered for saving, never for showing:
// what lies in a tree is not ours, and must not speak in our name.
func (s *server) file(w http.ResponseWriter, r *http.Request, tag gate.DepotTag, name string) error {
	f, err := s.store.File(r.Context(), tag.Repository, tag.Tag, name)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", disposition(f.Path))
	it := item{digest: f.Digest, size: f.Size, mediaType: mediaTypeOf(f.Path), caching: cacheByName}
	if !f.Pack.IsZero() {
		return s.packed(w, r, it, f)
	}
	return s.content(w, r, it)
}

func disposition(name string) string {
	if d := mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}); d != "" {
		return d
	}
	return "attachment"
}

// mediaTypeOf knows the types that clients profit from. What a browser would
// run or draw is not among them.
func mediaTypeOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".json":
		return "application/json"
	case ".jsonl", ".ndjson":
		return "application/x-ndjson"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".txt", ".md", ".log", ".rst":
		return "text/plain; charset=utf-8"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".gz", ".tgz":
		return "application/gzip"
	case ".zst":
		return "application/zstd"
	case ".zip", ".whl":
		return "application/zip"
	case ".tar":
		return "application/x-tar"
	case ".deb":
		return "application/vnd.debian.binary-package"
	case ".rpm":
		return "application/x-rpm"
	}
	return typeBytes
}
