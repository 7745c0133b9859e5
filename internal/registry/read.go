package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// Descriptor is what a registry says of a manifest.
type Descriptor struct {
	MediaType string // from Content-Type, without parameters; empty if it gives none
	Digest    cas.Digest
	Size      int64 // bytes
}

// manifestTypes is what is asked for: OCI before Docker's schema 2. Schema 1
// is never asked for; some registries send it all the same.
const manifestTypes = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, " +
	"application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"

// Resolve asks which manifest ref is now, by a HEAD. Where the answer does not
// say it all, the manifest itself is read and hashed. A manifest of more than
// limit bytes is an error.
func (c *Client) Resolve(ctx context.Context, ref Reference, limit int64) (Descriptor, error) {
	resp, err := c.do(ctx, http.MethodHead, ref, "manifests/"+ref.identifier())
	if err != nil {
		return Descriptor{}, err
	}
	discard(resp)
	d := Descriptor{MediaType: mediaType(resp), Size: resp.ContentLength}
	if d.Digest, err = cas.ParseDigest(resp.Header.Get("Docker-Content-Digest")); err != nil || d.Size < 0 {
		d, _, err = c.Read(ctx, ref, limit)
		return d, err
	}
	if !ref.Digest.IsZero() && ref.Digest != d.Digest {
		return Descriptor{}, &cas.CorruptError{What: ref.String(), Want: ref.Digest, Got: d.Digest, WantSize: d.Size, GotSize: d.Size}
	}
	if d.Size > limit {
		return Descriptor{}, tooLarge(ref, d.Size, limit)
	}
	return d, nil
}

// Read reads the manifest that ref is, of whatever media type and size up to
// limit, by a GET and nothing else. Where ref has a digest, other bytes are a
// *cas.CorruptError.
func (c *Client) Read(ctx context.Context, ref Reference, limit int64) (Descriptor, []byte, error) {
	b, contentType, err := c.readManifest(ctx, ref, limit)
	if err != nil {
		return Descriptor{}, nil, err
	}
	d := Descriptor{MediaType: contentType, Digest: cas.DigestOf(b), Size: int64(len(b))}
	if !ref.Digest.IsZero() && ref.Digest != d.Digest {
		return Descriptor{}, nil, &cas.CorruptError{What: ref.String(), Want: ref.Digest, Got: d.Digest, WantSize: d.Size, GotSize: d.Size}
	}
	return d, b, nil
}

// Manifest reads the manifest d from the repository of ref: the very bytes,
// at most limit, of the right size and digest (else a *cas.CorruptError) and
// not sent as another media type.
func (c *Client) Manifest(ctx context.Context, ref Reference, d Descriptor, limit int64) ([]byte, error) {
	at := ref.At(d.Digest)
	if d.Size > limit {
		return nil, tooLarge(at, d.Size, limit)
	}
	b, contentType, err := c.readManifest(ctx, at, limit)
	if err != nil {
		return nil, err
	}
	if got := cas.DigestOf(b); got != d.Digest || int64(len(b)) != d.Size {
		return nil, &cas.CorruptError{What: at.String(), Want: d.Digest, Got: got, WantSize: d.Size, GotSize: int64(len(b))}
	}
	if contentType != "" && contentType != d.MediaType {
		return nil, problem.New("registry/media-type", "%s is sent as another media type than it is listed as", at).
			With("want:  "+problem.Line(d.MediaType), "got:   "+problem.Line(contentType))
	}
	return b, nil
}

func (c *Client) readManifest(ctx context.Context, ref Reference, limit int64) ([]byte, string, error) {
	resp, err := c.do(ctx, http.MethodGet, ref, "manifests/"+ref.identifier())
	if err != nil {
		return nil, "", err
	}
	r := body{ReadCloser: resp.Body, what: "the manifest " + ref.String()}
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, "", err
	}
	if int64(len(b)) > limit {
		return nil, "", tooLarge(ref, max(resp.ContentLength, int64(len(b))), limit)
	}
	return b, mediaType(resp), nil
}

// Blob opens the raw bytes of a blob in the repository of ref. They are not
// verified: the caller hashes, and begins again when reading fails with an
// error that Interrupted reports. ctx governs the reading too. A registry that
// announces another size is a *cas.CorruptError at once.
func (c *Client) Blob(ctx context.Context, ref Reference, d cas.Digest, size int64) (io.ReadCloser, error) {
	at := ref.At(d)
	resp, err := c.do(ctx, http.MethodGet, at, "blobs/"+d.String())
	if err != nil {
		return nil, err
	}
	r := body{ReadCloser: resp.Body, what: "the blob " + at.String()}
	if resp.ContentLength >= 0 && resp.ContentLength != size {
		corrupt := &cas.CorruptError{What: at.String(), Want: d, WantSize: size, GotSize: resp.ContentLength}
		return nil, errors.Join(corrupt, r.Close())
	}
	return r, nil
}

const maxRedirects = 5

// do makes one request below the repository of ref; any answer but 200 is an
// error.
func (c *Client) do(ctx context.Context, method string, ref Reference, path string) (*http.Response, error) {
	rt, err := c.RoundTripper(ctx, ref, Pull)
	if err != nil {
		return nil, err
	}
	resp, err := c.send(ctx, rt, method, ref, path)
	if err != nil {
		return nil, c.failure(ctx, "read "+ref.String(), ref, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	if method == http.MethodHead && resp.StatusCode == http.StatusNotFound {
		return nil, c.missing(ctx, rt, ref, resp)
	}
	return nil, refused(ref, resp.StatusCode, bare(resp.Request.URL), message(resp), resp.Header.Get("Retry-After"))
}

func (c *Client) send(ctx context.Context, rt http.RoundTripper, method string, ref Reference, path string) (*http.Response, error) {
	u := url.URL{Scheme: "https", Host: hostKey(ref.Host), Path: "/v2/" + ref.Repository + "/" + path}
	if c.Plain(ref.Host) {
		u.Scheme = "http"
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(path, "manifests/") {
		req.Header.Set("Accept", manifestTypes)
	}
	return following(rt, ref).Do(req)
}

// following is a client that goes where it is sent, a few times.
func following(rt http.RoundTripper, ref Reference) *http.Client {
	return &http.Client{Transport: rt, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return problem.New("registry/redirect-refused", "%s was sent on more than %d times", ref, maxRedirects)
		}
		return nil
	}}
}

// missing tells a repository that is not there from a tag that is not.
func (c *Client) missing(ctx context.Context, rt http.RoundTripper, ref Reference, head *http.Response) error {
	discard(head)
	resp, err := c.send(ctx, rt, http.MethodGet, ref, "tags/list")
	if err != nil {
		return c.failure(ctx, "read "+ref.String(), ref, err)
	}
	said := message(resp)
	at := bare(head.Request.URL)
	if resp.StatusCode == http.StatusNotFound {
		return notFound(at, said, "there is no repository %s on %s", ref.Repository, ref.Host)
	}
	if ref.Digest.IsZero() {
		return notFound(at, nil, "the repository %s/%s has no tag %s", ref.Host, ref.Repository, ref.Tag)
	}
	return notFound(at, nil, "the repository %s/%s has no manifest %s", ref.Host, ref.Repository, ref.Digest)
}

func mediaType(resp *http.Response) string {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

func tooLarge(ref Reference, size, limit int64) error {
	return problem.New("registry/too-large", "the manifest %s is larger than any manifest may be", ref).
		With(fmt.Sprintf("size:  %d bytes", size), fmt.Sprintf("limit: %d bytes", limit))
}
