package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/download"
	"github.com/packhof/packhof/internal/problem"
)

// Writer brings content to one repository, and asks what is there, with the
// right to push. It is safe for use by several goroutines. What is worth
// trying again it does try again, Attempts times at most.
//
// A registry that answers otherwise than asked for is a *RefusedError; the
// other errors are those of a Client.
type Writer struct {
	c   *Client
	ref Reference // only Host and Repository
}

// Writer gives the writer for the repository of ref. Nothing is sent yet.
func (c *Client) Writer(ref Reference) *Writer {
	return &Writer{c: c, ref: Reference{Host: ref.Host, Repository: ref.Repository}}
}

// RefusedError is an answer that a registry gave instead of the one that was
// asked for.
type RefusedError struct {
	Doing  string // such as "upload the blob sha256:…"
	Status int    // of HTTP
	URL    string // without its query
	Said   string // the registry's own code and message; one clean line, may be empty
}

// newRefused takes what the registry said as message and said give it.
func newRefused(doing string, status int, at string, said []string) *RefusedError {
	e := &RefusedError{Doing: doing, Status: status, URL: at}
	if len(said) > 0 {
		e.Said = strings.TrimSpace(strings.TrimPrefix(said[0], "said:"))
	}
	return e
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: the registry answers %d %s", e.Doing, e.Status, http.StatusText(e.Status))
}

// Code is the stable code of this error.
func (e *RefusedError) Code() string { return "registry/refused" }

// Evidence gives the answer.
func (e *RefusedError) Evidence() []string {
	evidence := []string{fmt.Sprintf("answer: %d %s", e.Status, http.StatusText(e.Status)), "url:    " + e.URL}
	if e.Said != "" {
		evidence = append(evidence, "said:   "+e.Said)
	}
	return evidence
}

// Temporary reports answers that may be others later.
func (e *RefusedError) Temporary() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// HasBlob asks for a blob by a HEAD. size is -1 where the registry does not
// tell it.
func (w *Writer) HasBlob(ctx context.Context, d cas.Digest) (size int64, found bool, err error) {
	resp, err := w.head(ctx, "ask for the blob "+w.ref.At(d).String(), "blobs/"+d.String())
	if err != nil || resp == nil {
		return 0, false, err
	}
	return resp.ContentLength, true, nil
}

// HasManifest asks for a manifest, by tag or digest, by a HEAD. The digest is
// zero where the registry does not tell it.
func (w *Writer) HasManifest(ctx context.Context, identifier string) (d Descriptor, found bool, err error) {
	resp, err := w.head(ctx, "ask for the manifest "+w.at(identifier), "manifests/"+identifier)
	if err != nil || resp == nil {
		return Descriptor{}, false, err
	}
	d = Descriptor{MediaType: mediaType(resp), Size: resp.ContentLength}
	if said := resp.Header.Get("Docker-Content-Digest"); said != "" {
		if d.Digest, err = cas.ParseDigest(said); err != nil {
			return Descriptor{}, false, w.protocol("its digest of the manifest %s is none: %w", w.at(identifier), err)
		}
	}
	return d, true, nil
}

// Manifest reads a manifest of at most limit bytes, by tag or digest. Other
// bytes than those of a digest are a *cas.CorruptError.
func (w *Writer) Manifest(ctx context.Context, identifier string, limit int64) (d Descriptor, b []byte, found bool, err error) {
	doing := "read the manifest " + w.at(identifier)
	resp, err := w.ask(ctx, doing, http.MethodGet, "manifests/"+identifier, http.StatusOK, http.StatusNotFound)
	if err != nil {
		return Descriptor{}, nil, false, err
	}
	if resp.StatusCode == http.StatusNotFound {
		discard(resp)
		return Descriptor{}, nil, false, nil
	}
	if b, err = readWhole(body{ReadCloser: resp.Body, what: w.at(identifier)}, limit); err != nil {
		return Descriptor{}, nil, false, err
	}
	d = Descriptor{MediaType: mediaType(resp), Digest: cas.DigestOf(b), Size: int64(len(b))}
	if want, err := cas.ParseDigest(identifier); err == nil && want != d.Digest {
		return Descriptor{}, nil, false, &cas.CorruptError{What: w.at(identifier), Want: want, Got: d.Digest, WantSize: d.Size, GotSize: d.Size}
	}
	return d, b, true, nil
}

// readWhole reads and closes a document.
func readWhole(r body, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, problem.New("registry/too-large", "%s has more than %d bytes", r.what, limit)
	}
	return b, nil
}

