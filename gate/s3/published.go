package s3

import (
	"context"
	"errors"
	"io"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/s3"
)

// published is a list of ours that stands at the destination: SHA256SUMS, or
// one that will be or was it.
type published struct {
	digest bundle.Digest
	paths  sums
}

// published reads the list at key; nil if there is none. One that no gate has
// written, or that changed since, is a destination/refused.
func (s *Sink) published(ctx context.Context, key string) (*published, error) {
	var found *published
	err := s.read(ctx, key, func(r io.Reader, info s3.Info) error {
		if info.SHA256.IsZero() || info.Size > maxSums {
			return s.foreign(key)
		}
		b, err := io.ReadAll(cas.Verify(r, info.SHA256, info.Size, s.client.Location(key)))
		if corrupt, ok := errors.AsType[*cas.CorruptError](err); ok {
			return problem.New("destination/refused", "%s was changed by others", s.client.Location(key)).With(corrupt.Evidence()...).
				Hint("look at who did, delete this list, then release again")
		}
		if err != nil {
			return err
		}
		paths, err := parseSums(b)
		if err != nil {
			return problem.New("destination/refused", "%s was not written by a gate: %w", s.client.Location(key), err).Hint("%s", remedyForeign)
		}
		found = &published{digest: info.SHA256, paths: paths}
		return nil
	})
	if s3.Is(err, s3.CodeNotFound) {
		return nil, nil
	}
	return found, err
}

const remedyForeign = "move it away, or give this destination a prefix of its own"

func (s *Sink) foreign(key string) error {
	return problem.New("destination/refused", "%s is there and was not written by a gate", s.client.Location(key)).Hint("%s", remedyForeign)
}

// downloads is how often an object is read that breaks off.
const downloads = 3

// read has use read an object, from its beginning again where it broke off.
func (s *Sink) read(ctx context.Context, key string, use func(io.Reader, s3.Info) error) error {
	for number := 1; ; number++ {
		err := s.readOnce(ctx, key, use)
		if number == downloads || !s3.Is(err, s3.CodeInterrupted) {
			return err
		}
	}
}

func (s *Sink) readOnce(ctx context.Context, key string, use func(io.Reader, s3.Info) error) error {
	body, info, err := s.client.Open(ctx, key, 0)
	if err != nil {
		return err
	}
	return errors.Join(use(body, info), body.Close())
}

// holds reports whether an object is there, and whether it is what it should
// be as far as the server says.
func (s *Sink) holds(ctx context.Context, key string, o object) (info s3.Info, there, same bool, err error) {
	info, err = s.client.Head(ctx, key)
	if s3.Is(err, s3.CodeNotFound) {
		return info, false, false, nil
	}
	return info, err == nil, err == nil && info.Size == o.size && info.SHA256 == o.digest, err
}
