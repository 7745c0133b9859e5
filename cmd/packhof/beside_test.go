package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestStrangersBesideABundle: what cannot be read does not make a bundle that is
// whole without it any worse. It is warned of, and the warning has an end.
func TestStrangersBesideABundle(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	headless(l)
	o := l.mustRun("verify", "medium")
	if !strings.Contains(o.Stdout, "genuine and whole: plant-1, serial 1") || !strings.Contains(o.Stderr, "warning: beside the bundle, ") || !strings.Contains(o.Stderr, "second.tar is not a bundle") {
		t.Errorf("%s\n%s", o.Stdout, o.Stderr)
	}
	for i := range 200 {
		l.Write(fmt.Sprintf("medium/%04d.age", i), "age-encryption.org/v1\ngarbage")
	}
	o = l.mustRun("verify", "medium")
	if strings.Count(o.Stderr, ".age") != 10 || !strings.Contains(o.Stderr, "; and 191 more") {
		t.Errorf("%s", o.Stderr)
	}
}