// PutManifest puts the bytes of a manifest under a tag or their own digest.
func (w *Writer) PutManifest(ctx context.Context, identifier, mediaType string, b []byte) error {
	doing := "put the manifest " + w.at(identifier)
	return w.again(ctx, doing, func() error {
		req, err := w.request(ctx, http.MethodPut, "manifests/"+identifier, bytes.NewReader(b))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", mediaType)
		resp, err := w.exchange(ctx, doing, req, http.StatusCreated, http.StatusOK, http.StatusAccepted)
		if err != nil {
			return err
		}
		discard(resp)
		if got := resp.Header.Get("Docker-Content-Digest"); got != "" && got != cas.DigestOf(b).String() {
			return w.protocol("it took the manifest %s for %.80q, which it is not", w.at(identifier), got)
		}
		return nil
	})
}

// head makes a HEAD; nil without an error means that there is no such thing.
// A HEAD that is refused says not why: a GET does.
func (w *Writer) head(ctx context.Context, doing, path string) (*http.Response, error) {
	resp, err := w.ask(ctx, doing, http.MethodHead, path, http.StatusOK, http.StatusNotFound)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		why, err := w.ask(ctx, doing, http.MethodGet, path, http.StatusOK, http.StatusNotFound)
		if err != nil {
			return nil, err
		}
		_ = why.Body.Close() // the content is not wanted
		if why.StatusCode == http.StatusOK {
			return nil, refused
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	discard(resp)
	if resp.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	return resp, nil
}

// ask makes a GET or HEAD, which the client's transport repeats by itself.
func (w *Writer) ask(ctx context.Context, doing, method, path string, want ...int) (*http.Response, error) {
	req, err := w.request(ctx, method, path, nil)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(path, "manifests/") {
		req.Header.Set("Accept", manifestTypes)
	}
	resp, err := w.exchange(ctx, doing, req, want...)
	if err != nil {
		return nil, w.explain(ctx, doing, err)
	}
	return resp, nil
}

// request makes a request for a path, which may have a query, below the
// repository.
func (w *Writer) request(ctx context.Context, method, path string, content io.Reader) (*http.Request, error) {
	path, query, _ := strings.Cut(path, "?")
	u := url.URL{Scheme: "https", Host: hostKey(w.ref.Host), Path: "/v2/" + w.ref.Repository + "/" + path, RawQuery: query}
	if w.c.Plain(w.ref.Host) {
		u.Scheme = "http"
	}
	return http.NewRequestWithContext(ctx, method, u.String(), content)
}

// exchange sends a request, logged in; an answer that is none of want is a
// *RefusedError.
func (w *Writer) exchange(ctx context.Context, doing string, req *http.Request, want ...int) (*http.Response, error) {
	rt, err := w.c.RoundTripper(ctx, w.ref, Push)
	if err != nil {
		return nil, err
	}
	resp, err := following(rt, w.ref).Do(req)
	if err != nil {
		return nil, err
	}
	if slices.Contains(want, resp.StatusCode) {
		return resp, nil
	}
	if resp.StatusCode < http.StatusBadRequest {
		discard(resp)
		return nil, w.protocol("it answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return nil, newRefused(doing, resp.StatusCode, bare(resp.Request.URL), message(resp))
}

// again does something that may be done twice until it succeeds, fails for
// good, or has failed Attempts times.
func (w *Writer) again(ctx context.Context, doing string, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if err == nil {
			return nil
		}
		if attempt == Attempts || !w.mayPass(ctx, err) {
			return w.explain(ctx, doing, err)
		}
		if errors.Is(err, errTokenRenewed) {
			continue
		}
		if err := w.c.Pause(ctx, attempt); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
}

// mayPass reports whether what failed may succeed later.
func (w *Writer) mayPass(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if _, ok := errors.AsType[*sourceError](err); ok {
		return false
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused.Temporary()
	}
	if _, ok := errors.AsType[*problem.Problem](err); ok {
		return false
	}
	return !download.IsFinal(err)
}

// explain gives an error the form in which people meet it.
func (w *Writer) explain(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return w.c.failure(ctx, doing, w.ref, err)
	}
	if source, ok := errors.AsType[*sourceError](err); ok {
		return source.err
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused
	}
	if ours, ok := errors.AsType[*problem.Problem](err); ok {
		return fmt.Errorf("%s: %w", doing, ours)
	}
	return w.c.failure(ctx, doing, w.ref, err)
}

func (w *Writer) protocol(format string, args ...any) error {
	return noRegistry(w.ref.Host, format, args...)
}

func noRegistry(host, format string, args ...any) error {
	return problem.New("registry/protocol", "%s does not answer as a registry does: "+format, append([]any{host}, args...)...)
}

// at is a manifest of the repository, for messages.
func (w *Writer) at(identifier string) string {
	if strings.HasPrefix(identifier, "sha256:") {
		return w.ref.Host + "/" + w.ref.Repository + "@" + identifier
	}
	return w.ref.Host + "/" + w.ref.Repository + ":" + identifier
}
