package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/packhof/packhof/internal/testkit"
)

// TestMain makes the test binary be packhof when it is called by that name,
// which is what stands in PATH for every test here: the programs that run are
// real processes. packhof-scan is there too.
func TestMain(m *testing.M) {
	testscript.Main(testkit.Programs{Tests: m, Name: "packhof-scan", Parallel: "12", Stderr: os.Stderr}, map[string]func(){"packhof": main})
}
