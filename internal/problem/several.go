package problem

import (
	"errors"
	"fmt"
)

// MostNamed is how many of many things a message names.
const MostNamed = 10

// Some joins the first of many errors, and says how many more there are. It is
// nil where there are none.
func Some(all []error) error {
	if len(all) <= MostNamed {
		return errors.Join(all...)
	}
	return errors.Join(errors.Join(all[:MostNamed]...), fmt.Errorf("and %d more", len(all)-MostNamed))
}

// SomeOf is the same for lines of evidence.
func SomeOf(lines []string) []string {
	if len(lines) <= MostNamed {
		return lines
	}
	return append(append([]string(nil), lines[:MostNamed]...), fmt.Sprintf("and %d more", len(lines)-MostNamed))
}

// Besides adds lines of evidence to an error that has a code: what else is wrong.
func Besides(err error, lines ...string) error {
	code := CodeOf(err)
	if len(lines) == 0 || code == "" {
		return err
	}
	return New(code, "%w", err).With(EvidenceOf(err)...).With(lines...).Hint("%s", RemedyOf(err))
}
