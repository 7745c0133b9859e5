package s3

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/minio/minio-go/v7"

	"github.com/packhof/packhof/internal/download"
)

// Attempts is how often a request is made before its failure is reported.
const Attempts = 5

// attempt makes a request until it succeeds, fails for good or has failed
// Attempts times. request is told its number, counted from 1; what it sends
// must be the same each time.
func (c *Client) attempt(ctx context.Context, what string, request func(number int) error) error {
	for number := 1; ; number++ {
		err := request(number)
		if err == nil {
			return nil
		}
		if number == Attempts || ctx.Err() != nil || !worthRetrying(err) {
			return c.failure(ctx, what, err)
		}
		if err := c.config.Sleep(ctx, download.BackOff(number)); err != nil {
			return c.failure(ctx, what, err)
		}
	}
}

func worthRetrying(err error) bool {
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return isPassing(answer)
	}
	if _, broken := errors.AsType[*download.BrokenOffError](err); broken || errors.Is(err, errStillThere) {
		return true
	}
	wrapped, ok := errors.AsType[*url.Error](err)
	return ok && !download.IsFinal(wrapped.Err)
}

// isPassing tells the answers after which the same request may succeed.
func isPassing(answer minio.ErrorResponse) bool {
	switch answer.StatusCode {
	case 0: // minio-go says so, no server
		return false
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	// Errors that come with 400, 409, or with 200 after a long assembly.
	return slices.Contains(spoiltOnTheWay, answer.Code) || slices.Contains([]string{
		"InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout", "ConditionalRequestConflict", "OperationAborted",
	}, answer.Code)
}

// spoiltOnTheWay are the answers to bytes other than those we hashed.
var spoiltOnTheWay = []string{
	"BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch",
}
