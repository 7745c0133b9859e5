package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// passwordFileFlag names a file and never holds a password: others can read a
// command line.
const passwordFileFlag = "password-file"

func addPasswordFile(c *cobra.Command) {
	c.Flags().String(passwordFileFlag, "", "`file` whose first line is the password")
}

// newPassword asks for a password that is to hold from now on, at a terminal
// twice.
func (s *site) newPassword(c *cobra.Command, account string) ([]byte, error) {
	return s.app.Password(c.Context(), c.Flag(passwordFileFlag).Value.String(), account, true)
}

// password asks for the password of an account.
func (s *site) password(c *cobra.Command, account string) ([]byte, error) {
	return s.app.Password(c.Context(), c.Flag(passwordFileFlag).Value.String(), account, false)
}

// confirmed asks a person at the terminal. ok is false where there is none.
func (s *site) confirmed(question string) (yes, ok bool, err error) {
	if !s.atTerminal() {
		return false, false, nil
	}
	answer, _, err := s.answer(question + " " + s.say("[yes/no]"))
	return err == nil && isYes(answer), true, err
}

// atTerminal tells whether there is a person who can be asked.
func (s *site) atTerminal() bool {
	in, isFile := s.app.Stdin.(*os.File)
	return isFile && term.IsTerminal(int(in.Fd()))
}

// answer is the line that a person at the terminal types. ok is false where
// there is none. A terminal gives one line a read, so that no reader takes what
// belongs to the next question.
func (s *site) answer(question string) (line string, ok bool, err error) {
	if !s.atTerminal() {
		return "", false, nil
	}
	fmt.Fprintf(s.app.Stderr, "%s ", question)
	line, err = bufio.NewReader(s.app.Stdin).ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return line, true, err
}

// isYes understands each language, whatever the question was in.
func isYes(answer string) bool {
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "yes", "y", "ja", "j":
		return true
	}
	return false
}
