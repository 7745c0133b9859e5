package oci

import (
	"context"
	"sync"
)

// keyLocks has one lock for each key. Waiting for one ends with the context.
type keyLocks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the lock is let go
}

func (k *keyLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		k.mu.Lock()
		other, ok := k.held[key]
		if !ok {
			mine := make(chan struct{})
			k.held[key] = mine
			k.mu.Unlock()
			return func() { k.unlock(key, mine) }, nil
		}
		k.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (k *keyLocks) unlock(key string, mine chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, key)
	close(mine)
}
