package depot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
)

// How long a client may keep what it got. What stands under a digest never
// changes, but it can be withdrawn: caches that serve others do not keep it.
const (
	cacheByDigest = "private, max-age=31536000, immutable"
	cacheByName   = "no-cache"
)

// Sizes in bytes.
const (
	// provenFirst is the size up to which a blob is proven before its first
	// byte is sent, so that damage is an answer and not a cut connection. Few
	// manifests are larger.
	provenFirst = 1 << 20
	// heldBack is how much of a larger one waits for the proof.
	heldBack = 64 << 10
)

// item is content that a request asks for.
type item struct {
	digest    bundle.Digest
	size      int64
	mediaType string
	caching   string
}

// opened is a file of the store.
type opened interface {
	io.ReadSeekCloser
	Stat() (fs.FileInfo, error)
}

// content answers with an item: whole and proven, or the part that was asked
// for. It gives an error only as long as nothing was sent.
func (s *server) content(w http.ResponseWriter, r *http.Request, it item) error {
	h := w.Header()
	etag, done, err := it.conditions(w, r)
	if err != nil || done {
		return err
	}
	f, info, err := s.open(r, it)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	h.Set("Content-Type", it.mediaType)
	if wantsPart(r, etag) {
		http.ServeContent(w, r, "", time.Time{}, f)
		return nil
	}
	h.Set("Accept-Ranges", "bytes")
	if r.Method == http.MethodHead {
		h.Set("Content-Length", strconv.FormatInt(it.size, 10))
		return nil
	}
	return s.whole(w, r, it, f, info)
}

// conditions answers those of a request, and says whether that was all. etag is
// that of the item.
func (it item) conditions(w http.ResponseWriter, r *http.Request) (etag string, done bool, err error) {
	h := w.Header()
	etag = `"` + it.digest.String() + `"`
	h.Set("ETag", etag)
	h.Set("Cache-Control", it.caching)
	switch {
	case !matches(r.Header, "If-Match", etag, true):
		return etag, true, &refusal{http.StatusPreconditionFailed, "UNSUPPORTED", "the content is another than the one that If-Match names"}
	case matches(r.Header, "If-None-Match", etag, false):
		w.WriteHeader(http.StatusNotModified)
		return etag, true, nil
	}
	return etag, false, nil
}

// packed answers with a file that lies in a pack. It is small, so that it is
// proven before its first byte is sent, also where a part of it is asked for.
func (s *server) packed(w http.ResponseWriter, r *http.Request, it item, f gate.DepotFile) error {
	etag, done, err := it.conditions(w, r)
	if err != nil || done {
		return err
	}
	content, err := s.store.ReadPacked(r.Context(), f)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", it.mediaType)
	if !wantsPart(r, etag) {
		r = r.Clone(r.Context())
		r.Header.Del("Range") // several ranges get the whole
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	return nil
}

// open opens the file and makes sure that it has the promised size.
func (s *server) open(r *http.Request, it item) (opened, fs.FileInfo, error) {
	content, err := s.store.Open(r.Context(), it.digest)
	if err != nil {
		return nil, nil, err
	}
	f, info, err := asFile(content)
	if err == nil && info.Size() != it.size {
		err = &cas.CorruptError{What: "the stored blob", Want: it.digest, WantSize: it.size, GotSize: info.Size()}
	}
	if err != nil {
		return nil, nil, errors.Join(err, content.Close())
	}
	return f, info, nil
}

func asFile(content io.ReadSeekCloser) (opened, fs.FileInfo, error) {
	f, ok := content.(opened)
	if !ok {
		return nil, nil, fmt.Errorf("the store gave a %T, which cannot tell whether it changed", content)
	}
	info, err := f.Stat()
	return f, info, err
}

// whole sends all of it, and its end only once all of it is proven.
func (s *server) whole(w http.ResponseWriter, r *http.Request, it item, f opened, info fs.FileInfo) error {
	proof := s.prover.join(it.digest, it.size, info)
	defer proof.leave()
	unproven := int64(0)
	if it.size <= provenFirst {
		if err := proof.wait(r.Context(), f, info); err != nil {
			return err
		}
	} else {
		unproven = heldBack
	}
	w.Header().Set("Content-Length", strconv.FormatInt(it.size, 10))
	if err := send(w, f, it.size-unproven); err != nil {
		return s.cut(r, err)
	}
	if unproven == 0 {
		return nil
	}
	if err := proof.wait(r.Context(), f, info); err != nil {
		return s.cut(r, err)
	}
	if err := send(w, f, unproven); err != nil {
		return s.cut(r, err)
	}
	return nil
}

// sendError is a write that failed: the client is gone, or too slow.
type sendError struct{ error }

// send copies exactly n bytes. The file is handed on as it is, so that the
// kernel copies where the connection allows it.
func send(w http.ResponseWriter, f opened, n int64) error {
	written, err := io.CopyN(w, f, n)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the stored file ends %d bytes early", n-written)
	}
	if err != nil {
		return sendError{err}
	}
	return nil
}

// cut ends a connection in the middle of an answer, so that no client takes
// what it got for the whole.
func (s *server) cut(r *http.Request, err error) error {
	var unsent sendError
	if r.Context().Err() == nil && !errors.As(err, &unsent) {
		s.trouble(r.Context(), r.URL.Path, err)
	}
	panic(http.ErrAbortHandler)
}

// matches looks for an entity tag in a condition of a request; absent is the
// answer where there is no such condition.
func matches(h http.Header, name, etag string, absent bool) bool {
	if len(h.Values(name)) == 0 {
		return absent
	}
	listed := strings.Split(strings.Join(h.Values(name), ","), ",")
	return slices.ContainsFunc(listed, func(s string) bool {
		s = strings.TrimPrefix(strings.TrimSpace(s), "W/")
		return s == etag || s == "*"
	})
}

// wantsPart tells whether a request is for one range of bytes. Requests for
// several, or of another unit, get the whole, as RFC 9110 allows.
func wantsPart(r *http.Request, etag string) bool {
	ranges := r.Header.Values("Range")
	if r.Method != http.MethodGet || len(ranges) != 1 || !strings.HasPrefix(ranges[0], "bytes=") || strings.Contains(ranges[0], ",") {
		return false
	}
	condition := r.Header.Get("If-Range")
	return condition == "" || condition == etag
}
