package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Tool returns the path of a program that a test runs, such as cosign, oras,
// skopeo or tar. It looks in the directory named by PACKHOF_TOOLS first, where
// make puts the programs it builds, then along PATH. If there is none, the test
// is skipped; with PACKHOF_REQUIRE_TOOLS=1, as make test sets it, it fails.
func Tool(t testing.TB, name string) string {
	t.Helper()
	if dir := os.Getenv("PACKHOF_TOOLS"); dir != "" {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("PACKHOF_REQUIRE_TOOLS") == "1" {
		t.Fatalf("no %s in PACKHOF_TOOLS=%q nor in PATH: run make test, which installs it", name, os.Getenv("PACKHOF_TOOLS"))
	}
	t.Skipf("no %s in PACKHOF_TOOLS=%q nor in PATH: run make test, which installs it", name, os.Getenv("PACKHOF_TOOLS"))
	return ""
}
