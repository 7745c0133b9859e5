package mirror_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/packhof/packhof/internal/cas"
	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/internal/testkit"
)

// TestStoreIsTooSmall: a petabyte fits on no disk, and nothing is fetched.
func TestStoreIsTooSmall(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	const petabyte = 1 << 50
	l.Artifacts[0].Bytes, l.Artifacts[1].Bytes = petabyte, petabyte-1
	dir := t.TempDir()
	for name, do := range map[string]func() error{
		"export":  func() error { _, err := y.exporter(t).Export(t.Context(), l, dir); return err },
		"dry run": func() error { _, err := y.exporter(t).DryRun(t.Context(), l, dir); return err },
	} {
		err := do()
		wantCode(t, name, err, "disk/full")
		var full *problem.Problem
		// The two may share what they have, so only the larger is sure to be needed.
		if !errors.As(err, &full) || full.Evidence()[0] != fmt.Sprintf("needed:  %d bytes", int64(petabyte)) || !strings.HasPrefix(full.Evidence()[1], "free:    ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(y.shelf.asked) > 0 {
		t.Errorf("fetched %v", y.shelf.asked)
	}
}

// TestSharedContentIsFetchedOnce: what two artifacts have counts once.
func TestSharedContentIsFetchedOnce(t *testing.T) {
	y := newYard(t)
	l := y.plan(t)
	y.export(t, l)
	shared := testkit.Bytes("values", 5000)
	remove(t, y.store.Path(cas.DigestOf(shared)))
	d, err := y.exporter(t).DryRun(t.Context(), l, t.TempDir())
	if err != nil || d.Fetch != int64(len(shared)) {
		t.Errorf("%d bytes would be fetched, %v", d.Fetch, err)
	}
}
