package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/packhof/packhof/internal/problem"
)

// CodeInterrupted is the code of an error of reading a Blob or a manifest
// whose connection was lost: beginning again may help.
const CodeInterrupted = "registry/interrupted"

// Interrupted reports whether err is a download that broke off.
func Interrupted(err error) bool {
	var p *problem.Problem
	return errors.As(err, &p) && p.Code() == CodeInterrupted
}

// body is what a registry sends. A stalled one ends, and its errors say what
// broke off where.
type body struct {
	ctx     context.Context // the caller's
	r       io.ReadCloser
	cancel  context.CancelFunc // of the request
	timer   *time.Timer        // cancels; runs only while we wait for the registry, not for the reader
	stall   time.Duration
	what    string
	seen    int64
	stalled bool
}

func newBody(ctx context.Context, r io.ReadCloser, cancel context.CancelFunc, stall time.Duration, what string) *body {
	timer := time.AfterFunc(stall, cancel)
	timer.Stop()
	return &body{ctx: ctx, r: r, cancel: cancel, timer: timer, stall: stall, what: what}
}

func (b *body) Read(p []byte) (int, error) {
	b.timer.Reset(b.stall)
	n, err := b.r.Read(p)
	b.seen += int64(n)
	if !b.timer.Stop() {
		b.stalled = true
	}
	switch {
	case err == nil, err == io.EOF:
		return n, err
	case b.ctx.Err() != nil:
		return n, fmt.Errorf("download %s: %w", b.what, context.Cause(b.ctx))
	case b.stalled:
		return n, problem.New(CodeInterrupted, "the download of %s stands still", b.what).
			With(fmt.Sprintf("nothing came for %s after %d bytes", b.stall, b.seen))
	}
	return n, problem.New(CodeInterrupted, "the download of %s broke off: %w", b.what, err).
		With(fmt.Sprintf("got:   %d bytes", b.seen))
}

func (b *body) Close() error {
	err := b.r.Close()
	b.cancel()
	return err
}
