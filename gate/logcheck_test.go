package gate

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestStandingsFollowEachOther reads logs whose leaves name the one before, or
// another.
func TestStandingsFollowEachOther(t *testing.T) {
	leafOf := func(before string) []byte {
		return fmt.Appendf(nil, `{"stands":[{"of":"trust","rows":"sha256:%064d","says":"x"%s}]}`, 0, before)
	}
	for name, c := range map[string]struct {
		leaves []string
		fits   bool
	}{
		"each the last":      {[]string{`,"before":-1`, `,"before":0`, `,"before":1`}, true},
		"from before it was": {[]string{``, ``, `,"before":1`}, true},
		"back to an older":   {[]string{`,"before":-1`, `,"before":0`, `,"before":0`}, false},
		"out of nothing":     {[]string{`,"before":-1`, `,"before":-1`}, false},
		"a later one":        {[]string{`,"before":1`}, false},
	} {
		log := &wholeLog{seals: map[subject]int64{}, logins: map[login]time.Time{}}
		var err error
		for n, before := range c.leaves {
			err = errors.Join(err, log.add(int64(n), 0, leafOf(before)))
		}
		if errors.Is(err, errLogBroken) == c.fits || (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
