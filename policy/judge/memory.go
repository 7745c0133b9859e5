package judge

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memoryEvery is how often a judge looks at its own memory.
const memoryEvery = 10 * time.Millisecond

// within gives a context that ends when judging needs more memory than it
// should. The hard limit kills the process, and not always with words that say
// why; a little before it there is time to name the rule. stop ends the
// watching.
func within(ctx context.Context) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop = func() { cancel(context.Canceled) }
	// The soft limit comes from whoever started this process: see child.Run.
	soft := debug.SetMemoryLimit(-1)
	if soft == math.MaxInt64 {
		return ctx, stop
	}
	go watch(ctx, cancel, uint64(soft)/8*7)
	return ctx, stop
}

func watch(ctx context.Context, cancel context.CancelCauseFunc, most uint64) {
	ticker := time.NewTicker(memoryEvery)
	defer ticker.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if metrics.Read(live); live[0].Value.Uint64() > most {
				cancel(fmt.Errorf("needed more memory than %d bytes", most))
				return
			}
		}
	}
}
