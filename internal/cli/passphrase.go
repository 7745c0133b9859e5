package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/term"

	"github.com/packhof/packhof/internal/problem"
)

// Passphrase asks for the passphrase of a key file: from the file that
// PACKHOF_PASSPHRASE_FILE names, from PACKHOF_PASSPHRASE, from the output of
// PACKHOF_PASSPHRASE_COMMAND, or from the person at the terminal. It is never
// a flag, since others can read a command line. With confirm the person types
// it twice.
func (a *App) Passphrase(ctx context.Context, what string, confirm bool) ([]byte, error) {
	s := secret{variable: "PACKHOF_PASSPHRASE", noun: "passphrase", none: "passphrase/none", command: "passphrase/command", differ: "passphrase/differ"}
	return a.find(ctx, s, a.Getenv("PACKHOF_PASSPHRASE_FILE"), what, confirm)
}

// Password asks for the password of an account likewise: from a file, if one
// is named; from PACKHOF_PASSWORD, from the output of PACKHOF_PASSWORD_COMMAND,
// or from the person at the terminal.
func (a *App) Password(ctx context.Context, file, account string, confirm bool) ([]byte, error) {
	s := secret{variable: "PACKHOF_PASSWORD", noun: "password", none: "password/none", command: "password/command", differ: "password/differ"}
	return a.find(ctx, s, file, account, confirm)
}

// secret is a kind of secret: the first of its variables, its name, its codes.
type secret struct{ variable, noun, none, command, differ string }

func (a *App) find(ctx context.Context, s secret, file, what string, confirm bool) ([]byte, error) {
	if file != "" {
		return s.read(file)
	}
	if phrase, ok := a.LookupEnv(s.variable); ok {
		return []byte(phrase), nil
	}
	if command := a.Getenv(s.variable + "_COMMAND"); command != "" {
		out, err := exec.CommandContext(ctx, "/bin/sh", "-c", command).Output()
		if err != nil {
			return nil, problem.New(s.command, "the command in %s_COMMAND failed: %w", s.variable, err)
		}
		return firstLine(out), nil
	}
	in, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, problem.New(s.none, "there is nobody to ask for the %s of %s", s.noun, what).
			Hint("set %s_FILE to a file that holds it", s.variable)
	}
	return a.ask(ctx, in, s, what, confirm)
}

func (s secret) read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the file that %s_FILE names: %w", s.variable, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxPassphrase))
	return firstLine(b), errors.Join(err, f.Close())
}

func (a *App) ask(ctx context.Context, in *os.File, s secret, what string, confirm bool) ([]byte, error) {
	question, repeat := fmt.Sprintf("%s for %s: ", s.noun, what), "the same again: "
	if a.German {
		german := map[string]string{"passphrase": "Passphrase", "password": "Passwort"}
		question, repeat = fmt.Sprintf("%s für %s: ", german[s.noun], what), "noch einmal dasselbe: "
	}
	phrase, err := a.readHidden(ctx, in, question)
	if err != nil || !confirm {
		return phrase, err
	}
	again, err := a.readHidden(ctx, in, repeat)
	if err == nil && !bytes.Equal(phrase, again) {
		err = problem.New(s.differ, "the two %ss differ", s.noun)
	}
	return phrase, err
}

// maxPassphrase bounds what is read for a passphrase, in bytes.
const maxPassphrase = 64 << 10

// readHidden reads a line that is not shown. It ends with the context, since
// whoever presses Ctrl-C at a prompt means it.
func (a *App) readHidden(ctx context.Context, in *os.File, prompt string) ([]byte, error) {
	fd := int(in.Fd()) // asked for here: nobody waits for the goroutine below
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	type answer struct {
		phrase []byte
		err    error
	}
	answered := make(chan answer, 1)
	fmt.Fprint(a.Stderr, prompt)
	go func() {
		phrase, err := term.ReadPassword(fd)
		answered <- answer{phrase, err}
	}()
	select {
	case said := <-answered:
		fmt.Fprintln(a.Stderr)
		return said.phrase, said.err
	case <-ctx.Done():
		// The reader stays behind until the program ends, which is now.
		return nil, errors.Join(&promptError{context.Cause(ctx)}, term.Restore(fd, before))
	}
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}

// promptError is that somebody was asked and ended the program instead. Nothing
// was under way, so there is nothing to say of what is left and how to go on.
type promptError struct{ error }

func (e *promptError) Unwrap() error { return e.error }

func isAtPrompt(err error) bool {
	_, ok := errors.AsType[*promptError](err)
	return ok
}
