package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// outcome is a testing.TB that remembers how a test ended instead of ending it.
type outcome struct {
	testing.TB
	how string
}

func (o *outcome) Helper()               {}
func (o *outcome) Fatalf(string, ...any) { o.how = "failed"; panic(o) }
func (o *outcome) Skipf(string, ...any)  { o.how = "skipped"; panic(o) }

func find(name string) (path, how string) {
	o := &outcome{how: "found"}
	defer func() {
		if recover() != nil {
			how = o.how
		}
	}()
	return Tool(o, name), o.how
}

func TestTool(t *testing.T) {
	tools, elsewhere := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(tools, "both"), filepath.Join(elsewhere, "both"), filepath.Join(elsewhere, "system")} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", elsewhere)
	for name, c := range map[string]struct{ tools, require, tool, path, how string }{
		"built before installed": {tools, "1", "both", filepath.Join(tools, "both"), "found"},
		"installed":              {tools, "1", "system", filepath.Join(elsewhere, "system"), "found"},
		"no directory given":     {"", "", "both", filepath.Join(elsewhere, "both"), "found"},
		"absent":                 {tools, "", "nowhere", "", "skipped"},
		"absent and required":    {tools, "1", "nowhere", "", "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PACKHOF_TOOLS", c.tools)
			t.Setenv("PACKHOF_REQUIRE_TOOLS", c.require)
			if path, how := find(c.tool); path != c.path || how != c.how {
				t.Errorf("%s %q, want %s %q", how, path, c.how, c.path)
			}
		})
	}
}
