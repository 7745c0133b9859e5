package s3

import (
	"context"

	"github.com/minio/minio-go/v7"
)

// Copy makes the object to of the object from, on the server, with its content
// type and metadata; what was at to is replaced, at once and as a whole. It
// fails if the copy is not of the size and the recorded digest of the
// original; it does not read the bytes.
func (c *Client) Copy(ctx context.Context, from, to string) error {
	source, err := c.full(from)
	if err != nil {
		return err
	}
	name, err := c.full(to)
	if err != nil {
		return err
	}
	what := "copy " + c.named(source) + " to " + to
	original, err := c.head(ctx, what, source)
	if err != nil {
		return err
	}
	if original.Size <= c.copyLimit {
		err = c.copyWhole(ctx, what, source, name)
	} else {
		err = c.copyParts(ctx, what, source, name, original)
	}
	if err != nil {
		return err
	}
	return c.confirm(ctx, what, name, original.Size, original.SHA256, "")
}

func (c *Client) copyWhole(ctx context.Context, what, source, name string) error {
	return c.attempt(ctx, what, func(int) error {
		_, err := c.api.Client.CopyObject(ctx,
			minio.CopyDestOptions{Bucket: c.config.Bucket, Object: name},
			minio.CopySrcOptions{Bucket: c.config.Bucket, Object: source})
		return err
	})
}

// copyParts is for objects that are too large for one request.
func (c *Client) copyParts(ctx context.Context, what, source, name string, original Info) error {
	l, err := cut(original.Size, c.copyLimit, 1)
	if err != nil {
		return err
	}
	headers, err := Options{SHA256: original.SHA256, ContentType: original.ContentType, Metadata: original.Metadata}.headers()
	if err != nil {
		return err
	}
	if original.SHA256.IsZero() {
		delete(headers.UserMetadata, metaPrefix+digestKey)
	}
	fill := func(u *upload) ([]minio.CompletePart, error) {
		parts := make([]minio.CompletePart, l.count)
		for number := 1; number <= l.count; number++ {
			offset, size := l.part(number)
			err := c.attempt(ctx, what, func(int) (err error) {
				parts[number-1], err = c.api.CopyObjectPart(ctx, c.config.Bucket, source, c.config.Bucket, name, u.id, number, offset, size, nil)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		return parts, nil
	}
	isThere := func() bool { return c.isThere(ctx, name, original.Size, original.SHA256) }
	return c.makeInParts(ctx, what, name, headers, false, fill, isThere)
}
