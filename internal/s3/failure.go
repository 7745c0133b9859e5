package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/packhof/packhof/internal/download"
	"github.com/packhof/packhof/internal/problem"
)

// Codes that callers branch on.
const (
	CodeNotFound    = "s3/not-found"   // no such object
	CodeExists      = "s3/exists"      // Options.IfAbsent, and there is one
	CodeInterrupted = "s3/interrupted" // a download broke off: beginning again may help
)

// Is reports whether err is, or wraps, a problem of this code.
func Is(err error, code string) bool {
	p, ok := errors.AsType[*problem.Problem](err)
	return ok && p.Code() == code
}

// failure says of an error between us and the server what it means. what is
// the deed and its object.
func (c *Client) failure(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	if ours, ok := errors.AsType[*problem.Problem](err); ok {
		return fmt.Errorf("%s: %w", what, ours)
	}
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok && answer.StatusCode != 0 {
		return c.refused(what, answer)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return c.unreachable(what, wrapped.Err)
	}
	if broken, ok := errors.AsType[*download.BrokenOffError](err); ok {
		return problem.New("s3/unreachable", "%s: the answer of %s %w", what, c.host, broken).With(broken.Evidence()...).
			Hint("look at the server and the network, then run it again")
	}
	return problem.New("s3/protocol", "%s: %s does not answer as an S3 server does: %w", what, c.host, problem.Foreign(err))
}

func (c *Client) unreachable(what string, err error) error {
	because := problem.Foreign(err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	record, isRecord := errors.AsType[tls.RecordHeaderError](err)
	_, stalled := errors.AsType[*stalledError](err)
	switch {
	case authority:
		return problem.New("s3/tls-unknown-authority", "%s: nothing here vouches for the certificate of %s: %w", what, c.host, because).
			Hint("give the PEM file of the authority in the settings of this server")
	case certificate:
		return problem.New("s3/tls", "%s: the certificate of %s is not valid: %w", what, c.host, because)
	case errors.Is(err, http.ErrSchemeMismatch), isRecord && strings.HasPrefix(string(record.RecordHeader[:]), "HTTP"):
		return problem.New("s3/plain-http", "%s: %s speaks HTTP without TLS", what, c.host).
			Hint("give the port that speaks https, or write http:// and allow it, if the network between is trusted")
	case stalled:
		return problem.New("s3/stalled", "%s: %s stands still: %w", what, c.host, because).
			Hint("look at the server and the network, then run it again")
	}
	return problem.New("s3/unreachable", "%s: %s cannot be reached: %w", what, c.host, because).
		Hint("check the name, the port and the network, then run it again")
}

// refused says what an answer other than success means.
func (c *Client) refused(what string, answer minio.ErrorResponse) error {
	at := fmt.Sprintf("%s: %s", what, c.host)
	p := explain(at, c.config.Bucket, answer)
	evidence := []string{fmt.Sprintf("answer: %d %s", answer.StatusCode, problem.Line(answer.Code))}
	if answer.Message != "" {
		evidence = append(evidence, "said:   "+problem.Line(answer.Message))
	}
	return p.With(evidence...)
}

func explain(at, bucket string, answer minio.ErrorResponse) *problem.Problem {
	switch answer.Code {
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "XAdminUserNotFound":
		return problem.New("s3/credentials", "%s does not accept the access key or the secret key", at).
			Hint("check both, and that the server's account is still there")
	case "RequestTimeTooSkewed", "RequestExpired":
		return problem.New("s3/clock", "%s: the clocks here and there differ too much", at).
			Hint("set both clocks")
	case "NoSuchBucket":
		return problem.New("s3/no-bucket", "%s has no bucket %s", at, bucket).
			Hint("make the bucket on the server, or correct its name in the settings")
	case "AuthorizationHeaderMalformed", "InvalidRegion", "PermanentRedirect":
		p := problem.New("s3/region", "%s belongs to another region than the one in the settings", at)
		if answer.Region != "" {
			return p.Hint("set the region to %s", problem.Line(answer.Region))
		}
		return p
	case "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded", "InsufficientCapacity":
		return full(at)
	}
	return explainStatus(at, answer)
}

func explainStatus(at string, answer minio.ErrorResponse) *problem.Problem {
	switch {
	case slices.Contains(spoiltOnTheWay, answer.Code):
		return problem.New("s3/spoilt", "%s received other bytes than were sent, %d times", at, Attempts).
			Hint("look for what changes them between here and the server")
	case answer.StatusCode == http.StatusInsufficientStorage:
		return full(at)
	case answer.Code == "NoSuchKey": // and not every 404, which may be of something before the server
		return problem.New(CodeNotFound, "%s has no such object", at)
	case answer.StatusCode == http.StatusPreconditionFailed:
		return problem.New(CodeExists, "%s has an object of this name already", at)
	case answer.StatusCode == http.StatusForbidden, answer.StatusCode == http.StatusUnauthorized:
		return problem.New("s3/denied", "%s does not allow it", at).
			Hint("give the account of the access key the right to list, read, write and delete in this bucket")
	case isPassing(answer):
		return problem.New("s3/failed", "%s failed, %d times", at, Attempts).Hint("look at the server, then run it again")
	}
	return problem.New("s3/refused", "%s refuses", at)
}

func full(at string) *problem.Problem {
	return problem.New("s3/full", "%s has no space left", at).Hint("make space on the server, or raise the quota, then run it again")
}
