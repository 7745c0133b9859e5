package problem_test

import (
	"errors"
	"testing"

	"github.com/packhof/packhof/internal/problem"
)

func TestFields(t *testing.T) {
	var f problem.Fields
	f.Join(nil)
	if err := f.Err(); err != nil {
		t.Errorf("none: %v", err)
	}
	f.Add("a.b", "is wrong", "mend it")
	one, ok := f.Err().(*problem.FieldError)
	if !ok || one.Error() != "a.b: is wrong" || one.Code() != "config/invalid" || one.Remedy() != "mend it" {
		t.Errorf("one: %v", f.Err())
	}
	second := errors.New("second")
	f.Join(second)
	if err := f.Err(); err.Error() != "a.b: is wrong\nsecond" || !errors.Is(err, second) {
		t.Errorf("two: %v", err)
	}
	for range 1000 {
		f.Add("c", "is wrong", "")
	}
	if all := f.Err().(interface{ Unwrap() []error }).Unwrap(); len(all) != 100 {
		t.Errorf("of a thousand it keeps %d", len(all))
	}
}
