package gate_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packhof/packhof/gate"
)

func TestCountingAtOnce(t *testing.T) {
	var c gate.Counting
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { c.Kept(); c.Moved(3); c.Moved(0) })
	}
	all.Wait()
	if diff := cmp.Diff(gate.Receipt{Location: "there", Blobs: 100, Bytes: 150, Kept: 50}, c.Receipt("there")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
