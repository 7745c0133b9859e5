package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/packhof/packhof/internal/testkit"
)

// TestInterruptedAtAPrompt: whoever presses Ctrl-C when asked for a password is
// not told about files that nobody was writing.
func TestInterruptedAtAPrompt(t *testing.T) {
	_, program := testkit.Terminal(t)
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

// TestTypedTwice: whoever types two different passwords is told so, in words of
// their own.
func TestTypedTwice(t *testing.T) {
	for name, k := range map[string]struct {
		german bool
		ask    func(ctx context.Context, a *App) ([]byte, error)
		want   string
	}{
		"a passphrase": {false, newPassphrase, "t: error: the two passphrases differ\nhint: run the command again, and type the same twice\ncode: passphrase/differ   exit 1   (t help errors passphrase/differ)\n"},
		"English":      {false, newPassword, "t: error: the two passwords differ\nhint: run the command again, and type the same twice\ncode: password/differ   exit 1   (t help errors password/differ)\n"},
		"German": {true, newPassword, "t: Fehler: Das Passwort wurde zweimal verschieden eingegeben; es gilt noch, was vorher galt.\nWortlaut: the two passwords differ\n" +
			"Abhilfe: den Befehl noch einmal ausführen, und zweimal dasselbe eingeben\nCode: password/differ   Exit-Code 1   (t help errors password/differ)\n"},
	} {
		person, program := testkit.Terminal(t)
		if _, err := person.WriteString("correct horse\ncorrect hose\n"); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		app := &App{Name: "t", Stdin: program, Stderr: &out, German: k.german, LookupEnv: func(string) (string, bool) { return "", false }}
		root := &cobra.Command{Use: "t", RunE: func(c *cobra.Command, _ []string) error {
			_, err := k.ask(c.Context(), app)
			return err
		}}
		if exit := app.Execute(t.Context(), []string{}, root); exit != ExitFailed {
			t.Errorf("%s: exit %d, want %d", name, exit, ExitFailed)
		}
		if !strings.HasSuffix(out.String(), k.want) {
			t.Errorf("%s: %q, want it to end with %q", name, out.String(), k.want)
		}
	}
}

func newPassword(ctx context.Context, a *App) ([]byte, error) {
	return a.Password(ctx, "", "anna", true)
}

func newPassphrase(ctx context.Context, a *App) ([]byte, error) {
	return a.Passphrase(ctx, "keys/packhof.key", true)
}
