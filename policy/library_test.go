package policy

import (
	"testing"
)

func TestLibraryIsProvedByItsTests(t *testing.T) {
	s := mustLibrary(t)
	if err := CheckTests(t.Context(), s); err != nil {
		t.Fatal(err, err.(*Error).Evidence())
	}
	results, err := Test(t.Context(), s)
	if err != nil || len(results) < 2*len(s.Rules()) {
		t.Errorf("%d tests, %v", len(results), err)
	}
}
