package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/download"
	"github.com/packhof/packhof/internal/problem"
)

// Info is what the server says of an object. Nothing of it is proof: only
// bytes that were read and hashed are.
type Info struct {
	Key      string // without the prefix of the Config
	Size     int64  // bytes
	Modified time.Time

	// What follows comes from Head and Open, not from List.

	ContentType string
	// Metadata has lower-case keys; SHA256 is not among them.
	Metadata map[string]string
	// SHA256 is what whoever made the object recorded; zero if nothing.
	SHA256 cas.Digest
	// Checksum is the SHA-256 that the server keeps, in base64; for an object
	// made of n parts, the SHA-256 of theirs and "-n". "" if it keeps none.
	Checksum string
}

// Head asks for an object without its content. CodeNotFound also comes for a
// bucket that is not there: the answer has no room to say which; Check does.
func (c *Client) Head(ctx context.Context, key string) (Info, error) {
	name, err := c.full(key)
	if err != nil {
		return Info{}, err
	}
	return c.head(ctx, "look at "+c.named(name), name)
}

func (c *Client) head(ctx context.Context, what, name string) (Info, error) {
	var found minio.ObjectInfo
	err := c.attempt(ctx, what, func(int) (err error) {
		found, err = c.api.StatObject(ctx, c.config.Bucket, name, minio.StatObjectOptions{Checksum: true})
		return err
	})
	if err != nil {
		return Info{}, err
	}
	return c.info(found), nil
}

func (c *Client) info(found minio.ObjectInfo) Info {
	info := Info{
		Key:         strings.TrimPrefix(found.Key, c.prefix),
		Size:        found.Size,
		Modified:    found.LastModified,
		ContentType: found.ContentType,
		Metadata:    map[string]string{},
		Checksum:    found.ChecksumSHA256,
	}
	for key, value := range found.UserMetadata {
		info.Metadata[strings.ToLower(key)] = value
	}
	if digest, err := cas.ParseHex(info.Metadata[digestKey]); err == nil {
		info.SHA256 = digest
		delete(info.Metadata, digestKey)
	}
	return info
}

// Open reads an object from offset on; Info.Size is that of the whole. A body
// that breaks off ends with CodeInterrupted, and the caller may go on with
// another Open, once it has made sure by a digest that it is still the same
// object. The caller closes the body.
func (c *Client) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, Info, error) {
	name, err := c.full(key)
	if err != nil {
		return nil, Info{}, err
	}
	what := "read " + c.named(name)
	var options minio.GetObjectOptions
	if offset != 0 {
		if err := options.SetRange(offset, 0); err != nil || offset < 0 {
			return nil, Info{}, problem.New("s3/refused", "%s from byte %d", what, offset)
		}
	}
	var r io.ReadCloser
	var found minio.ObjectInfo
	err = c.attempt(ctx, what, func(int) (err error) {
		r, found, _, err = c.api.GetObject(ctx, c.config.Bucket, name, options)
		return err
	})
	if err != nil {
		return nil, Info{}, err
	}
	info := c.info(found)
	if offset != 0 {
		if info.Size, err = c.rest(what, found, offset); err != nil {
			return nil, Info{}, errors.Join(err, r.Close())
		}
	}
	return &body{ReadCloser: r, what: what}, info, nil
}

// rest makes sure that what comes is the object from offset to its end.
func (c *Client) rest(what string, found minio.ObjectInfo, offset int64) (total int64, err error) {
	header := found.Headers.Get("Content-Range")
	first, last, total, ok := parseContentRange(header)
	if !ok || first != offset || last != total-1 || found.Size != total-offset {
		return 0, problem.New("s3/protocol", "%s: %s sends another range than it was asked for", what, c.host).
			With(fmt.Sprintf("want:  from byte %d to the end", offset), "got:   "+problem.Line(header))
	}
	return total, nil
}

var contentRange = regexp.MustCompile(`^bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})$`)

func parseContentRange(header string) (first, last, total int64, ok bool) {
	m := contentRange.FindStringSubmatch(header)
	if m == nil {
		return 0, 0, 0, false
	}
	var numbers [3]int64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseInt(m[i+1], 10, 64); err != nil {
			return 0, 0, 0, false
		}
	}
	first, last, total = numbers[0], numbers[1], numbers[2]
	return first, last, total, first <= last && last < total
}

// body is what the server sends; its errors say of what.
type body struct {
	io.ReadCloser
	what string
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	var broken *download.BrokenOffError
	switch {
	case err == nil, err == io.EOF:
		return n, err
	case errors.As(err, &broken):
		return n, problem.New(CodeInterrupted, "%s: the download %w", b.what, broken).With(broken.Evidence()...)
	}
	return n, fmt.Errorf("%s: %w", b.what, err)
}
