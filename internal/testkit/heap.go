package testkit

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// PeakHeap is how large the heap was at most while something ran, in bytes: what is
// allocated and not yet collected.
func PeakHeap(do func()) (peak uint64) {
	runtime.GC()
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			metrics.Read(sample)
			peak = max(peak, sample[0].Value.Uint64())
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	defer func() { close(done); watching.Wait() }() // also where do ends the test
	do()
	return
}
