package bundle_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/packhof/packhof/bundle"
	"github.com/packhof/packhof/internal/problem"
)

// TestCheckTarget: what may stand where a volume is to go, and what may not.
func TestCheckTarget(t *testing.T) {
	f, other := spreadBundle(t, 40_000, 2_000), spreadBundle(t, 1_000)
	limits := bundle.SetOptions{Limits: []int64{base(t, f) + 10_000}}
	ours := written(t, f, t.TempDir(), limits)[0]
	set, err := bundle.PlanSet(f.Head, limits)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(ours, link); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(ours)
	if err != nil {
		t.Fatal(err)
	}
	cut, garbage := filepath.Join(dir, "cut.tar"), filepath.Join(dir, "garbage.tar")
	if err := errors.Join(os.WriteFile(cut, b[:len(b)-3_000], 0o644), os.WriteFile(garbage, b[:100], 0o644)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path, code string
		another    bool // bundle
	}{
		"nothing":                       {path: filepath.Join(dir, "none.tar")},
		"the volume":                    {path: ours},
		"the volume, cut off":           {path: cut},
		"a volume of another set":       {path: written(t, f, t.TempDir(), bundle.SetOptions{})[0], code: "medium/taken"},
		"a volume of another bundle":    {path: written(t, other, t.TempDir(), bundle.SetOptions{})[0], code: "medium/taken", another: true},
		"something else":                {path: garbage, code: "medium/taken"},
		"a folder":                      {path: dir, code: "medium/taken"},
		"a link to where the volume is": {path: link, code: "medium/taken"},
	} {
		err := set.CheckTarget(c.path)
		taken, another := errors.AsType[*bundle.TakenError](err)
		if problem.CodeOf(err) != c.code || another != c.another {
			t.Errorf("%s: %v", name, err)
		}
		if another && (taken.Want != set.Manifest() || taken.Got != other.Head.Digest() || taken.Remedy() == "" || len(taken.Evidence()) != 2) {
			t.Errorf("%s: %+v", name, taken)
		}
	}
}
