package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/packhof/packhof/internal/testkit"
)

// TestMain makes the test binary be packhof-gate when it is called by that
// name, which is what stands in PATH for every test here: the programs that
// run are real processes, and so is the judge that they run. packhof is there
// too, as a program: the two shores meet in the parcel only.
func TestMain(m *testing.M) {
	testscript.Main(testkit.Programs{Tests: m, Name: "packhof", Parallel: "8", Stderr: os.Stderr}, map[string]func(){"packhof-gate": main})
}
