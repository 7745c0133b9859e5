package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// openTerminal gives the two ends of a terminal of the kernel's.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { // the person goes first: that ends whoever still reads
		_ = person.Close()
		_ = program.Close()
	})
	return person, program
}

// TestInterruptedAtAPrompt: whoever presses Ctrl-C when asked for a password is
// not told about files that nobody was writing.
func TestInterruptedAtAPrompt(t *testing.T) {
	_, program := openTerminal(t)
	for name, c := range map[string]struct {
		german bool
		want   string
	}{
		"English": {false, "t: error: interrupted\ncode: interrupted   exit 130   (t help errors interrupted)\n"},
		"German":  {true, "t: Fehler: abgebrochen\nCode: interrupted   Exit-Code 130   (t help errors interrupted)\n"},
	} {
		var out strings.Builder
		app := &App{Name: "t", Stdin: program, Stderr: &out, German: c.german, LookupEnv: func(string) (string, bool) { return "", false }}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		root := &cobra.Command{Use: "t", RunE: func(c *cobra.Command, _ []string) error {
			_, err := app.Password(c.Context(), "", "anna", false)
			return err
		}}
		if exit := app.Execute(ctx, []string{}, root); exit != ExitInterrupted {
			t.Errorf("%s: exit %d, want %d", name, exit, ExitInterrupted)
		}
		if !strings.HasSuffix(out.String(), c.want) {
			t.Errorf("%s: %q, want it to end with %q", name, out.String(), c.want)
		}
	}
}
