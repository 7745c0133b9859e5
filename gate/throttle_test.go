package gate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestMemoryOfLoginsIsBounded invents names and addresses: what is guessed at
// now, and where people belong, is not forgotten for it.
func TestMemoryOfLoginsIsBounded(t *testing.T) {
	var a attempts
	now := time.Unix(1_800_000_000, 0)
	desk, guessed := login{"anna", "desk"}, login{"anna", "stranger"}
	a.succeeded(desk, now)
	for i := range maxAttempts {
		now = now.Add(time.Millisecond)
		if i%500 == 0 {
			a.failed(guessed, now)
		}
		a.failed(login{fmt.Sprintf("x%d", i), "stranger"}, now)
	}
	if len(a.list) > maxAttempts {
		t.Errorf("%d are remembered", len(a.list))
	}
	if a.mayTry(guessed, now) == nil {
		t.Error("the one that is being guessed at was forgotten")
	}
	if !a.list[desk].known {
		t.Error("the desk was forgotten")
	}
}

// TestOneAddressDoesNotFillTheQueue has many wait from one address, while
// somebody hashes: others still find a place.
func TestOneAddressDoesNotFillTheQueue(t *testing.T) {
	var a attempts
	done, err := a.turn(t.Context(), "desk")
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	answers := make(chan error)
	for range mostWaiting {
		go func() { _, err := a.turn(ctx, "stranger"); answers <- err }()
	}
	for range mostWaiting - mostWaitingFromOne {
		if err := <-answers; errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	other := make(chan error)
	go func() {
		done, err := a.turn(t.Context(), "other")
		if err == nil {
			done()
		}
		other <- err
	}()
	leave()
	for range mostWaitingFromOne {
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Errorf("one that waited: %v", err)
		}
	}
	done()
	if err := <-other; err != nil {
		t.Errorf("another address: %v", err)
	}
}
