package s3

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/packhof/packhof/internal/problem"
)

// Check asks whether the server is there, takes the keys, and has the bucket.
// It needs, as List does, the right to list.
func (c *Client) Check(ctx context.Context) error {
	next, stop := iter.Pull2(c.list(ctx, fmt.Sprintf("ask for bucket %s at %s", c.config.Bucket, c.host), c.prefix, 1))
	defer stop()
	_, err, _ := next()
	return err
}

// List goes through the objects whose keys begin with prefix, in the order of
// the bytes of their keys. An error ends it. A prefix need not end at a slash.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return c.list(ctx, fmt.Sprintf("list %s", c.named(c.prefix+prefix)), c.prefix+prefix, 0)
}

// list goes on after the last key that it saw where a page cannot be had; the
// next one may be.
func (c *Client) list(ctx context.Context, what, prefix string, perPage int) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		last, more := "", true
		err := c.attempt(ctx, what, func(int) error {
			page, cancel := context.WithCancel(ctx)
			defer cancel()
			owner := false
			found := c.api.ListObjectsIter(page, c.config.Bucket, minio.ListObjectsOptions{
				Prefix: prefix, Recursive: true, StartAfter: last, MaxKeys: perPage, FetchOwner: &owner,
			})
			for object := range found {
				if object.Err != nil {
					return object.Err
				}
				if object.Key <= last || !strings.HasPrefix(object.Key, prefix) {
					return c.disorder(what, last, object.Key)
				}
				last = object.Key
				if more = yield(c.info(object), nil); !more {
					return nil
				}
			}
			return ctx.Err() // which minio-go takes for the end of the list
		})
		if err != nil && more {
			yield(Info{}, err)
		}
	}
}

func (c *Client) disorder(what, last, key string) error {
	return problem.New("s3/protocol", "%s: %s lists names out of order or that were not asked for", what, c.host).
		With("last:  "+problem.Line(last), "next:  "+problem.Line(key))
}

// Delete takes an object away. One that is not there is as good.
func (c *Client) Delete(ctx context.Context, key string) error {
	name, err := c.full(key)
	if err != nil {
		return err
	}
	return c.remove(ctx, name)
}

func (c *Client) remove(ctx context.Context, name string) error {
	return c.attempt(ctx, "delete "+c.named(name), func(int) error {
		err := c.api.RemoveObject(ctx, c.config.Bucket, name, minio.RemoveObjectOptions{})
		if isAnswer(err, "NoSuchKey") {
			return nil
		}
		return err
	})
}
