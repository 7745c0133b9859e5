package s3

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/packhof/packhof/internal/problem"
)

// Upload is an upload that was begun and is neither completed nor aborted. It
// takes space on the server and is in no listing of objects.
type Upload struct {
	Key   string // without the prefix of the Config
	ID    string
	Begun time.Time // by the server's clock
}

const maxUploadPages = 10_000

// Unfinished lists the uploads whose keys begin with prefix, in no order.
func (c *Client) Unfinished(ctx context.Context, prefix string) ([]Upload, error) {
	what := "list the unfinished uploads of bucket " + c.config.Bucket + " at " + c.host
	var found []Upload
	keyMarker, idMarker := "", ""
	for range maxUploadPages {
		var page minio.ListMultipartUploadsResult
		err := c.attempt(ctx, what, func(int) (err error) {
			// MinIO lists nothing for a prefix that is not a whole key: it is asked
			// for all of them.
			page, err = c.api.ListMultipartUploads(ctx, c.config.Bucket, "", keyMarker, idMarker, "", 0)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, u := range page.Uploads {
			if strings.HasPrefix(u.Key, c.prefix+prefix) {
				found = append(found, Upload{Key: u.Key[len(c.prefix):], ID: u.UploadID, Begun: u.Initiated})
			}
		}
		if !page.IsTruncated {
			return found, nil
		}
		if page.NextKeyMarker == keyMarker && page.NextUploadIDMarker == idMarker {
			break
		}
		keyMarker, idMarker = page.NextKeyMarker, page.NextUploadIDMarker
	}
	return nil, problem.New("s3/protocol", "%s: the list does not end", what)
}

// AbortStale aborts the unfinished uploads whose keys begin with prefix and
// that are ours, by the given judgement; nil means all of them. It returns
// those that it aborted, also when it fails at others.
//
// It is for the start of a load: a process that was killed leaves its upload
// behind, and so does a server whose answer to the beginning of one was lost.
// An upload that is under way, here or elsewhere, fails by it.
func (c *Client) AbortStale(ctx context.Context, prefix string, ours func(Upload) bool) ([]Upload, error) {
	found, err := c.Unfinished(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var aborted []Upload
	var failed []error
	for _, u := range found {
		if ours != nil && !ours(u) {
			continue
		}
		if err := c.abort(ctx, c.prefix+u.Key, u.ID); err != nil {
			failed = append(failed, err)
			continue
		}
		aborted = append(aborted, u)
	}
	return aborted, errors.Join(failed...)
}
