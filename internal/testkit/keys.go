package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"
)

// Key returns the ECDSA P-256 private key that belongs to a seed. Everyone can
// compute it: it protects nothing and must not leave tests and demonstrations.
func Key(seed string) *ecdsa.PrivateKey {
	// A scalar that P-256 refuses turns up once in 2^32 seeds; then the next
	// one is taken, so that the function needs no error.
	for n := 0; ; n++ {
		d := sha256.Sum256(fmt.Appendf(nil, "packhof test key %d %s", n, seed))
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), d[:]); err == nil {
			return key
		}
	}
}

// Noon is the kit's own "now": every image, file and certificate it makes is
// dated by it, never by the wall clock.
func Noon() time.Time { return time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC) }

// Clock shows a time that stands still until it is advanced. It may be used by
// several goroutines.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows at.
func NewClock(at time.Time) *Clock { return &Clock{now: at} }

// Now returns the time shown; clock.Now is what to pass where a
// func() time.Time is wanted.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d; a negative d turns it back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
