package download_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packhof/packhof/internal/download"
)

func TestBackOffGrowsAndIsBounded(t *testing.T) {
	for attempt := 1; attempt < 100; attempt++ {
		got := download.BackOff(attempt)
		if got < 250*time.Millisecond || got > 20*time.Second {
			t.Fatalf("after attempt %d: %s", attempt, got)
		}
		if attempt == 4 && got < 2*time.Second {
			t.Errorf("after attempt 4 only %s", got)
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if err := download.Sleep(t.Context(), time.Hour); err != nil || time.Since(begun) != time.Hour {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(why) })
		if err := download.Sleep(ctx, time.Hour); err != why || time.Since(begun) != time.Hour+time.Minute {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

func TestIsFinal(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&tls.CertificateVerificationError{Err: errors.New("expired")}, true},
		{x509.UnknownAuthorityError{}, true},
		{tls.RecordHeaderError{}, true},
		{tls.AlertError(40), true},
		{http.ErrSchemeMismatch, true},
		{&net.DNSError{IsNotFound: true}, true},
		{&net.DNSError{IsTimeout: true}, false},
		{syscall.ECONNREFUSED, false},
		{io.ErrUnexpectedEOF, false},
	} {
		if got := download.IsFinal(fmt.Errorf("wrapped: %w", c.err)); got != c.want {
			t.Errorf("%T %v: final %t, want %t", c.err, c.err, got, c.want)
		}
	}
}
