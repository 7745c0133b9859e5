package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/packhof/packhof/bundle"
)

// TestChoices: all choices between volumes that claim one place are made, each
// once, up to a bound.
func TestChoices(t *testing.T) {
	for _, c := range []struct {
		claims []int // of each place
		want   []string
	}{
		{nil, nil},
		{[]int{2}, []string{"0a"}},
		{[]int{3}, []string{"0a 0c", "0a 0b"}},
		{[]int{2, 2}, []string{"0a 1b", "0b 1a", "0a 1a"}},
		{[]int{2, 3}, []string{"0a 1b 1c", "0b 1a 1c", "0a 1a 1c", "0b 1a 1b", "0a 1a 1b"}},
	} {
		if got := choices(c.claims...); !slices.Equal(got, c.want) {
			t.Errorf("places with %v claims: %q, want %q", c.claims, got, c.want)
		}
	}
	// The first choice, of the first of each, is made before.
	many := choices(2, 2, 2, 2, 2, 2)
	distinct := slices.Compact(slices.Sorted(slices.Values(many)))
	if len(many) != bundle.MaxChoices-1 || len(distinct) != len(many) {
		t.Errorf("%d choices, %d of them distinct", len(many), len(distinct))
	}
	for _, left := range many {
		if !strings.HasSuffix(left, " 4b 5b") {
			t.Errorf("behind the first four places another one than the first is taken in: %q", left)
		}
	}
	if got := choices(40); len(got) != bundle.MaxChoices-1 {
		t.Errorf("%d choices for one place", len(got))
	}
}

// choices gives what each choice leaves out: places have numbers, and their claims
// letters.
func choices(claims ...int) (all []string) {
	var rivals [][][]string
	marks := map[string]string{}
	for place, n := range claims {
		var of [][]string
		for i := range n {
			path := fmt.Sprintf("/media/usb/%d%c", place, 'a'+i)
			marks[path] = "mark of " + path
			of = append(of, []string{path})
		}
		rivals = append(rivals, of)
	}
	c := &choice{}
	for c.next(rivals, marks) {
		all = append(all, strings.Join(slices.Sorted(maps.Values(c.aside)), " "))
	}
	return all
}

// TestChoiceOfCopies leaves out every copy of a claim.
func TestChoiceOfCopies(t *testing.T) {
	c := &choice{}
	marks := map[string]string{"x/1": "m1", "y/2": "m2", "z/3": "m3"}
	if !c.next([][][]string{{{"x/1", "y/2"}, {"z/3"}}}, marks) || !maps.Equal(c.aside, map[string]string{"m1": "1", "m2": "2"}) {
		t.Errorf("left out: %v", c.aside)
	}
}
