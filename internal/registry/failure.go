package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/packhof/packhof/internal/problem"
)

// failure says of an error between us and the registry what it means. what is
// the deed, such as "read docker.io/library/nginx:1.27".
func (c *Client) failure(ctx context.Context, what string, ref Reference, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	var answered *transport.Error
	if errors.As(err, &answered) {
		return refused(ref, answered.StatusCode, requestURL(answered.Request), said(answered.Errors), "")
	}
	// What net/http wraps around an error repeats the URL, whose query may be
	// a signature. Of two attempts with two schemes, this is the first.
	var wrapped *url.Error
	if !errors.As(err, &wrapped) {
		return problem.New("registry/protocol", "%s: %s does not answer as a registry does: %w", what, ref.Host, problem.Foreign(err)).
			Hint("check that %s is the host of a registry", ref.Host)
	}
	var ours *problem.Problem
	if errors.As(wrapped.Err, &ours) {
		return fmt.Errorf("%s: %w", what, ours)
	}
	return unreachable(what, ref, wrapped.Err)
}

func unreachable(what string, ref Reference, err error) error {
	var authority x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	because := problem.Foreign(err)
	switch {
	case errors.As(err, &authority):
		return problem.New("registry/tls-unknown-authority", "%s: nothing here vouches for the certificate of %s: %w", what, ref.Host, because).
			Hint("set hosts.%q.ca in packhof.yaml to the PEM file of the authority", ref.Host)
	case errors.As(err, &certificate):
		return problem.New("registry/tls", "%s: the certificate of %s is not valid: %w", what, ref.Host, because)
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record) && strings.HasPrefix(string(record.RecordHeader[:]), "HTTP"):
		return fmt.Errorf("%s: %w", what, plainRefused(ref.Host))
	}
	return problem.New("registry/unreachable", "%s: %s cannot be reached: %w", what, ref.Host, because).
		Hint("check the name, the network and HTTPS_PROXY, then run it again")
}

func plainRefused(host string) error {
	return problem.New("registry/plain-http", "%s speaks HTTP without TLS, which is not allowed for it", host).
		Hint("set hosts.%q.plainHTTP: true in packhof.yaml, if the network between is trusted", host)
}

func noCredentials(host string, err error) error {
	return problem.New("registry/credentials", "the credentials for %s cannot be read: %w", host, problem.Foreign(err)).
		Hint("repair config.json in DOCKER_CONFIG (or ~/.docker), or run  docker login %s", host)
}

// refused says what an answer other than 200 means.
func refused(ref Reference, status int, at string, said []string, retryAfter string) error {
	evidence := append([]string{fmt.Sprintf("answer: %d %s", status, http.StatusText(status)), "url:   " + at}, said...)
	switch {
	case status == http.StatusUnauthorized:
		return problem.New("registry/auth-required", "%s wants a log-in for %s, and has none or one it does not accept", ref.Host, ref).
			With(evidence...).Hint("docker login %s   (credentials are read from DOCKER_CONFIG, as docker does)", ref.Host)
	case status == http.StatusForbidden:
		return problem.New("registry/forbidden", "%s does not let us read %s", ref.Host, ref).
			With(evidence...).Hint("have the account that is logged in given the right to pull, or run  docker login %s  with another", ref.Host)
	case status == http.StatusNotFound:
		return notFound(at, said, "%s is not there", ref)
	case status == http.StatusTooManyRequests:
		if retryAfter != "" {
			evidence = append(evidence, "retry after: "+problem.Line(retryAfter))
		}
		return problem.New("registry/rate-limited", "%s lets us read no more for now: %s", ref.Host, ref).
			With(evidence...).Hint("wait, or run  docker login %s  for a higher limit", ref.Host)
	case status >= 500:
		return problem.New("registry/failed", "%s failed at %s", ref.Host, ref).With(evidence...).Hint("run it again later")
	}
	return problem.New("registry/refused", "%s refuses %s", ref.Host, ref).With(evidence...)
}

func notFound(at string, said []string, format string, args ...any) error {
	return problem.New("registry/not-found", format, args...).
		With(append([]string{"answer: 404 Not Found", "url:   " + at}, said...)...).
		Hint("check the spelling in packhof.yaml; some registries also say so where a log-in is missing")
}

const maxMessage = 64 << 10

// message reads and closes an answer that is an error, and returns what the
// registry says in it, a line each.
func message(resp *http.Response) []string {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxMessage)) // half an explanation is better than none
	_ = resp.Body.Close()                                     // nothing was written through it
	var told struct {
		Errors []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if json.Unmarshal(b, &told) != nil || len(told.Errors) == 0 {
		return nil
	}
	return []string{"said:  " + problem.Line(told.Errors[0].Code+": "+told.Errors[0].Message)}
}

func said(diagnostics []transport.Diagnostic) []string {
	if len(diagnostics) == 0 {
		return nil
	}
	return []string{"said:  " + problem.Line(string(diagnostics[0].Code)+": "+diagnostics[0].Message)}
}

func requestURL(req *http.Request) string {
	if req == nil {
		return "?"
	}
	return bare(req.URL)
}
