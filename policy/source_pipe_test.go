package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

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
		var coded interface{ Code() string }
		if !errors.As(err, &coded) || coded.Code() != "policy/unknown-file" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
