package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// upload is an object in the making, which exists only once it is completed.
type upload struct {
	client *Client
	name   string
	what   string // the deed, for messages
	id     string
}

// makeInParts begins an upload, has fill send the parts and completes it; if
// anything fails, the upload is aborted.
func (c *Client) makeInParts(ctx context.Context, what, name string, headers minio.PutObjectOptions, ifAbsent bool,
	fill func(*upload) ([]minio.CompletePart, error), isThere func() bool,
) error {
	u := &upload{client: c, name: name, what: what}
	err := c.attempt(ctx, what, func(int) (err error) {
		u.id, err = c.api.NewMultipartUpload(ctx, c.config.Bucket, name, headers)
		return err
	})
	if err != nil {
		return err
	}
	parts, err := fill(u)
	if err == nil {
		err = u.complete(ctx, parts, ifAbsent, isThere)
	}
	if err != nil {
		return errors.Join(err, u.abort(ctx))
	}
	return nil
}

func (c *Client) putParts(ctx context.Context, name string, src *source, options Options, headers minio.PutObjectOptions) error {
	l, err := cut(src.size, c.config.PartSize, c.config.InFlight)
	if err != nil {
		return err
	}
	headers.UserMetadata[headerAlgorithm] = algorithmSHA256
	var parts []minio.CompletePart
	fill := func(u *upload) ([]minio.CompletePart, error) {
		parts, err = u.send(ctx, src, l)
		return parts, err
	}
	isThere := func() bool { return c.isThere(ctx, name, src.size, options.SHA256) }
	what := "store " + c.named(name)
	if err := c.makeInParts(ctx, what, name, headers, options.IfAbsent, fill, isThere); err != nil {
		return err
	}
	return c.confirm(ctx, what, name, src.size, options.SHA256, composite(parts))
}

// send reads the content part by part and sends each while the next ones are
// read. It returns when no request is under way any more: a part that arrives
// after an abort would bring the upload back.
func (u *upload) send(ctx context.Context, src *source, l layout) ([]minio.CompletePart, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	underway, cut := u.lasting(ctx)
	defer cut()
	parts := make([]minio.CompletePart, l.count)
	buffers := make(chan []byte, l.inMemory)
	for range l.inMemory {
		buffers <- nil
	}
	var sending sync.WaitGroup
	for number := 1; number <= l.count; number++ {
		buffer, err := u.next(ctx, src, l, number, buffers)
		if err != nil {
			stop(err)
			break
		}
		sending.Go(func() {
			_, size := l.part(number)
			part, err := u.part(ctx, underway, number, buffer[:size])
			if err != nil {
				// The transport may still read this buffer: it is not used again.
				stop(err)
				return
			}
			parts[number-1] = part
			buffers <- buffer
		})
	}
	sending.Wait()
	if ctx.Err() != nil {
		return nil, u.ended(context.Cause(ctx))
	}
	return parts, nil
}

// lasting is a context for the requests that are under way when ctx ends; it
// ends a little later, so that most of them come to their end.
func (u *upload) lasting(ctx context.Context) (underway context.Context, cut context.CancelFunc) {
	underway, cut = context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		late := time.AfterFunc(min(grace, u.client.config.Stall), cut)
		context.AfterFunc(underway, func() { late.Stop() })
	})
	return underway, cut
}

const (
	grace     = 5 * time.Second
	abortTime = 30 * time.Second // for all of it, when nobody waits any more
)

// ended says why a sending ended early; an error of a part says so already.
func (u *upload) ended(err error) error {
	if failed, ok := errors.AsType[*partError](err); ok {
		return failed.err
	}
	return fmt.Errorf("%s: %w", u.what, err)
}

type partError struct{ err error }

func (e *partError) Error() string { return e.err.Error() }
func (e *partError) Unwrap() error { return e.err }

