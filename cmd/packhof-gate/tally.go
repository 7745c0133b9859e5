package main

import (
	"sync"
	"time"
)

// tally counts what runs at this moment. It is not a sync.WaitGroup, which may
// not be waited for while more begins, and not for some time only.
type tally struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // closed when nothing runs any more; nil while nobody waits
}

// begin counts one more, until it ends.
func (t *tally) begin() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	return t.end
}

func (t *tally) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.n == 0 && t.empty != nil {
		close(t.empty)
		t.empty = nil
	}
}

// none waits until nothing runs, for at most so long, and tells whether it came
// to that.
func (t *tally) none(most time.Duration) bool {
	empty := t.waiting()
	if empty == nil {
		return true
	}
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-empty:
		return true
	case <-late.C:
		return false
	}
}

// waiting gives a channel that is closed once nothing runs, or nil if nothing
// does.
func (t *tally) waiting() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n > 0 && t.empty == nil {
		t.empty = make(chan struct{})
	}
	return t.empty
}
