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
	in, isFile := s.app.Stdin.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return false, false, nil
	}
	fmt.Fprintf(s.app.Stderr, "%s %s ", question, s.say("[yes/no]"))
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, true, err
	}
	return isYes(answer), true, nil
}

// isYes understands each language, whatever the question was in.
func isYes(answer string) bool {
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "yes", "y", "ja", "j":
		return true
	}
	return false
}
