package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	if path := a.Getenv("PACKHOF_PASSPHRASE_FILE"); path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the file that PACKHOF_PASSPHRASE_FILE names: %w", err)
		}
		return firstLine(b), nil
	}
	if phrase, ok := a.LookupEnv("PACKHOF_PASSPHRASE"); ok {
		return []byte(phrase), nil
	}
	if command := a.Getenv("PACKHOF_PASSPHRASE_COMMAND"); command != "" {
		out, err := exec.CommandContext(ctx, "/bin/sh", "-c", command).Output()
		if err != nil {
			return nil, problem.New("passphrase/command", "the command in PACKHOF_PASSPHRASE_COMMAND failed: %w", err)
		}
		return firstLine(out), nil
	}
	in, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, problem.New("passphrase/none", "there is nobody to ask for the passphrase of %s", what).
			Hint("set PACKHOF_PASSPHRASE_FILE to a file that holds it")
	}
	return a.ask(in, what, confirm)
}

func (a *App) ask(in *os.File, what string, confirm bool) ([]byte, error) {
	fmt.Fprintf(a.Stderr, "passphrase for %s: ", what)
	phrase, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(a.Stderr)
	if err != nil || !confirm {
		return phrase, err
	}
	fmt.Fprint(a.Stderr, "the same again: ")
	again, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(a.Stderr)
	if err == nil && !bytes.Equal(phrase, again) {
		err = errors.New("the two passphrases differ")
	}
	return phrase, err
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}
