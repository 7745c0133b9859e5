package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// cost is what one program took.
type cost struct {
	peak int64 // bytes
	cpu  time.Duration
}

// costOf runs a program to its end.
func (l *lab) costOf(c *exec.Cmd) cost {
	l.T.Helper()
	l.MustFinish(c)
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		l.T.Skip("the system does not say what a process took")
	}
	return cost{usage.Maxrss << 10, c.ProcessState.UserTime() + c.ProcessState.SystemTime()}
}

// wayOf takes a data set of so many small files all the way and says what each
// step took.
func wayOf(t *testing.T, files int) map[string]cost {
	t.Helper()
	l := newLab(t)
	if err := smallFiles(filepath.Join(l.Dir, "small"), files); err != nil {
		t.Fatal(err)
	}
	l.Write("packhof.yaml", "apiVersion: packhof/v1\nkind: Export\nchannel: plant-1\nartifacts:\n  - {kind: dataset, name: small, version: \"1\", dir: small}\n")
	l.Write("data/gate.yaml", l.Read("data/gate.yaml")+"\njudge: {timeout: 5m}\n") // other tests run beside this one
	took := map[string]cost{}
	took["plan"] = l.costOf(l.Command("packhof", "plan"))
	took["export"] = l.costOf(l.Command("packhof", "export", "--no-scan", "--to", "medium"))
	took["receive"] = l.costOf(l.Command("packhof-gate", "receive", bundleFile))
	l.must("approve", "1", "--as", "anna", "--yes", "--review", l.review("1"), "--reason", "lines")
	took["release"] = l.costOf(l.Command("packhof-gate", "release", "1"))
	return took
}

// However many small files a data set has, each step keeps within its memory,
// and a file costs the same.
func TestManySmallFiles(t *testing.T) {
	if raced {
		t.Skip("memory is measured without the race detector")
	}
	const few, many, most = 50_000, 200_000, 256 << 20
	small, large := wayOf(t, few), wayOf(t, many)
	for step, c := range large {
		each := func(c cost, files int) string { return fmt.Sprint(c.cpu / time.Duration(files)) }
		t.Logf("%s: %d files %d MiB, %s a file; %d files %d MiB, %s a file", step, few, small[step].peak>>20, each(small[step], few), many, c.peak>>20, each(c, many))
		if c.peak > most {
			t.Errorf("%s of %d files had %d MiB, want at most %d", step, many, c.peak>>20, most>>20)
		}
		if c.cpu > 2*many/few*small[step].cpu {
			t.Errorf("%s: %d files took %s, and %d took %s", step, few, small[step].cpu, many, c.cpu)
		}
	}
}
