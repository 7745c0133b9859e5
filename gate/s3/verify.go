package s3

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/gate"
	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/s3"
)

// Verify implements gate.Sink. SHA256SUMS, and every object up to 16 MiB, is
// read back and hashed. Of larger ones, which the server has checked part by
// part as they came, it is asked for the size, the recorded digest and, where
// it keeps one of the whole, its own checksum.
func (s *Sink) Verify(ctx context.Context, r *gate.Release, a bundle.Artifact) error {
	t, err := s.treeOf(r, a)
	if err != nil {
		return s.explain(err)
	}
	if err := s.verify(ctx, t, listObject(t)); err != nil {
		return s.explain(err)
	}
	return s.explain(each(ctx, t.objects, func(ctx context.Context, o object) error { return s.verify(ctx, t, o) }))
}

func (s *Sink) verify(ctx context.Context, t *tree, o object) error {
	key := t.key(o.path)
	if o.size > readBack && o.path != sumsName {
		info, err := s.client.Head(ctx, key)
		if err != nil {
			return s.missing(key, err)
		}
		return s.agrees(key, o, info)
	}
	err := s.read(ctx, key, func(r io.Reader, info s3.Info) error {
		if err := s.agrees(key, o, info); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, cas.Verify(r, o.digest, o.size, s.client.Location(key)))
		return err
	})
	if corrupt, ok := errors.AsType[*cas.CorruptError](err); ok {
		return problem.New("destination/mismatch", "%s has other bytes", s.client.Location(key)).With(corrupt.Evidence()...).Hint("%s", remedyMismatch)
	}
	return s.missing(key, err)
}

// agrees compares with what the server says of an object.
func (s *Sink) agrees(key string, o object, info s3.Info) error {
	sum := base64.StdEncoding.EncodeToString(o.digest[:])
	switch {
	case info.Size != o.size:
		return s.mismatch(key, fmt.Sprint(o.size, " bytes"), fmt.Sprint(info.Size, " bytes"))
	case info.SHA256 != o.digest:
		return s.mismatch(key, o.digest.String(), recorded(info.SHA256))
	case info.Checksum != "" && !strings.Contains(info.Checksum, "-") && info.Checksum != sum:
		return s.mismatch(key, "checksum "+sum, fmt.Sprintf("checksum %.100q", info.Checksum))
	}
	return nil
}

func recorded(d bundle.Digest) string {
	if d.IsZero() {
		return "no recorded digest"
	}
	return d.String()
}

func (s *Sink) mismatch(key, want, got string) error {
	return problem.New("destination/mismatch", "%s is another object", s.client.Location(key)).
		With("want:  "+want, "got:   "+got).Hint("%s", remedyMismatch)
}

// missing turns the answer that there is no such object into what it means
// here.
func (s *Sink) missing(key string, err error) error {
	if !s3.Is(err, s3.CodeNotFound) {
		return err
	}
	return problem.New("destination/mismatch", "%s is not there", s.client.Location(key)).Hint("release the case again; it loads what is missing")
}

const remedyMismatch = "look at who writes there, delete this object, then release the case again"
