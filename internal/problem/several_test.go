package problem_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/problem"
)

func TestSome(t *testing.T) {
	if err := problem.Some(nil); err != nil {
		t.Errorf("none: %v", err)
	}
	var all []error
	var lines []string
	for i := range problem.MostNamed {
		all, lines = append(all, fmt.Errorf("file %d", i)), append(lines, fmt.Sprint(i))
	}
	if err := problem.Some(all); strings.Count(err.Error(), "file") != problem.MostNamed || strings.Contains(err.Error(), "more") {
		t.Errorf("ten: %v", err)
	}
	if got := problem.SomeOf(lines); len(got) != problem.MostNamed {
		t.Errorf("ten: %q", got)
	}
	for i := range 1990 {
		all, lines = append(all, errors.New("another")), append(lines, fmt.Sprint(i))
	}
	if err := problem.Some(all); strings.Contains(err.Error(), "another") || !strings.HasSuffix(err.Error(), "\nand 1990 more") || !errors.Is(err, all[0]) {
		t.Errorf("2000: %v", err)
	}
	if got := problem.SomeOf(lines); len(got) != problem.MostNamed+1 || got[problem.MostNamed] != "and 1990 more" {
		t.Errorf("2000: %q", got)
	}
}

func TestBesides(t *testing.T) {
	damage := problem.New("volume/damaged", "torn").With("want:  a").Hint("copy it")
	err := problem.Besides(fmt.Errorf("here: %w", damage), "missing:  3 of 3")
	var p *problem.Problem
	if !errors.As(err, &p) || p.Code() != "volume/damaged" || p.Error() != "here: torn" || p.Remedy() != "copy it" || strings.Join(p.Evidence(), ";") != "want:  a;missing:  3 of 3" || !errors.Is(err, damage) {
		t.Errorf("%+v", err)
	}
	plain := errors.New("plain")
	if problem.Besides(plain, "x") != plain || problem.Besides(damage) != error(damage) {
		t.Error("what has no code, or nothing besides, is changed")
	}
}