// next waits for a free buffer and fills it with a part, the last one only if
// all of the content was what it should be.
func (u *upload) next(ctx context.Context, src *source, l layout, number int, buffers <-chan []byte) ([]byte, error) {
	var buffer []byte
	select {
	case buffer = <-buffers:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if buffer == nil {
		buffer = make([]byte, l.partSize)
	}
	_, size := l.part(number)
	if err := src.fill(ctx, buffer[:size]); err != nil {
		return nil, err
	}
	if number == l.count {
		return buffer, src.finish(ctx)
	}
	return buffer, nil
}

// part sends one part, signed with its digest, so that the server refuses
// other bytes. It is tried again until ctx ends.
func (u *upload) part(ctx, underway context.Context, number int, content []byte) (minio.CompletePart, error) {
	digest := cas.Digest(sha256.Sum256(content))
	sum := base64.StdEncoding.EncodeToString(digest[:])
	var got minio.ObjectPart
	err := u.client.attempt(ctx, u.what, func(int) (err error) {
		got, err = u.client.api.PutObjectPart(underway, u.client.config.Bucket, u.name, u.id, number,
			bytes.NewReader(content), int64(len(content)), minio.PutObjectPartOptions{
				Sha256Hex:            digest.Hex(),
				CustomHeader:         http.Header{headerSHA256: {sum}},
				DisableContentSha256: true, // see Options.headers
			})
		return err
	})
	switch {
	case err != nil:
		return minio.CompletePart{}, &partError{err}
	case got.ChecksumSHA256 != "" && got.ChecksumSHA256 != sum:
		return minio.CompletePart{}, &partError{differs(u.what, sum, got.ChecksumSHA256)}
	}
	return minio.CompletePart{PartNumber: number, ETag: got.ETag, ChecksumSHA256: got.ChecksumSHA256}, nil
}

// complete makes the object. isThere tells whether an earlier attempt, whose
// answer was lost, has made it.
func (u *upload) complete(ctx context.Context, parts []minio.CompletePart, ifAbsent bool, isThere func() bool) error {
	var options minio.PutObjectOptions
	if ifAbsent {
		options.SetMatchETagExcept("*")
	}
	return u.client.attempt(ctx, u.what, func(number int) error {
		_, err := u.client.api.CompleteMultipartUpload(ctx, u.client.config.Bucket, u.name, u.id, parts, options)
		if number > 1 && (isAnswer(err, "NoSuchUpload") || isAnswer(err, "PreconditionFailed")) && isThere() {
			return nil
		}
		return err
	})
}

// abort frees what was sent, also after ctx has ended. An upload that is not
// there any more is as good.
func (u *upload) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	return u.client.abort(ctx, u.name, u.id)
}

// abort makes sure that the upload is gone: a part that was on its way may have
// brought it back.
func (c *Client) abort(ctx context.Context, name, id string) error {
	return c.attempt(ctx, "abort the upload of "+c.named(name), func(int) error {
		err := c.api.AbortMultipartUpload(ctx, c.config.Bucket, name, id)
		if err != nil && !isAnswer(err, "NoSuchUpload") {
			return err
		}
		_, err = c.api.ListObjectParts(ctx, c.config.Bucket, name, id, 0, 1)
		switch {
		case err == nil:
			return errStillThere
		case isAnswer(err, "NoSuchUpload"):
			return nil
		}
		return err
	})
}

var errStillThere = errors.New("the upload is still there")

func isAnswer(err error, code string) bool {
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	return ok && answer.Code == code
}

// confirm asks for the object just made and takes it away again if the server
// says of it anything but what it must be.
func (c *Client) confirm(ctx context.Context, what, name string, size int64, digest cas.Digest, sum string) error {
	info, err := c.head(ctx, what, name)
	if err != nil {
		return err
	}
	err = func() error {
		switch {
		case info.Size != size:
			return differs(what, strconv.FormatInt(size, 10)+" bytes", strconv.FormatInt(info.Size, 10)+" bytes")
		case info.SHA256 != digest:
			return differs(what, digest.String(), info.SHA256.String())
		case info.Checksum != "" && sum != "" && info.Checksum != sum:
			return differs(what, sum, info.Checksum)
		}
		return nil
	}()
	if err != nil {
		return errors.Join(err, c.remove(ctx, name))
	}
	return nil
}

func differs(what, want, got string) error {
	return problem.New("s3/spoilt", "%s: the server has something else than was sent", what).
		With("want:  "+want, "got:   "+problem.Line(got)).
		Hint("look for what changes it between here and the server")
}

// composite is the checksum that a server gives an object made of parts: the
// SHA-256 of their SHA-256s, not that of the content.
func composite(parts []minio.CompletePart) string {
	whole := sha256.New()
	for _, part := range parts {
		sum, err := base64.StdEncoding.DecodeString(part.ChecksumSHA256)
		if err != nil || len(sum) != sha256.Size {
			return "" // a server that keeps no checksums
		}
		whole.Write(sum)
	}
	return base64.StdEncoding.EncodeToString(whole.Sum(nil)) + "-" + strconv.Itoa(len(parts))
}
