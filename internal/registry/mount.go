package registry

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/packhof/packhof/internal/cas"
)

// Mount has the registry take a blob over from another of its repositories,
// without a byte being sent. It gives false where the registry does not: it
// does not know how, or does not let this account read there. Then nothing has
// changed, and the blob has to be uploaded.
func (w *Writer) Mount(ctx context.Context, d cas.Digest, from string) (bool, error) {
	doing := "mount the blob " + w.ref.At(d).String()
	rt, err := w.c.roundTripperToMount(ctx, w.ref, from)
	if err != nil {
		return false, err
	}
	query := url.Values{"mount": {d.String()}, "from": {from}}
	req, err := w.request(ctx, http.MethodPost, "blobs/uploads/?"+query.Encode(), http.NoBody)
	if err != nil {
		return false, err
	}
	resp, err := following(rt, w.ref).Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return false, w.explain(ctx, doing, err)
		}
		return false, nil // the upload will meet the same, and tries again
	}
	discard(resp)
	switch resp.StatusCode {
	case http.StatusCreated:
		return true, nil
	case http.StatusAccepted:
		return false, w.abandon(ctx, rt, req.URL, resp)
	}
	return false, nil
}

// abandon ends the upload that a registry begins instead of a mount. A registry
// that does not take that back forgets it by itself.
func (w *Writer) abandon(ctx context.Context, rt http.RoundTripper, asked *url.URL, resp *http.Response) error {
	location, err := resp.Location()
	if err != nil {
		return nil
	}
	location.Scheme = asked.Scheme
	if origin(location) != origin(asked) {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, location.String(), http.NoBody)
	if err != nil {
		return err
	}
	ended, err := following(rt, w.ref).Do(req)
	if err == nil {
		discard(ended)
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// roundTripperToMount is logged in to push to one repository and to read from
// another.
func (c *Client) roundTripperToMount(ctx context.Context, ref Reference, from string) (http.RoundTripper, error) {
	also := Reference{Host: ref.Host, Repository: from}
	return c.session(ref.Host+"/"+ref.Repository+"?mount="+from).open(ctx, func() (http.RoundTripper, error) {
		return c.logIn(ctx, ref, Push, also)
	})
}
