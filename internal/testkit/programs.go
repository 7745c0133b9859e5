package testkit

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Programs runs tests with another of our programs in PATH, really built,
// unless the tests are to be short.
type Programs struct {
	Tests    *testing.M
	Name     string    // of the program, whose folder is beside that of the tests
	Parallel string    // how many tests run at once, unless somebody says so: most of the time they wait, for disks and programs
	Stderr   io.Writer // for why the tests cannot run
}

// Run runs the tests and gives the exit code of their process.
func (p Programs) Run() int {
	flag.Parse()
	if p.failed(p.waitTogether()) != 0 {
		return 1
	}
	if testing.Short() {
		return p.Tests.Run()
	}
	dir, err := os.MkdirTemp("", "packhof-programs-")
	if err != nil {
		return p.failed(err)
	}
	code := p.failed(p.build(dir))
	if code == 0 {
		code = p.Tests.Run()
	}
	return max(code, p.failed(os.RemoveAll(dir)))
}

func (p Programs) waitTogether() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", p.Parallel)
}

func (p Programs) build(dir string) error {
	out, err := exec.Command("go", "build", "-o", filepath.Join(dir, p.Name), "../"+p.Name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", p.Name, err, out)
	}
	return os.Setenv("PATH", os.Getenv("PATH")+string(filepath.ListSeparator)+dir)
}

func (p Programs) failed(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(p.Stderr, err)
	return 1
}
