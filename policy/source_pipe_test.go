package policy_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/packhof/packhof/internal/problem"
	"github.com/packhof/packhof/policy"
)

// TestPipesAreNoRules: reading one would never end.
func TestPipesAreNoRules(t *testing.T) {
	for _, name := range []string{policy.ConfigFile, "rule.rego"} {
		dir := t.TempDir()
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := policy.ReadSource(os.DirFS(dir))
		if problem.CodeOf(err) != "policy/unknown-file" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
