package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary be packhof-gate when it is called by that
// name, which is what stands in PATH for every test here: the programs that
// run are real processes, and so is the judge that they run.
func TestMain(m *testing.M) {
	testscript.Main(programs{m}, map[string]func(){"packhof-gate": main})
}

// programs runs the tests with packhof in PATH, really built, unless the tests
// are to be short: the two shores meet in the parcel only.
type programs struct{ *testing.M }

func (p programs) Run() int {
	flag.Parse()
	if failed(waitTogether()) != 0 {
		return 1
	}
	if testing.Short() {
		return p.M.Run()
	}
	dir, err := os.MkdirTemp("", "packhof-programs-")
	if err != nil {
		return failed(err)
	}
	code := failed(buildPackhof(dir))
	if code == 0 {
		code = p.M.Run()
	}
	return max(code, failed(os.RemoveAll(dir)))
}

// waitTogether lets more tests run at once than there are processors, unless
// somebody said how many: most of the time they wait, for disks and programs.
func waitTogether() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", "8")
}

func buildPackhof(dir string) error {
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "packhof"), "../packhof").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build packhof: %w\n%s", err, out)
	}
	return os.Setenv("PATH", os.Getenv("PATH")+string(filepath.ListSeparator)+dir)
}

func failed(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
