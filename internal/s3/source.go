package s3

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
)

// source is content on its way into an object: it lets through exactly the
// size and the digest that were promised.
type source struct {
	name string // of the object, for messages
	r    io.Reader
	size int64
	got  int64
	want cas.Digest
	hash hash.Hash
}

func newSource(name string, r io.Reader, size int64, want cas.Digest) *source {
	return &source{name: name, r: r, size: size, want: want, hash: sha256.New()}
}

// fill reads the next len(p) bytes.
func (s *source) fill(ctx context.Context, p []byte) error {
	n, err := readFull(ctx, s.r, p)
	s.got += int64(n)
	s.hash.Write(p[:n]) // never fails
	if err == io.EOF {
		return s.wrong("ends too early", fmt.Sprintf("%d bytes", s.size), fmt.Sprintf("%d bytes", s.got))
	}
	return err
}

// finish reports whether the content ends here and is what was promised. The
// last part may be sent only after it: a reader that verifies by itself says
// so at its end.
func (s *source) finish(ctx context.Context) error {
	n, err := readFull(ctx, s.r, make([]byte, 1))
	switch {
	case n > 0:
		return s.wrong("goes on too long", fmt.Sprintf("%d bytes", s.size), "more")
	case err != io.EOF:
		return err
	}
	if got := cas.Digest(s.hash.Sum(nil)); got != s.want {
		return s.wrong("is not what was promised", s.want.String(), got.String())
	}
	return nil
}

func (s *source) wrong(how, want, got string) error {
	return problem.New("s3/content", "the content for %s %s", s.name, how).With("want:  "+want, "got:   "+got)
}

// readFull fills p or says why not: io.EOF if r ended before.
func readFull(ctx context.Context, r io.Reader, p []byte) (n int, err error) {
	for idle := 0; n < len(p); {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		m, err := r.Read(p[n:])
		n += m
		switch {
		case err != nil && n < len(p):
			return n, err
		case err != nil && err != io.EOF:
			return n, err
		case m > 0:
			idle = 0
		case idle == maxIdleReads:
			return n, io.ErrNoProgress
		default:
			idle++
		}
	}
	return n, nil
}

const maxIdleReads = 100
