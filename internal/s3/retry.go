package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/packhof/packhof/internal/download"
)

// Attempts is how often a request is made before its failure is reported.
const Attempts = 5

const (
	firstWait   = 500 * time.Millisecond
	longestWait = 20 * time.Second
)

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
		if err := c.config.Sleep(ctx, backOff(number)); err != nil {
			return c.failure(ctx, what, err)
		}
	}
}

func backOff(number int) time.Duration {
	wait := min(firstWait<<min(number-1, 10), longestWait)
	return wait/2 + rand.N(wait/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
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
	return ok && !isFinal(wrapped.Err)
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

// isFinal reports errors that the next attempt would meet again.
func isFinal(err error) bool {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return true
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	return certificate || authority || record || alert
}
