package judge

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestWatchEndsWhatNeedsTooMuch(t *testing.T) {
	runtime.GC() // counts what is alive
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go watch(ctx, cancel, 1)
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("nothing ended")
	}
	if cause := context.Cause(ctx); cause == nil || !strings.Contains(cause.Error(), "more memory") {
		t.Errorf("cause %v", cause)
	}
}

func TestWatchLetsTheRestBe(t *testing.T) {
	runtime.GC()
	ctx, cancel := context.WithTimeout(t.Context(), 5*memoryEvery)
	defer cancel()
	watch(ctx, func(cause error) { t.Errorf("ended: %v", cause) }, 1<<40)
}
