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
	if path := a.Getenv("PACKHOF_PASSPHRASE_FILE"); path != "" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read the file that PACKHOF_PASSPHRASE_FILE names: %w", err)
		}
		b, err := io.ReadAll(io.LimitReader(f, maxPassphrase))
		return firstLine(b), errors.Join(err, f.Close())
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
	return a.ask(ctx, in, what, confirm)
}

func (a *App) ask(ctx context.Context, in *os.File, what string, confirm bool) ([]byte, error) {
	phrase, err := a.readHidden(ctx, in, fmt.Sprintf("passphrase for %s: ", what))
	if err != nil || !confirm {
		return phrase, err
	}
	again, err := a.readHidden(ctx, in, "the same again: ")
	if err == nil && !bytes.Equal(phrase, again) {
		err = errors.New("the two passphrases differ")
	}
	return phrase, err
}

// maxPassphrase bounds what is read for a passphrase, in bytes.
const maxPassphrase = 64 << 10

// readHidden reads a line that is not shown. It ends with the context, since
// whoever presses Ctrl-C at a prompt means it.
func (a *App) readHidden(ctx context.Context, in *os.File, prompt string) ([]byte, error) {
	before, err := term.GetState(int(in.Fd()))
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
		phrase, err := term.ReadPassword(int(in.Fd()))
		answered <- answer{phrase, err}
	}()
	select {
	case said := <-answered:
		fmt.Fprintln(a.Stderr)
		return said.phrase, said.err
	case <-ctx.Done():
		// The reader stays behind until the program ends, which is now.
		return nil, errors.Join(context.Cause(ctx), term.Restore(int(in.Fd()), before))
	}
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}
