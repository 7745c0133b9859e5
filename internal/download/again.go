package download

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

const (
	firstWait   = 500 * time.Millisecond
	longestWait = 20 * time.Second
)

// BackOff is how long a client should wait after its attempt number attempt
// (1, 2, …) failed: exponentially longer, up to 20 s, with jitter.
func BackOff(attempt int) time.Duration {
	wait := min(firstWait<<min(attempt-1, 10), longestWait)
	return wait/2 + rand.N(wait/2)
}

// Sleep waits, or ends with the cause why the context did.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// IsFinal reports errors of a connection that the next attempt would meet
// again: a certificate that does not hold, a server without TLS, a name that
// nobody has.
func IsFinal(err error) bool {
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
