package s3

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// Options say what an object is besides its bytes.
type Options struct {
	// SHA256 is the digest of the whole content, required. It is recorded in
	// the object's metadata as "sha256", 64 hex digits.
	SHA256 cas.Digest
	// ContentType is the media type; "" means application/octet-stream.
	ContentType string
	// Metadata are more entries: keys of lower-case letters, digits and hyphens,
	// values of printable ASCII, 2 KiB together. Servers bound it so.
	Metadata map[string]string
	// IfAbsent makes nothing where an object of this key is already, and fails
	// with CodeExists.
	IfAbsent bool
}

const (
	digestKey   = "sha256" // in the metadata
	maxMetadata = 2 << 10  // bytes of keys and values
	metaPrefix  = "X-Amz-Meta-"

	headerSHA256    = "X-Amz-Checksum-Sha256"
	headerAlgorithm = "X-Amz-Checksum-Algorithm"
	algorithmSHA256 = "SHA256"
)

// Put makes an object of size bytes of r, or replaces it, at once and as a
// whole: until then readers see what was there before. No object ever has
// other bytes than those of size and SHA256. After an error nothing of it
// remains on the server, except where the server has made the whole object and
// all of its answers were lost.
//
// Content up to the part size is sent in one request, more in parts; of those
// at most InFlight are in memory, fewer where an object above 150 GiB needs
// larger parts. r is read once, to its end; an error of it, also at its end,
// is returned as it is. Reading is not interrupted by the end of ctx: that is
// r's own business.
//
// Put may be repeated. A process that is killed within it leaves an unfinished
// upload: see AbortStale.
func (c *Client) Put(ctx context.Context, key string, r io.Reader, size int64, options Options) error {
	name, err := c.full(key)
	if err != nil {
		return err
	}
	if options.SHA256.IsZero() || size < 0 {
		return problem.New("s3/content", "content for %s without a digest or a size", c.named(name))
	}
	headers, err := options.headers()
	if err != nil {
		return err
	}
	src := newSource(c.named(name), r, size, options.SHA256)
	if size <= c.config.PartSize {
		return c.putWhole(ctx, name, src, options, headers)
	}
	return c.putParts(ctx, name, src, options, headers)
}

func (c *Client) putWhole(ctx context.Context, name string, src *source, options Options, headers minio.PutObjectOptions) error {
	what := "store " + c.named(name)
	content := make([]byte, src.size)
	if err := src.fill(ctx, content); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := src.finish(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	headers.UserMetadata[headerSHA256] = base64.StdEncoding.EncodeToString(options.SHA256[:])
	if options.IfAbsent {
		headers.SetMatchETagExcept("*")
	}
	return c.attempt(ctx, what, func(number int) error {
		_, err := c.api.PutObject(ctx, c.config.Bucket, name, bytes.NewReader(content), src.size, "", options.SHA256.Hex(), headers)
		if number > 1 && isAnswer(err, "PreconditionFailed") && c.isThere(ctx, name, src.size, options.SHA256) {
			return nil // an earlier attempt made it, and its answer was lost
		}
		return err
	})
}

// isThere reports whether the object has this size and digest, as far as the
// server says.
func (c *Client) isThere(ctx context.Context, name string, size int64, digest cas.Digest) bool {
	found, err := c.api.StatObject(ctx, c.config.Bucket, name, minio.StatObjectOptions{Checksum: true})
	if err != nil {
		return false // then the error that led here stands
	}
	info := c.info(found)
	return info.Size == size && info.SHA256 == digest
}

var metadataKey = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// headers are what every way of making the object sends.
func (o Options) headers() (minio.PutObjectOptions, error) {
	sent := minio.PutObjectOptions{
		ContentType: o.ContentType,
		// That is: do not sign the body in chunks. Its digest is known.
		DisableContentSha256: true,
		UserMetadata:         map[string]string{metaPrefix + digestKey: o.SHA256.Hex()},
	}
	total := 0
	for key, value := range maps.All(o.Metadata) {
		total += len(key) + len(value)
		switch {
		case !metadataKey.MatchString(key) || key == digestKey:
			return sent, badMetadata(key, "the key")
		case !printable(value) || strings.TrimSpace(value) != value:
			return sent, badMetadata(key, "the value")
		}
		sent.UserMetadata[metaPrefix+key] = value
	}
	if total > maxMetadata {
		return sent, problem.New("s3/metadata", "%d bytes of metadata are more than servers take", total).With("most:  2048 bytes")
	}
	if !printable(o.ContentType) {
		return sent, badMetadata("content-type", "the value")
	}
	return sent, nil
}

func badMetadata(key, what string) error {
	return problem.New("s3/metadata", "metadata %.100q: %s cannot be sent", key, what)
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
