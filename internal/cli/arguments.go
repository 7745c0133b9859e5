package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Needs checks that a command gets one argument for each of names, which say
// in words what the arguments are: "the bundle". What is missing is named, and
// how the command is written. Without names it takes no arguments.
func Needs(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage(c, fmt.Sprintf("%s needs %s:  %s", c.Name(), strings.Join(names[len(args):], " and "), written(c)))
		case len(args) > len(names):
			takes := "no arguments"
			if len(names) > 0 {
				takes = strings.Join(names, " and ") + " and nothing more"
			}
			return usage(c, fmt.Sprintf("%s takes %s, and %q is too much:  %s", c.Name(), takes, args[len(names)], written(c)))
		}
		return nil
	}
}

// NeedsSome checks that a command gets at least one argument, which what says in
// words.
func NeedsSome(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(c, fmt.Sprintf("%s needs %s:  %s", c.Name(), what, written(c)))
		}
		return nil
	}
}

// written is how a command is written: its first example, or else the names of
// its arguments.
func written(c *cobra.Command) string {
	if c.Example != "" {
		first, _, _ := strings.Cut(c.Example, "\n")
		return strings.TrimSpace(first)
	}
	_, arguments, _ := strings.Cut(c.Use, " ")
	return strings.TrimSpace(c.CommandPath() + " " + arguments)
}
