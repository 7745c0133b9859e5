package s3

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// unreachable are the codes of internal/s3 that mean that the server gave no
// answer of its own, or none that can be worked with.
func unreachable(code string) bool {
	return slices.Contains([]string{
		"s3/unreachable", "s3/stalled", "s3/interrupted", "s3/tls-unknown-authority", "s3/tls", "s3/plain-http",
		"s3/clock", "s3/failed", "s3/protocol",
	}, code)
}

const group = "s3/"

// explain says of an error of the transport what it means for a destination.
// Errors of the gate's content, our own, and the end of a context stay as they
// are.
func (s *Sink) explain(err error) error {
	_, corrupt := errors.AsType[*cas.CorruptError](err)
	p, ok := errors.AsType[*problem.Problem](err)
	if corrupt || !ok || !strings.HasPrefix(p.Code(), group) || errors.Is(err, context.Canceled) {
		return err
	}
	code := "destination/refused"
	switch {
	case p.Code() == "s3/content":
		return err
	case p.Code() == "s3/spoilt":
		code = "destination/mismatch"
	case unreachable(p.Code()):
		code = "destination/unreachable"
	}
	return problem.New(code, "%w", err).With(p.Evidence()...).Hint("%s", p.Remedy())
}
