package problem_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/packhof/packhof/internal/problem"
)

func TestProblem(t *testing.T) {
	p := problem.New("a/b", "open %s: %w", "x", fs.ErrNotExist)
	if p.Error() != "open x: file does not exist" || p.Code() != "a/b" || !errors.Is(p, fs.ErrNotExist) || p.Evidence() != nil || p.Remedy() != "" {
		t.Errorf("%+v", p)
	}
	if without := problem.New("a/b", "just words"); without.Unwrap() != nil {
		t.Errorf("a cause from nowhere: %v", without.Unwrap())
	}
}

func TestProblemIsImmutable(t *testing.T) {
	p := problem.New("a/b", "words").With("one")
	left, right := p.With("left"), p.With("right", "more").Hint("type %s", "this")
	for _, c := range []struct {
		p        *problem.Problem
		evidence []string
		remedy   string
	}{{p, []string{"one"}, ""}, {left, []string{"one", "left"}, ""}, {right, []string{"one", "right", "more"}, "type this"}} {
		if !slices.Equal(c.p.Evidence(), c.evidence) || c.p.Remedy() != c.remedy || c.p.Code() != "a/b" || c.p.Error() != "words" {
			t.Errorf("%q, %q; want %q, %q", c.p.Evidence(), c.p.Remedy(), c.evidence, c.remedy)
		}
	}
}

func TestProblemIsFoundInAChain(t *testing.T) {
	inner := problem.New("a/b", "inner")
	outer := errors.Join(errors.New("first"), problem.New("c/d", "outer: %w", inner))
	var found *problem.Problem
	if !errors.As(outer, &found) || found.Code() != "c/d" || !errors.Is(outer, inner) {
		t.Errorf("found %v", found)
	}
}
